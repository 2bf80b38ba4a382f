"""Everything at once: commands come and go while each kind of process is killed, stopped and cleaned up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path

from tests.kit.fix_cli import TOFT
from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon
from tests.kit.real_cli import RealCli, take_charge

#: What the words of a process say that it is.
KINDS = {
    "daemon": "toft.daemon.main",
    "worker": "toft.gateway.worker",
    "job": "toft.backends.job",
    "postmaster": "postgres -D",
    "command": "toft.cli.main run",
}
#: What a command may end with in a storm: words for somebody who asked while the ground shook.
PASSING = {
    "TOFT-BACKEND-FAILED",
    "TOFT-DAEMON-LEFT",
    "TOFT-DAEMON-STOPPING",
    "TOFT-DAEMON-UNREACHABLE",
    "TOFT-ENGINE-TEMPLATE",
}


async def call(cli: RealCli, *words: str) -> tuple[int, str, str]:
    """Run `toft` beside others, to its end: its status, and the code and words of its error if it had one."""
    process = await asyncio.create_subprocess_exec(
        *TOFT,
        *words,
        cwd=cli.folder,
        env=cli.environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(4 * PATIENCE_SECONDS):
        _, errors = await process.communicate()
    assert process.returncode is not None
    said = [json.loads(line)["error"] for line in errors.decode().splitlines() if line.startswith('{"error"')]
    if process.returncode == 125:
        assert said, errors
    return process.returncode, said[-1]["code"] if said else "", said[-1]["title"] if said else ""


async def use(clis: Sequence[RealCli], chance: random.Random, count: int) -> list[tuple[int, str, str]]:
    """A user who asks for one backend after the other."""
    outcomes: list[tuple[int, str, str]] = []
    for _ in range(count):
        cli = chance.choice(clis)
        if chance.random() < 0.7:
            outcomes.append(await call(cli, "run", "--json", "--", "sleep", "0.2"))
        else:
            outcomes.append(await call(cli, "lease", "create", "--json", "--ttl", "3s"))
    return outcomes


def strike(daemon: RunningDaemon, chance: random.Random) -> None:
    """kill -9 of one process of some kind."""
    mark = KINDS[chance.choice(sorted(KINDS))]
    found = [int(line.partition(":")[0]) for line in daemon.processes() if mark in line]
    if found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(found), signal.SIGKILL)


async def rage(cli: RealCli, chance: random.Random, users: asyncio.Future[object]) -> None:
    """Kill, stop and collect until the users are done."""
    while not users.done():
        await asyncio.wait([users], timeout=chance.random())
        luck = chance.random()
        if luck < 0.8:
            strike(cli.daemon, chance)
        elif luck < 0.9:
            await call(cli, "gc", "--templates", "--json")
        else:
            await call(cli, "daemon", "stop", "--json")


async def test_a_storm(own_toftd: RunningDaemon, tmp_path: Path) -> None:
    """Who is hit gets a clear word; afterwards all works as before, and a purge finds everything."""
    chance = random.Random(20)
    clis: list[RealCli] = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        clis.append(RealCli(own_toftd, tmp_path / str(number)))
    clis[1].write({"1_a.sql": "create table a (id int);"})
    clis[2].write({"1_a.sql": "create table a (id int);", "2_b.sql": "select pg_sleep(0.5);"})
    await own_toftd.start()
    await own_toftd.take(ttl_seconds=2)
    users = asyncio.gather(*(use(clis, chance, 6) for _ in range(3)))
    await rage(clis[0], chance, users)
    for outcomes in await users:
        for status, code, words in outcomes:
            assert status in (0, -signal.SIGKILL) or code in PASSING, words
    for cli in clis:
        assert await call(cli, "run", "--json", "--", "true") == (0, "", "")
    await take_charge(own_toftd)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await own_toftd.leases():
            await asyncio.sleep(0.05)
