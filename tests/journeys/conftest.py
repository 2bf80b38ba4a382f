"""The command line against a real daemon: the shared one, or one of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.fix_daemon import RunningDaemon
from tests.kit.real_cli import RealCli


@pytest.fixture
def cli(toftd: RunningDaemon, folder: Path) -> RealCli:
    """`toft` against the daemon that tests share."""
    return RealCli(toftd, folder)


@pytest.fixture
def own_cli(own_toftd: RunningDaemon, folder: Path) -> RealCli:
    """`toft` against a home of the test's own, where no daemon runs yet."""
    return RealCli(own_toftd, folder)
