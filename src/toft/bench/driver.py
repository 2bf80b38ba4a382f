"""Our driver alone, a process of its own: `python -m toft.bench.driver`; a `Task` on stdin, a rate on stdout.

It does what pgbench does: the same statements in one pipeline, over and over, on so many connections.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

import msgspec
import uvloop

from toft.pg.connection import Connection, connect
from toft.pg.wire import Statement, encode


class Task(msgspec.Struct, frozen=True):
    """What to run where, and for how long."""

    socket_path: str
    user: str
    password: str
    statements: list[Statement]
    connections: int
    seconds: float


async def _run(task: Task) -> float:
    # As the Data API does: the settings are encoded once.
    first, *rest = task.statements
    named = [
        msgspec.structs.replace(first, params=(), more=encode(first.params), name_key=b"first"),
        *(msgspec.structs.replace(each, name_key=each.sql) for each in rest),
    ]
    connections = [await connect(task.socket_path, task.user, task.password) for _ in range(task.connections)]
    for connection in connections:
        await connection.pipeline(named)
    began = time.perf_counter()
    counts = await asyncio.gather(*(_repeat(one, named, began + task.seconds) for one in connections))
    took = time.perf_counter() - began
    for connection in connections:
        connection.close()
    return sum(counts) / took


async def _repeat(connection: Connection, statements: Sequence[Statement], until: float) -> int:
    count = 0
    while time.perf_counter() < until:
        results = await connection.pipeline(statements)
        assert results[-1].rows
        count += 1
    return count


def main() -> None:
    """Run the task."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    sys.stdout.write(f"{uvloop.run(_run(task))}\n")


if __name__ == "__main__":
    main()
