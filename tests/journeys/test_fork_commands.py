"""`toft fork`, `toft checkpoint` and `toft reset`, as a user types them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.kit.fix_cli import TOFT, plain_environment
from tests.kit.fix_daemon import RunningDaemon


class _Shell:
    def __init__(self, toftd: RunningDaemon, folder: Path) -> None:
        self._environ = plain_environment({"TOFT_HOME": str(toftd.home), "TOFT_RUN": str(toftd.run)})
        self._folder = folder

    def run(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*TOFT, *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == status, done.stderr
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").stdout)

    def sql(self, lease: str, statement: str) -> str:
        return self.run("psql", lease, "--", "-Atqc", statement).stdout.strip()


def test_fork_checkpoint_reset(shared_toftd: RunningDaemon, folder: Path) -> None:
    """The whole walk: create, fork, checkpoint, restore, reset; in text and as JSON."""
    shell = _Shell(shared_toftd, folder)
    shell.run("lease", "create", "--label", "parent")
    shell.sql("parent", "create table note as select 1 as number")

    table = shell.run("fork", "parent", "-n", "2", "--label", "copy", "--ttl", "5m")
    assert [line.split()[1] for line in table.stdout.splitlines()] == ["LABEL", "copy-1", "copy-2"]
    assert "stood still for" in table.stderr
    assert shell.sql("copy-2", "select number from note") == "1"
    made = shell.json("fork", "copy-1", "--label", "third")
    assert (len(made["forks"]), made["forks"][0]["label"]) == (1, "third")
    refused = shell.run("fork", "parent", "--count", "x", status=2)
    assert "a number of forks" in refused.stderr
    assert "1 to 100" in shell.run("fork", "parent", "-n", "1000", status=125).stderr

    assert shell.run("checkpoint", "list", "parent").stderr == "note: no checkpoints\n"
    assert shell.run("checkpoint", "create", "parent", "--name", "a b", status=125).stderr
    assert shell.run("checkpoint", "create", "parent", "--name", "start").stdout == "start\n"
    shell.sql("parent", "update note set number = 2")
    assert shell.json("checkpoint", "create", "parent")["name"] == "1"
    assert shell.run("checkpoint", "restore", "start", "parent").stdout.startswith("l_")
    assert shell.sql("parent", "select number from note") == "1"
    assert shell.json("checkpoint", "restore", "1", "parent")["to"] == "1"
    assert shell.sql("parent", "select number from note") == "2"
    listed = shell.run("checkpoint", "list", "parent").stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["CHECKPOINT", "start", "1"]
    shell.run("checkpoint", "delete", "start", "parent")
    assert "has no checkpoint" in shell.run("checkpoint", "restore", "start", "parent", status=125).stderr

    assert "as it was at the start" in shell.run("reset", "parent").stdout
    assert shell.sql("parent", "select to_regclass('note') is null") == "t"
    for lease in ("parent", "copy-1", "copy-2", "third"):
        shell.run("lease", "release", lease)
