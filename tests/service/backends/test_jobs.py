"""Job processes: chores in lanes, faults that come back as they were, and processes that die."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import NoneType

import pytest

import toft as toft_package
from toft.backends.chores import AdmitProject, CloneTemplate, Measure, Remove
from toft.backends.jobs import Jobs
from toft.errors.daemon import BadRequest
from toft.errors.engine import TemplateFailed
from toft.errors.shape import ToftError
from toft.host import processes
from toft.protocol.worker import Secrets
from toft.telemetry.events import Event, JobDied
from toft.telemetry.log import Telemetry


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
async def jobs(tmp_path: Path, told: list[Event]) -> AsyncIterator[Jobs]:
    environ = {**os.environ, "PYTHONPATH": str(Path(toft_package.__file__).parents[1])}
    (tmp_path / "backends").mkdir()  # what makes it a home
    argv = (sys.executable, "-P", "-m", "toft.backends.job", str(tmp_path))
    jobs = Jobs(argv, environ, tmp_path / "log", Telemetry(told.append))
    yield jobs
    pids = jobs.pids()
    await jobs.close()
    assert [pid for pid in pids if processes.identify(pid)] == []


async def test_chores_are_done(jobs: Jobs, tmp_path: Path) -> None:
    """Directories are measured and removed."""
    folder = tmp_path / "folder" / "deep"
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"x" * 100_000)
    [size] = await jobs.run(Measure((tmp_path / "folder",)), list[int])
    assert 100_000 <= size < 200_000
    await jobs.run(Remove((tmp_path / "folder", tmp_path / "never")), NoneType)
    assert not (tmp_path / "folder").exists()


async def test_faults_come_back(jobs: Jobs, tmp_path: Path) -> None:
    """An error of the catalogue is raised here as the same class; another one with its words."""
    chore = CloneTemplate(templates=tmp_path, key="base-0", folder=tmp_path / "b", uid=None)
    with pytest.raises(TemplateFailed, match="not there any more"):
        await jobs.run(chore, Secrets)
    (tmp_path / "received").write_bytes(b"nonsense")
    with pytest.raises(BadRequest):
        await jobs.run(AdmitProject(tmp_path / "received", "0", tmp_path / "p"), NoneType)
    assert not (tmp_path / "received").exists()
    with pytest.raises(ToftError, match="FileNotFoundError"):
        await jobs.run(AdmitProject(tmp_path / "nothing", "0", tmp_path / "p"), NoneType)


async def test_many_at_once(jobs: Jobs, tmp_path: Path) -> None:
    """Chores of one lane are answered each with its own answer."""
    folders = [tmp_path / str(number) for number in range(20)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        (folder / "file").write_bytes(b"x" * 10_000 * number)
    alone = [await jobs.run(Measure((folder,)), list[int]) for folder in folders]
    together = await asyncio.gather(*(jobs.run(Measure((folder,)), list[int]) for folder in folders))
    assert together == alone
    assert len(jobs.pids()) == 1


async def test_a_process_that_dies_is_replaced(jobs: Jobs, tmp_path: Path, told: list[Event]) -> None:
    """The chore that it had in hand is begun again by another."""
    await jobs.run(Measure(()), list[int])
    [pid] = jobs.pids()
    os.kill(pid, signal.SIGSTOP)
    asked = asyncio.ensure_future(jobs.run(Measure((tmp_path,)), list[int]))
    await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    assert len(await asked) == 1
    assert pid not in jobs.pids()
    assert told == [JobDied(lane="sweep", jobs=1)]


async def test_after_the_end_nothing_is_begun(jobs: Jobs) -> None:
    """A daemon that stops begins no chore."""
    await jobs.run(Measure(()), list[int])
    await jobs.close()
    with pytest.raises(ToftError, match="stopping"):
        await jobs.run(Measure(()), list[int])
