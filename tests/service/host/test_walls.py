"""Walls around real processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from toft.host import probe, processes
from toft.host.confine import Confinement, Method, confine

UID = 60_000 if os.geteuid() == 0 else None
needs_bubblewrap = pytest.mark.skipif(probe.choose_method() != "bubblewrap", reason="bubblewrap does not run")


def walls(tmp_path: Path, **more: object) -> Confinement:
    seen = [*probe.system_libraries(), Path("/usr/bin")]
    settings: dict[str, object] = {
        "method": "bubblewrap",
        "uid": UID,
        "read_only": tuple(str(path) for path in seen if not path.is_symlink()),
        "links": (
            *((str(path), str(path.readlink())) for path in seen if path.is_symlink()),
            ("/bin", "usr/bin"),
        ),
        "writable": (str(tmp_path),),
        **more,
    }
    return Confinement(**settings)  # pyright: ignore[reportArgumentType]


def ask(around: Confinement, script: str) -> str:
    answer = processes.run(confine(around, ["/bin/sh", "-c", script]))
    assert answer.status == 0, answer.errors
    return answer.output.strip()


@needs_bubblewrap
def test_only_what_was_listed_is_there(tmp_path: Path) -> None:
    """No home, no other temporary folder, no /proc, no /dev; what is read-only stays so."""
    if UID is not None:
        os.chown(tmp_path, UID, UID)
    assert set(ask(walls(tmp_path), "ls -A /").split()) <= {"bin", "etc", "lib", "lib64", "tmp", "usr", "dev"}
    assert ask(walls(tmp_path), f"ls -A {tmp_path.parent}") == tmp_path.name
    assert ask(walls(tmp_path), f"echo written > {tmp_path}/f; cat {tmp_path}/f") == "written"
    assert "Read-only" in ask(walls(tmp_path), "touch /usr/lib/x 2>&1 || true")


@needs_bubblewrap
def test_there_is_no_network_and_nobody_else(tmp_path: Path) -> None:
    """The process is the first and only one of its namespace; its network has a loopback of its own."""
    around = walls(tmp_path, has_devices=True)
    assert ask(around, "echo $$") == "1"
    assert "lo:" in ask(around, "tail -n +3 /proc/net/dev")
    assert len(ask(around, "tail -n +3 /proc/net/dev").splitlines()) == 1
    pids = [name for name in ask(around, "ls /proc").split() if name.isdigit()]
    assert len(pids) <= 2


@needs_bubblewrap
def test_no_capability_and_no_way_to_one_is_left(tmp_path: Path) -> None:
    """Neither in effect nor to be gained, whoever started it."""
    status = ask(
        walls(tmp_path, has_devices=True),
        "grep -E '^(CapEff|CapPrm|CapAmb|NoNewPrivs|Uid)' /proc/self/status",
    )
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == int(fields["CapAmb"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    assert fields["Uid"].split()[0] == str(UID if UID is not None else os.geteuid())


@pytest.mark.skipif(UID is None, reason="only root becomes somebody else")
def test_setpriv_becomes_another_user(tmp_path: Path) -> None:
    """With its own group and no other, and without capabilities."""
    around = Confinement(method="setpriv", uid=UID, setpriv=probe.tool("setpriv") or "")
    assert ask(around, "id -u; id -G") == f"{UID}\n{UID}"
    assert ask(around, "grep CapEff /proc/self/status").endswith("0000000000000000")


@pytest.mark.parametrize("method", ["setpriv", "none"])
async def test_a_helper_ends_with_its_starter(tmp_path: Path, method: Method) -> None:
    """Killed with -9 or not, whoever started it takes it along."""
    uid = UID if method == "setpriv" else None
    if method == "setpriv" and uid is None:
        pytest.skip("only root becomes somebody else")
    around = Confinement(method=method, uid=uid, dies_with_parent=True, setpriv=probe.tool("setpriv") or "")
    line = confine(around, ["/bin/sh", "-c", "echo ready; exec sleep 60"])
    log = tmp_path / "log"
    with log.open("wb") as output:
        starter = processes.spawn([sys.executable, "-c", STARTER, *line], {}, output=output.fileno())
    head = processes.identify(starter)
    assert head is not None
    while b"ready" not in log.read_bytes():
        assert processes.is_alive(head), log.read_text()
    family = processes.descendants(head.pid)
    assert family
    os.kill(head.pid, 9)
    for member in (head, *family):
        await processes.wait_gone(member)


STARTER = "import os, sys, time; os.posix_spawn(sys.argv[1], sys.argv[1:], {}); time.sleep(60)"


def test_what_the_machine_has_is_found_by_trying(tmp_path: Path) -> None:
    """Each finding has a name and a detail; what is missing and can be had names how."""
    found = {finding.name: finding for finding in probe.findings(tmp_path)}
    assert {"bubblewrap", "user namespaces", "setpriv", "reflink", "disk", "gVisor", "KVM"} == set(found)
    assert all(finding.detail for finding in found.values())
    assert found["disk"].is_there
    for name in ("bubblewrap", "gVisor"):
        assert found[name].is_there or found[name].mend
    assert os.listdir(tmp_path) == []


def test_missing_libraries_are_named(tmp_path: Path) -> None:
    """By what the loader says about a real library; one that loads is not mentioned."""
    library = next(Path("/usr/lib").glob("*/libz.so.1"), None)
    if library is None:
        pytest.skip("no zlib in the usual place")
    broken = tmp_path / "broken.so"
    broken.write_bytes(library.read_bytes().replace(b"libc.so.6\0", b"libq.so.6\0"))
    assert probe.missing_libraries([library, broken], []) == {broken: ("libq.so.6",)}
