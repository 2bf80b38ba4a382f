"""Finding engines and making them usable."""

from __future__ import annotations

import hashlib
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tests.kit.fix_engine import EngineLab
from toft.engine.binaries import find_engines, load_engine, survey
from toft.engine.overlay import trusted_names
from toft.engine.prepare import Engine
from toft.errors.daemon import HomeUnusable
from toft.errors.engine import EngineBroken
from toft.host import processes

SYSTEM = Path("/usr/lib/postgresql/15/bin")


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def control(engine: Engine, name: str) -> str:
    """The control file that the server would read: ours before its own."""
    ours = engine.conf.get("extension_control_path", "").split(":")[0]
    share = [Path(ours)] if ours else []
    share += [engine.bin_dir.parent / "share", *engine.bin_dir.parents[3].glob("share/postgresql/*")]
    return next(
        path.read_text() for folder in share if (path := folder / "extension" / f"{name}.control").exists()
    )


def test_an_engine_is_prepared_once(engine_lab: EngineLab, major: int) -> None:
    """The second look finds the same one, untouched; its record says all that is needed to load it."""
    engine = engine_lab.engine(major)
    before = {path: path.lstat().st_mtime_ns for path in engine.read_only[0].rglob("*")}
    again = {found.id: found for found in find_engines(engine_lab.home)}
    assert again[engine.id] == engine
    assert load_engine(engine_lab.home, engine.id) == engine
    assert {path: path.lstat().st_mtime_ns for path in engine.read_only[0].rglob("*")} == before


def test_an_engine_runs_and_knows_its_extensions(engine_lab: EngineLab, major: int) -> None:
    """Its programs start with its own libraries; contrib and stand-ins are listed."""
    engine = engine_lab.engine(major)
    for program in ("postgres", "initdb", "psql", "pg_dump"):
        answer = processes.run([str(engine.bin_dir / program), "--version"], engine.environment())
        assert f" {major}." in answer.output, answer.errors
    assert {"pgcrypto", "uuid-ossp", "pg_trgm", "supabase_vault", "pg_stat_statements"} <= set(
        engine.extensions
    )
    assert engine.conf["shared_preload_libraries"] == "pg_stat_statements"


def test_harmless_extensions_are_trusted_and_others_are_not(engine_lab: EngineLab, major: int) -> None:
    """By the control file that the server reads."""
    engine = engine_lab.engine(major)
    assert "moddatetime" in trusted_names()
    assert "trusted = true" in control(engine, "moddatetime")
    assert "trusted = true" not in control(engine, "file_fdw")


def test_vector_comes_with_the_wheel(engine_lab: EngineLab) -> None:
    """From another wheel, and alone: nothing else of that one is on the server's path."""
    engine = engine_lab.engine(18)
    assert "vector" in engine.extensions
    folder = Path(engine.conf["dynamic_library_path"].split(":")[0])
    assert os.listdir(folder) == ["vector.so"]


@pytest.mark.skipif(not SYSTEM.exists(), reason="no system Postgres 15")
def test_the_systems_own_files_stay_as_they_are(tmp_path: Path) -> None:
    """A shadow prefix links to them and replaces nothing of them."""
    share = Path("/usr/share/postgresql/15/extension")
    before = contents(share)
    engine = next(found for found in find_engines(tmp_path) if found.major == 15)
    assert contents(share) == before
    assert not engine.bin_dir.is_relative_to(SYSTEM)
    assert not (engine.bin_dir / "postgres").is_symlink()
    trusted = engine.bin_dir.parents[3] / "share/postgresql/15/extension/moddatetime.control"
    assert not trusted.is_symlink()


@pytest.mark.skipif(not SYSTEM.exists(), reason="no system Postgres 15")
def test_a_bin_folder_that_is_named_comes_first(engine_lab: EngineLab) -> None:
    """And is not listed a second time as one of the system's."""
    engines = find_engines(engine_lab.home, SYSTEM)
    assert (engines[0].source, engines[0].major) == ("bindir", 15)
    assert [engine.source for engine in engines if engine.major == 15] == ["bindir"]


def test_a_bin_folder_without_postgres_is_refused(engine_lab: EngineLab, tmp_path: Path) -> None:
    """With the folder and what is wrong, although there are other engines."""
    with pytest.raises(EngineBroken) as caught:
        find_engines(engine_lab.home, tmp_path / "empty")
    assert str(tmp_path / "empty") in str(caught.value)


def test_a_missing_library_is_said_with_its_package(engine_lab: EngineLab, tmp_path: Path) -> None:
    """A server that cannot be loaded names what to install."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    real = Path("/usr/bin/true").read_bytes()
    (bin_dir / "postgres").write_bytes(real.replace(b"libc.so.6\0", b"libq.so.6\0"))
    (bin_dir / "postgres").chmod(0o755)
    with pytest.raises(EngineBroken) as caught:
        find_engines(engine_lab.home, bin_dir)
    assert "libq.so.6" in str(caught.value)
    assert caught.value.hint == "`apt-get install libq6`"


def test_a_broken_engine_does_not_hide_the_others(engine_lab: EngineLab, tmp_path: Path) -> None:
    """The survey has both; doctor tells of each."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    (bin_dir / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 9.6.1'\n")
    (bin_dir / "postgres").chmod(0o755)
    found = survey(engine_lab.home, bin_dir)
    assert found.engines
    [fault] = found.broken
    assert "9.6.1" in str(fault)


def _find(home: Path) -> list[str]:
    return [engine.id for engine in find_engines(home)]


def test_two_processes_prepare_at_once(tmp_path: Path) -> None:
    """Both get the same, and nothing half-made is left."""
    with ProcessPoolExecutor(2) as pool:
        first, second = pool.map(_find, [tmp_path, tmp_path])
    assert first == second
    assert sorted(os.listdir(tmp_path / "engines")) == sorted(first)


def test_an_engine_whose_files_went_is_made_again(tmp_path: Path) -> None:
    """Somebody removed the binary: the record alone is not believed."""
    engine = find_engines(tmp_path)[0]
    shutil.rmtree(engine.bin_dir)
    assert load_engine(tmp_path, engine.id) is None
    assert find_engines(tmp_path)[0] == engine
    assert (engine.bin_dir / "postgres").exists()


def test_a_home_that_was_moved_has_engines_of_its_own(tmp_path: Path) -> None:
    """Paths in the old records lead elsewhere, so they are not used."""
    find_engines(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    for engine in find_engines(tmp_path / "b"):
        assert engine.read_only[0].is_relative_to(tmp_path / "b")


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """Here it is a file; the error is one for users."""
    (tmp_path / "home").write_text("")
    with pytest.raises(HomeUnusable) as caught:
        find_engines(tmp_path / "home")
    assert "TOFT_HOME" in caught.value.hint
