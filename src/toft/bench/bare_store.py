"""A floor for Storage: `python -m toft.bench.bare_store FOLDER`, bytes to files and back over the same HTTP.

No keys, no database, no digest. It prints its port and serves until its standard input closes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

import uvloop

from toft.http.message import Request, Response
from toft.http.server import listen

_PIECE = 512 * 1024


class _Store:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def handle(self, request: Request) -> Response:
        path = self._folder / request.raw_path.rpartition("/")[2]
        if request.method == "PUT":
            beside = path.with_name(path.name + ".new")
            with beside.open("wb", buffering=0) as file:
                async for chunk in request.body:
                    file.write(chunk)
            beside.rename(path)
            return Response(200, [], b"{}")
        file = path.open("rb", buffering=0)
        size = path.stat().st_size
        headers = [(b"content-length", str(size).encode())]
        if size <= _PIECE:
            with file:
                return Response(200, headers, file.read())
        return Response(200, headers, _pieces(file))


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece


async def _serve(folder: Path) -> None:
    listener = await listen(_Store(folder).handle)
    sys.stdout.write(f"{listener.port}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await listener.close()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1])))
