"""Many at once: leases that come and go, and command lines that find no daemon."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon
from tests.kit.real_cli import RealCli, read_line, take_charge


async def use(lease: dict[str, Any]) -> tuple[str, str]:
    """Write to its database and read back: what it holds, and which cluster that is."""
    session = await asyncpg.connect(
        host=lease["host"], port=lease["db_port"], user="postgres", password=lease["password"], ssl=False
    )
    try:
        await session.execute(f"create table mark as select '{lease['id']}'::text as text")
        rows = await session.fetch("select text from mark")
        return ",".join(row["text"] for row in rows), await session.fetchval("show data_directory")
    finally:
        await session.close()


async def test_the_pool_hands_nothing_out_twice(toftd: RunningDaemon) -> None:
    """Through waves of takes and releases at once, no backend ever serves a second lease."""
    seen: set[str] = set()
    for _ in range(4):
        wave = await asyncio.gather(*(toftd.take() for _ in range(6)))
        backends = {lease["backend_id"] for lease in wave}
        assert len(backends) == len(wave)
        assert not backends & seen
        seen |= backends
        ends = [toftd.ask("DELETE", f"/v1/leases/{lease['id']}") for lease in wave]
        again = asyncio.gather(*(toftd.take() for _ in range(2)))
        assert {answer.status for answer in await asyncio.gather(*ends)} == {204}
        for lease in await again:
            assert lease["backend_id"] not in seen
            seen.add(lease["backend_id"])
            assert await use(lease)


async def test_commands_that_find_no_daemon(own_cli: RealCli, own_toftd: RunningDaemon) -> None:
    """Several `toft run` at once, and no daemon: one is started and outlives them; each has its backend."""
    words = ("run", "--", "sh", "-c", "echo $TOFT_INSTANCE_ID $PGPORT; read line")
    with own_cli.started(*words) as one, own_cli.started(*words) as two, own_cli.started(*words) as three:
        processes = (one, two, three)
        said = [await asyncio.to_thread(read_line, process) for process in processes]
        assert len({word for line in said for word in line.split()}) == 6
        await take_charge(own_toftd)
        held = await own_toftd.leases()
        assert {lease["id"] for lease in held} == {line.split()[0] for line in said}
        for process in processes:
            process.communicate("\n", timeout=PATIENCE_SECONDS)
        assert [process.returncode for process in processes] == [0, 0, 0]
    for lease in held:
        await own_toftd.until_gone(lease)
    assert own_toftd.said().count("daemon.started") == 1
    assert own_cli.json("daemon", "status")["running"]
