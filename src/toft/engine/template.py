"""Templates: stopped data directories, named by what went into them, from which backends are cloned.

A *base* template is an engine and the bootstrap scripts; a *project* template is a base with a project's
migrations, made elsewhere and handed to `seal`. Both are made under another name and renamed when they are
complete, and are never written to again. They are lean, since each file costs every clone: one database and
a small template1 (for CREATE DATABASE), 1 MB of write-ahead log, no free space or visibility maps.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pwd
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from toft.engine import conf, postmaster
from toft.engine.bootstrap import SUPERUSER, Bootstrap
from toft.engine.marks import find_marks, lock, make_verifier
from toft.engine.pack import Index, digest, pack
from toft.engine.postmaster import PostmasterSpec
from toft.engine.prepare import Engine
from toft.errors.backend import DiskFull
from toft.errors.engine import TemplateFailed
from toft.host import probe, processes
from toft.host.confine import Confinement, Method, confine
from toft.host.files import remove_tree, sync_directory, write_atomically
from toft.pg.connection import Connection, connect
from toft.pg.quote import identifier, literal
from toft.pg.sqlstate import PostgresError

#: Raise it when the way of making one changes.
_FORMAT = "2"

_PACK = "pgdata.pack"
#: the folder of objects that a template may have besides its data directory
OBJECTS = "objects"

type Kind = Literal["base", "project"]


class Template(msgspec.Struct, frozen=True):
    """A stopped data directory, packed into the file `path`.

    password: that of `supabase_admin` in it; nobody knows those of the other roles. marks: where in the pack
    the verifiers of login roles lie.
    """

    key: str
    kind: Kind
    path: Path
    engine_id: str
    password: str
    verifiers: Mapping[str, str]
    marks: Mapping[str, Sequence[int]]

    def __repr__(self) -> str:
        return f"Template({self.key!r})"


class Launch(msgspec.Struct, frozen=True):
    """How postmasters that serve nobody are started here: where sockets go, as whom, behind what walls."""

    run_dir: Path
    uid: int | None
    confinement: Method


class _Record(msgspec.Struct, frozen=True):
    """template.json."""

    kind: Kind
    engine_id: str
    password: str
    verifiers: dict[str, str]
    marks: dict[str, list[int]]
    size_bytes: int


def base_key(engine: Engine, bootstrap: Bootstrap) -> str:
    """The name of the template that this engine and these scripts make."""
    parts = (_FORMAT, engine.id, bootstrap.version, conf.render_conf(engine.major), conf.HBA)
    return "base-" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def load_template(templates_dir: Path, key: str) -> Template | None:
    """The template of this name, if it is there."""
    folder = templates_dir / key
    path = folder / _PACK
    try:
        record = msgspec.json.decode((folder / "template.json").read_bytes(), type=_Record)
        if path.stat().st_size != record.size_bytes:
            return None
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return None
    return Template(
        key=key,
        kind=record.kind,
        path=path,
        engine_id=record.engine_id,
        password=record.password,
        verifiers=record.verifiers,
        marks=record.marks,
    )


def read_index(template: Template) -> Index:
    """What is in a template."""
    return msgspec.json.decode((template.path.parent / "index.json").read_bytes(), type=Index)


def verify(template: Template) -> bool:
    """Whether a template is, byte for byte, what was sealed. Reads all of it."""
    try:
        return digest(template.path) == read_index(template).digest
    except (OSError, msgspec.MsgspecError):
        return False


def seal(
    folder: Path,
    templates_dir: Path,
    key: str,
    *,
    kind: Kind,
    engine_id: str,
    password: str,
    verifiers: Mapping[str, str],
) -> Template:
    """Turn `folder`, which holds the data directory `pgdata` of a cleanly stopped cluster, into a template.

    verifiers: what `marks.lock` has given the login roles.
    `folder` must be on the same disk as `templates_dir`. If the template exists already, that one wins.
    """
    data_dir = folder / "pgdata"
    if (data_dir / "postmaster.pid").exists():
        raise TemplateFailed(engine=engine_id, cause="its cluster was not stopped cleanly")
    _strip(data_dir)
    index = pack(data_dir, folder / _PACK)
    size = (folder / _PACK).stat().st_size
    try:
        marks = find_marks(folder / _PACK, index, verifiers)
    except LookupError as error:
        raise TemplateFailed(engine=engine_id, cause=f"its role {error} has no password") from None
    record = _Record(
        kind=kind,
        engine_id=engine_id,
        password=password,
        verifiers=dict(verifiers),
        marks=marks,
        size_bytes=size,
    )
    for name, value in (("index.json", index), ("template.json", record)):
        write_atomically(folder / name, msgspec.json.encode(value))
    for path in folder.iterdir():
        if path.name not in (_PACK, "index.json", "template.json", OBJECTS):
            remove_tree(path)
    folder.chmod(0o700)
    with suppress(OSError):
        folder.rename(templates_dir / key)
    template = load_template(templates_dir, key)
    if template is None:
        raise TemplateFailed(engine=engine_id, cause=f"{templates_dir / key} is in the way")
    remove_tree(folder)
    sync_directory(templates_dir)
    return template


#: What the server makes again by itself, or should forget.
_DISPENSABLE = {"postmaster.opts", "pg_internal.init", "pgstat.stat", "pg_stat_statements.stat"}


def _strip(data_dir: Path) -> None:
    for folder, _, files in os.walk(data_dir):
        for name in files:
            if name in _DISPENSABLE or name.endswith(("_fsm", "_vm")):
                (Path(folder) / name).unlink()


async def build_base(engine: Engine, bootstrap: Bootstrap, templates_dir: Path, launch: Launch) -> Template:
    """Make the base template of an engine, or return the one that is there. Takes seconds.

    Raises TemplateFailed; leaves nothing behind then. What it starts ends with the calling process.
    """
    key = base_key(engine, bootstrap)
    existing = load_template(templates_dir, key)
    if existing is not None:
        return existing
    work = templates_dir / f".building-{key}-{secrets.token_hex(4)}"
    try:
        _make_passable(templates_dir)
        _make_passable(work)
        password = secrets.token_urlsafe(24)
        await _initdb(engine, work, password, launch)
        verifiers = await _fill(engine, bootstrap, work, password, launch)
        return seal(
            work,
            templates_dir,
            key,
            kind="base",
            engine_id=engine.id,
            password=password,
            verifiers=verifiers,
        )
    except PostgresError as error:
        raise TemplateFailed(
            engine=engine.id, cause=f"{error.message} (SQLSTATE {error.sqlstate})"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(path=str(templates_dir)) from error
        raise TemplateFailed(engine=engine.id, cause=str(error)) from error
    finally:
        remove_tree(work)


def _make_passable(folder: Path) -> None:
    """A folder through which the owners of clusters reach theirs, without seeing the others."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)


