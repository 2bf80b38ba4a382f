"""The command line as a user calls it: a real process, with a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import toft as toft_package
from tests.kit.small_daemon import SmallDaemon, small_daemon

type Toft = Callable[..., subprocess.CompletedProcess[str]]

#: `toft`, as it is in this tree
TOFT = [sys.executable, "-m", "toft.cli.main"]


def plain_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what belongs to a backend or to another home, and with `extra`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TOFT_", "PG", "SUPABASE_", "DATABASE_"))
    }
    return {**kept, "PYTHONPATH": str(Path(toft_package.__file__).parents[1]), **(extra or {})}


@pytest.fixture
def cli_daemon() -> Iterator[SmallDaemon]:
    """A daemon that speaks the control API and has no backends. Its path is short, as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="toft-cli-") as home, small_daemon(Path(home)) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder to stand in."""
    path = tmp_path / "here"
    path.mkdir()
    return path


@pytest.fixture
def toft(cli_daemon: SmallDaemon, folder: Path) -> Toft:
    """Call `toft` with these words, to its end, against the small daemon."""

    def call(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*TOFT, *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=folder,
            env=plain_environment({**cli_daemon.environment(), **environ}),
            stdin=subprocess.DEVNULL,
        )

    return call
