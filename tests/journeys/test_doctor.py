"""`toft doctor`: what it finds is so, and what it does not find is said with what mends it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kit.fix_daemon import RunningDaemon
from tests.kit.real_cli import RealCli


@pytest.fixture
def cli(toftd: RunningDaemon, folder: Path) -> RealCli:
    return RealCli(toftd, folder)


async def test_doctor_knows_the_engines(cli: RealCli, toftd: RunningDaemon) -> None:
    """Each engine comes with its version, source and extensions, best first, as the daemon uses them."""
    told = cli.json("doctor")
    served = (await toftd.ask("GET", "/v1/engines")).json["engines"]
    assert [engine["id"] for engine in told["engines"]] == [engine["id"] for engine in served]
    for engine in told["engines"]:
        done = subprocess.run(
            [Path(engine["bin_dir"]) / "postgres", "--version"],
            capture_output=True,
            text=True,
            env={"LD_LIBRARY_PATH": str(Path(engine["bin_dir"]).parent / "lib")},
        )
        assert engine["version"] in done.stdout
        assert {"pgcrypto", "uuid-ossp", "plpgsql"} <= set(engine["extensions"])
    assert told["daemon"].startswith("running")


async def test_doctor_looks_at_everything(cli: RealCli) -> None:
    """Reflink, bubblewrap, gVisor and KVM are each found or not; a cure is one line."""
    findings = {one["name"]: one for one in cli.json("doctor")["findings"]}
    assert {"bubblewrap", "reflink", "gVisor", "KVM", "disk"} <= set(findings)
    for one in findings.values():
        assert one["detail"]
        assert one["mend"] is None or "\n" not in one["mend"]
    text = cli("doctor").stdout
    for name in findings:
        assert name in text


async def test_doctor_names_a_broken_engine(cli: RealCli, tmp_path: Path) -> None:
    """A TOFT_PG_BINDIR that does not run is named with its cause, beside the engines that do."""
    fake = tmp_path / "postgres"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    done = cli("doctor", TOFT_PG_BINDIR=str(tmp_path))
    assert f"the Postgres in {tmp_path} does not run" in done.stdout
    assert done.returncode == 0