async def _initdb(engine: Engine, work: Path, password: str, launch: Launch) -> None:
    data_dir, secret, log = work / "pgdata", work / "password", work / "initdb.log"
    data_dir.mkdir(mode=0o700)
    secret.touch(mode=0o600)
    secret.write_text(password)
    uid = launch.uid
    if uid is not None and launch.confinement != "bubblewrap":
        uid = pwd.getpwnam("nobody").pw_uid  # initdb insists on a user that has a name
    _give([data_dir, secret], uid)
    line = conf.initdb_line(
        str(engine.bin_dir / "initdb"),
        str(data_dir),
        str(secret),
        engine.major,
        has_utf8_locale=probe.has_locale("C.UTF-8"),
    )
    with log.open("wb") as output:
        status = await processes.complete(
            confine(_initdb_walls(engine, work, uid, launch), line),
            engine.environment(),
            output=output.fileno(),
        )
    if status != 0:
        said = log.read_text(errors="replace").strip()[-500:]
        raise TemplateFailed(engine=engine.id, cause=f"initdb: {said}")
    for name, text in (("postgresql.conf", conf.render_conf(engine.major)), ("pg_hba.conf", conf.HBA)):
        (data_dir / name).write_text(text)
    (data_dir / "pg_ident.conf").write_text("")
    if uid != launch.uid:
        _give([data_dir, *data_dir.rglob("*")], launch.uid)


