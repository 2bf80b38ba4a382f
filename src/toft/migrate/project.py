"""Pure: a bundle becomes what will run: ordered migrations, roles, seeds and the configuration that matters.

The rules are those of the Supabase CLI: which files count, in which order, what is passed over with a word.
A file that cannot run as it lies there (not UTF-8, NUL bytes, psql commands) is refused here, with its line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

import msgspec

from toft.errors.project import FileUnreadable
from toft.migrate.config import ProjectConfig, read_config
from toft.migrate.glob import expand
from toft.migrate.notice import Notice, info, warning
from toft.migrate.place import line_and_column
from toft.migrate.psql_commands import PsqlOnly, Understood, understand
from toft.protocol.bundle import MIGRATIONS, ROLES, Bundle

_MIGRATION_NAME = re.compile(r"([0-9]+)_(.*)\.sql")
_OLD_INIT = re.compile(r"([0-9]{14})_init\.sql")
_FIRST_TIME_OF_NEW_INIT = 20211209000000


class Options(msgspec.Struct, frozen=True):
    """What a user may say about it. migrations_dir: a folder of the bundle, without `/` at its end."""

    include_all: bool = False
    no_migrations: bool = False
    no_seed: bool = False
    migrations_dir: str = MIGRATIONS


class SqlFile(msgspec.Struct, frozen=True):
    """A file to run. text: without byte-order mark. sha256: of its bytes as they are, in hexadecimal.

    notices: what the user should hear about it.
    """

    path: str
    text: str
    sha256: str
    notices: tuple[Notice, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"


class Migration(SqlFile, frozen=True, kw_only=True):
    """A file of the migrations folder; version and name as the history records them."""

    version: str
    name: str


class Project(msgspec.Struct, frozen=True):
    """All that a database is made from. notices: what the user should hear about the files."""

    config: ProjectConfig
    roles: SqlFile | None
    migrations: tuple[Migration, ...]
    seeds: tuple[SqlFile, ...]
    options: Options = Options()
    notices: tuple[Notice, ...] = ()


def read_project(bundle: Bundle, options: Options = Options()) -> Project:  # noqa: B008 - a frozen value
    """What the bundle says. Raises `FileUnreadable` for a file that would have to run and cannot."""
    config, notices = read_config(bundle)
    migrations: list[Migration] = []
    seeds: list[SqlFile] = []
    if config.migrations_enabled and not options.no_migrations:
        migrations, passed_over = _read_migrations(bundle, options.migrations_dir)
        notices = (*notices, *passed_over)
    if config.seed_enabled and not options.no_seed:
        found = expand(config.seed_patterns, bundle.files)
        notices = (*notices, *(_no_seed(pattern) for pattern in found.unmatched if config.seed_is_explicit))
        seeds = [read_file(path, bundle.files[path]) for path in found.paths]
    roles = read_file(ROLES, bundle.files[ROLES]) if ROLES in bundle.files else None
    files = [*([roles] if roles else []), *migrations, *seeds]
    notices = (*notices, *(notice for file in files for notice in file.notices))
    return Project(config, roles, tuple(migrations), tuple(seeds), options, tuple(notices))


def _no_seed(pattern: str) -> Notice:
    return warning(f"no seed file matches `{pattern}`")


def _read_migrations(bundle: Bundle, folder: str) -> tuple[list[Migration], list[Notice]]:
    paths, notices = select_migrations(bundle.files, folder)
    migrations: list[Migration] = []
    for path in paths:
        match = _MIGRATION_NAME.fullmatch(path.rpartition("/")[2])
        if match:
            file = read_file(path, bundle.files[path])
            migrations.append(
                Migration(file.path, file.text, file.sha256, file.notices, version=match[1], name=match[2])
            )
    # By version as text, so `10_a` runs before `9_b`; of two with one version, by the rest of the name.
    migrations.sort(key=lambda migration: migration.version)
    return migrations, notices


def select_migrations(paths: Iterable[str], folder: str) -> tuple[list[str], list[Notice]]:
    """The files directly in the folder that count as migrations, and a word on those that do not."""
    inside = {path.removeprefix(folder + "/") for path in paths if path.startswith(folder + "/")}
    entries = sorted({name.partition("/")[0] for name in inside}, key=lambda name: name.encode())
    selected: list[str] = []
    notices: list[Notice] = []
    for index, name in enumerate(entries):
        if name not in inside:
            continue  # a folder
        path = f"{folder}/{name}"
        if index == 0 and _is_old_init(name):
            notices.append(info(f"{path} is passed over: rename it (not `_init`) to have it applied"))
        elif not _MIGRATION_NAME.fullmatch(name):
            notices.append(info(f"{path} is passed over: its name is not `<digits>_<name>.sql`"))
        else:
            selected.append(path)
    return selected, notices


def _is_old_init(name: str) -> bool:
    match = _OLD_INIT.search(name)
    return match is not None and int(match[1]) < _FIRST_TIME_OF_NEW_INIT


def read_file(path: str, raw: bytes) -> SqlFile:
    """Bytes become text. Raises `FileUnreadable` when they are none, or when only psql could run it."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileUnreadable(file=path, line=1, cause="the file is UTF-16", advice="save it as UTF-8")
    if (nul := raw.find(b"\0")) >= 0:
        line = raw.count(b"\n", 0, nul) + 1
        raise FileUnreadable(
            file=path,
            line=line,
            cause="there is a NUL byte",
            advice="remove it: Postgres cannot store one in text",
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = raw.count(b"\n", 0, fault.start) + 1
        byte = raw[fault.start]
        raise FileUnreadable(
            file=path,
            line=line,
            cause=f"byte 0x{byte:02x} is not UTF-8",
            advice="save the file as UTF-8 (`iconv -f latin1 -t utf-8` if it is an old one)",
        ) from None
    found = understand(text)
    if isinstance(found, PsqlOnly):
        line, column = line_and_column(text, found.start)
        raise FileUnreadable(file=path, line=line, column=column, cause=found.cause, advice=found.advice)
    return SqlFile(path, text, hashlib.sha256(raw).hexdigest(), _only_here(path, text, found))


def _only_here(path: str, text: str, understood: Understood) -> tuple[Notice, ...]:
    """What is done here and refused by the Supabase CLI."""
    places = [(start, f"`{command}` is a command of psql") for start, command in understood.passed_over]
    places += [(rows.start, "`COPY ... FROM stdin` reads from psql") for rows in understood.rows]
    first = min(places, default=None)
    if first is None:
        return ()
    line, _ = line_and_column(text, first[0])
    more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
    return (warning(f"{path}:{line}: {first[1]}: understood here, the Supabase CLI refuses the file{more}"),)


class Pending(msgspec.Struct, frozen=True):
    """What the history makes of the local migrations: either `files` to apply, or one of the two refusals.

    missing: recorded versions without a local file. inserted: local files older than a recorded version.
    """

    files: tuple[Migration, ...] = ()
    missing: tuple[str, ...] = ()
    inserted: tuple[Migration, ...] = ()


def decide_pending(local: Sequence[Migration], recorded: Sequence[str], *, include_all: bool) -> Pending:
    """Both lists are walked side by side, comparing versions as text, as the CLI does."""
    recorded = sorted(recorded)
    missing: list[str] = []
    inserted: list[Migration] = []
    row = 0
    at = 0
    while row < len(recorded) and at < len(local):
        if recorded[row] == local[at].version:
            row += 1
            at += 1
        elif recorded[row] < local[at].version:
            missing.append(recorded[row])
            row += 1
        else:
            inserted.append(local[at])
            at += 1
    missing.extend(recorded[row:])
    if missing:
        return Pending(missing=tuple(missing))
    if inserted and not include_all:
        return Pending(inserted=tuple(inserted))
    return Pending(files=(*inserted, *local[at:]))
