"""The real Supabase CLI, run against a cluster of ours: what it does with a project is what ours must do.

The test suite does not need it: SUPABASE_CLI names its executable (npm package `@supabase/cli-linux-x64`,
version 2.117.0) where it is at hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

from tests.kit.fix_supabase import PASSWORD, SupabaseCluster

EXECUTABLE = os.environ.get("SUPABASE_CLI", "")


async def push(cluster: SupabaseCluster, project: Path, scratch: Path) -> tuple[int, str]:
    """`db push` with everything included: exit status and output. The project's folder is copied first."""
    folder = scratch / "project"
    shutil.copytree(project, folder)
    home = scratch / "home"
    home.mkdir()
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "NO_COLOR": "1",
        "DO_NOT_TRACK": "1",
        "SUPABASE_TELEMETRY_DISABLED": "1",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
    }
    async with _on_tcp(cluster.socket_path) as port:
        url = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}/postgres?sslmode=disable"
        everything = ("--include-all", "--include-roles", "--include-seed", "--yes")
        process = await asyncio.create_subprocess_exec(
            *(EXECUTABLE, "db", "push", *everything, "--db-url", url),
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode is not None
    return process.returncode, output.decode(errors="replace")


@contextlib.asynccontextmanager
async def _on_tcp(socket_path: str) -> AsyncGenerator[int]:
    """A port of loopback that leads to the socket: the CLI speaks TCP only."""
    tasks: set[asyncio.Task[None]] = set()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(socket_path)
        for pair in ((reader, back), (there, writer)):
            task = asyncio.create_task(pour(*pair))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
