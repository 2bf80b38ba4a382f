"""The wall clock jumps, as when a machine wakes up or finds its time server; and times without end."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.kit import jumping_toftd
from tests.kit.fix_daemon import RunningDaemon
from tests.kit.real_cli import RealCli
from toft import __version__
from toft.store.ledger import Entry, find_break

YEARS = 10 * 365 * 86400


@pytest.fixture
def wall(own_toftd: RunningDaemon, tmp_path: Path) -> Path:
    """What the daemon's wall clock is pushed by: a file to write seconds into."""
    path = tmp_path / "jump"
    path.write_text("0")
    own_toftd.command = [sys.executable, "-P", jumping_toftd.__file__]
    own_toftd.environ["JUMP"] = str(path)
    return path


@pytest.mark.parametrize("seconds", [YEARS, -YEARS])
async def test_the_wall_clock_jumps(own_toftd: RunningDaemon, wall: Path, seconds: int) -> None:
    """No lease ends early or late when the time of day jumps by years, not even across a restart."""
    await own_toftd.start()
    long, short = await own_toftd.take(ttl_seconds=3600), await own_toftd.take(ttl_seconds=2)
    held, stream = await own_toftd.hold(ttl_seconds=1)
    wall.write_text(str(seconds))
    await own_toftd.until_gone(short)
    new = await own_toftd.take(ttl_seconds=3600)
    assert {lease["id"] for lease in await own_toftd.leases()} == {long["id"], held["id"], new["id"]}
    [shown] = [lease for lease in await own_toftd.leases() if lease["id"] == long["id"]]
    left = datetime.fromisoformat(shown["expires_at"]) - datetime.now(UTC) - timedelta(seconds=seconds)
    assert timedelta(minutes=30) < left <= timedelta(hours=1)
    renewal = {"credential": long["credential"], "ttl_seconds": 7200}
    assert (await own_toftd.ask("POST", f"/v1/leases/{long['id']}/renew", renewal)).status == 200
    await own_toftd.kill()
    assert await stream.line() is None
    wall.write_text(str(-seconds))
    await own_toftd.start()
    again = await own_toftd.open(f"/v1/leases/{held['id']}/hold", {"credential": held["credential"]})
    await again.until("lease")
    assert {lease["id"] for lease in await own_toftd.leases()} == {long["id"], held["id"], new["id"]}
    again.close()
    await own_toftd.until_gone(held)
    rows = own_toftd.rows("SELECT seq, at, kind, subject, facts, seal FROM ledger ORDER BY seq")
    assert find_break([Entry(*row) for row in rows]) is None


@pytest.mark.parametrize("ttl", ["0", "0s", "10y", "99999999999999999d"])
async def test_times_out_of_range(cli: RealCli, toftd: RunningDaemon, ttl: str) -> None:
    """A time to live of nothing or of ten years takes no lease, and the bounds are said."""
    for words in (("run", "--ttl", ttl, "--", "true"), ("lease", "create", "--ttl", ttl)):
        error = cli.refusal(*words)
        assert error["code"] == "TOFT-LEASE-TTL"
        assert "30 days" in error["remedy"]
    assert await toftd.leases() == []


async def test_the_longest_time(toftd: RunningDaemon) -> None:
    """Thirty days are had, and a short lease beside them ends when it should."""
    long = await toftd.take(ttl_seconds=30 * 86400)
    await toftd.until_gone(await toftd.take(ttl_seconds=1))
    assert [lease["id"] for lease in await toftd.leases()] == [long["id"]]
    answer = await toftd.ask("POST", "/v1/leases", {"version": __version__, "ttl_seconds": 1e300})
    assert (answer.status, answer.json["code"]) == (400, "TOFT-LEASE-TTL")
