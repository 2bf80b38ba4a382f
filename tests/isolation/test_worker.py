"""What somebody reaches who has taken a gateway worker over: its backends, and nothing else here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fix_daemon import RunningDaemon
from toft.host import probe

#: Prints which of its arguments can be opened, and whether the host's processes can be seen.
_LOOK = """
import json, os, sys
opened = []
for path in sys.argv[2:]:
    try:
        os.close(os.open(path, os.O_RDONLY))
        opened.append(path)
    except OSError:
        pass
try:
    os.kill(int(sys.argv[1]), 0)
    opened.append("daemon")
except OSError:
    pass
print(json.dumps(opened))
"""


def look(before: list[str], daemon: int, places: list[str]) -> list[str]:
    """What `_LOOK` can open when it is run by that command line."""
    run = subprocess.run(
        [*before, sys.executable, "-I", "-c", _LOOK, str(daemon), *places],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


@pytest.mark.skipif(
    os.geteuid() != 0 or probe.choose_method() != "bubblewrap" or shutil.which("nsenter") is None,
    reason="walls around a worker of another user need root, bubblewrap and, to look inside, nsenter",
)
async def test_a_worker_sees_only_its_backends(toftd: RunningDaemon, lease: dict[str, Any]) -> None:
    """No state, no template, no data directory, no other program; as root outside, all of that opens."""
    worker = toftd.worker_pids()[0]
    lines = Path(f"/proc/{worker}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    uid = status["Uid"].split()[0]
    assert uid != "0"
    assert status["Uid"] == "\t".join([uid] * 4)
    assert status["NoNewPrivs"] == "1"
    assert {status[name] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {"0" * 16}
    backend = toftd.home / "backends" / lease["backend_id"]
    template = next((toftd.home / "templates").glob("base-*/template.json"))
    forbidden = [
        str(path)
        for path in (
            toftd.home / "state.sqlite3",
            template,
            toftd.log,
            backend / "pgdata" / "PG_VERSION",
            Path("/etc/shadow"),
            Path("/etc/passwd"),
        )
    ]
    assert toftd.process is not None
    daemon = toftd.process.pid
    assert look([], daemon, forbidden) == [*forbidden, "daemon"]
    inside = ["nsenter", f"--target={worker}", "--mount", "--pid", f"--setuid={uid}", f"--setgid={uid}", "--"]
    open_to_it = str(backend / "objects")
    assert look(inside, daemon, [*forbidden, open_to_it]) == [open_to_it]