def _initdb_walls(engine: Engine, work: Path, uid: int | None, launch: Launch) -> Confinement:
    """initdb meets nothing of a tenant, but it asks for its user's name and needs a shell."""
    if launch.confinement != "bubblewrap":
        return postmaster.walls(engine, launch.confinement, uid, [])
    who = os.geteuid() if uid is None else uid
    names = work / "passwd"
    names.write_text(f"toft:x:{who}:{who}::/:/bin/sh\n")
    names.chmod(0o644)
    walls = postmaster.walls(engine, launch.confinement, uid, [work])
    return msgspec.structs.replace(
        walls,
        read_only=(*walls.read_only, "/usr/bin"),
        links=(*walls.links, ("/bin", "usr/bin")),
        placed=((str(names), "/etc/passwd"),),
        has_devices=True,
    )


def _give(paths: Iterable[Path], uid: int | None) -> None:
    if uid is not None:
        for path in paths:
            os.chown(path, uid, uid)


async def _fill(
    engine: Engine, bootstrap: Bootstrap, work: Path, password: str, launch: Launch
) -> dict[str, str]:
    """Run the scripts, slim the cluster, and stop it cleanly. Gives the verifiers of the login roles."""
    spec = PostmasterSpec(
        engine=engine,
        data_dir=work / "pgdata",
        socket_dir=launch.run_dir / f"t{secrets.token_hex(6)}",
        log_path=work / "log",
        uid=launch.uid,
        confinement="none",  # it runs nothing but our own scripts
        dies_with_us=True,
        settings={"max_wal_size": "512MB"},
    )
    running = await postmaster.start(spec)
    try:
        verifiers = await _run_scripts(spec, bootstrap, password)
        await _slim(spec, password)
        await postmaster.stop(running, "fast")
        return verifiers
    finally:
        await postmaster.stop(running, "immediate")
        remove_tree(spec.socket_dir)


async def _run_scripts(spec: PostmasterSpec, bootstrap: Bootstrap, password: str) -> dict[str, str]:
    path = str(spec.socket_path)
    admin = await connect(path, SUPERUSER, password)
    try:
        await _set_password(admin, SUPERUSER, password)
        roles: set[str] = set()
        for script in bootstrap.scripts:
            if script.role != SUPERUSER and script.role not in roles:
                await _set_password(admin, script.role, password)
                roles.add(script.role)
            session = await connect(path, script.role, password)
            try:
                await session.script(script.sql)
            except PostgresError as error:
                raise TemplateFailed(engine=spec.engine.id, cause=f"{script.name}.sql: {error}") from error
            finally:
                session.close()
        for role in sorted(roles):
            await admin.script(f"alter role {identifier(role)} password null")
        return await lock(admin, password)
    finally:
        admin.close()


async def _set_password(admin: Connection, role: str, password: str) -> None:
    secret = literal(make_verifier(password, secrets.token_bytes(16)))
    await admin.script(f"alter role {identifier(role)} password {secret}")


async def _slim(spec: PostmasterSpec, password: str) -> None:
    """Make the cluster as small as it can be: fewer files, no dead rows, hint bits set, little in the log."""
    for database, statements in _SLIM.items():
        session = await connect(str(spec.socket_path), SUPERUSER, password, database)
        try:
            for statement in statements:
                await session.script(statement)
        finally:
            session.close()


#: template1 is there for CREATE DATABASE; what it says about the server's own functions is in `postgres`.
_SLIM = {
    "template1": ("delete from pg_description", "delete from pg_statistic", "vacuum (full, freeze)"),
    "postgres": (
        "alter database template0 is_template false",
        "drop database template0",
        "delete from pg_statistic",
        "vacuum (full, freeze)",
        "analyze",
        "checkpoint",
        "select pg_switch_wal()",
    ),
}
