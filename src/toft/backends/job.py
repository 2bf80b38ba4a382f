"""The main of a job process: `python -m toft.backends.job HOME LANE NUMBER`. Its stdin is a socket.

Short lanes work off one chore after the other and never load an event loop's worth of code they do not
need; the lanes that run tenants' SQL do one chore at a time as a task, so that the daemon's end stops it in
the middle, cleanly.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from toft.backends.chores import (
    AdmitProject,
    BuildTemplate,
    Chore,
    CloneTemplate,
    CopySnapshot,
    Failed,
    FindEngines,
    Finished,
    MakeRecipe,
    Measure,
    Progress,
    PushProject,
    Remove,
    Reply,
    Request,
    Snap,
    decode,
    encode,
)
from toft.backends.fault import explain
from toft.backends.jobs import Report


def main() -> None:
    """Serve one lane until the daemon hangs up."""
    home, lane, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    os.umask(0o077)
    with socket.socket(fileno=os.dup(0)) as sock:
        os.set_inheritable(sock.fileno(), False)
        if lane in ("build", "push"):
            with suppress(asyncio.CancelledError):
                asyncio.run(_serve_tasks(sock, home, number))
            return
        if lane == "sweep":
            os.nice(10)
        gc.disable()  # the work here makes no cycles worth looking for
        with suppress(BrokenPipeError, ConnectionResetError):
            _serve(sock, home)


def _serve(sock: socket.socket, home: Path) -> None:
    with sock.makefile("rb") as lines:
        for line in lines:
            request = decode(line, Request)
            sock.sendall(_line(_outcome(request, home)))


async def _serve_tasks(sock: socket.socket, home: Path, number: int) -> None:
    sock.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=sock, limit=64 << 20)
    work: asyncio.Task[None] | None = None
    queue: asyncio.Queue[Request] = asyncio.Queue()

    async def work_off() -> None:
        while True:
            request = await queue.get()
            writer.write(_line(await _slow_outcome(request, home, number, writer)))

    async with asyncio.TaskGroup() as group:
        work = group.create_task(work_off())
        with suppress(ConnectionError):
            while line := await reader.readline():
                queue.put_nowait(decode(line, Request))
        work.cancel()
    writer.close()


async def _slow_outcome(request: Request, home: Path, number: int, writer: asyncio.StreamWriter) -> Reply:
    def report(text: str) -> None:
        writer.write(_line(Progress(request.seq, text)))

    try:
        return Finished(request.seq, msgspec.Raw(encode(await _do_slowly(request.chore, number, report))))
    except Exception as error:  # the border of the process: every fault goes back to the caller
        return Failed(request.seq, explain(error, home, type(request.chore).__name__).to_json())


async def _do_slowly(chore: Chore, number: int, report: Report) -> Any:
    """What runs tenants' SQL."""
    match chore:
        case BuildTemplate():
            from toft.backends import building

            launch = chore.launch
            if launch.uid is not None:  # what two builders run at the same time must not meet
                launch = msgspec.structs.replace(launch, uid=launch.uid + number)
            return await building.build(msgspec.structs.replace(chore, launch=launch), report)
        case PushProject():
            from toft.backends import pushing

            return await pushing.push_project(chore, report)
        case _:
            raise TypeError(f"{type(chore).__name__} belongs in another lane")


def _outcome(request: Request, home: Path) -> Reply:
    try:
        return Finished(request.seq, msgspec.Raw(encode(_do(request.chore))))
    except Exception as error:  # the border of the process: every fault goes back to the caller
        return Failed(request.seq, explain(error, home, type(request.chore).__name__).to_json())


def _do(chore: Chore) -> Any:
    match chore:
        case CloneTemplate():
            from toft.backends import cloning

            return cloning.clone_template(chore)
        case Snap():
            from toft.backends import copying

            return copying.snap(chore)
        case CopySnapshot():
            from toft.backends import copying

            return copying.copy_snapshot(chore)
        case Remove():
            from toft.host.files import remove_tree

            for path in chore.paths:
                remove_tree(path)
            return None
        case Measure():
            from toft.host.files import tree_bytes

            return [tree_bytes(path) for path in chore.paths]
        case FindEngines():
            from toft.engine.binaries import find_engines

            os.umask(0o022)  # every backend's user reads an engine
            try:
                return find_engines(chore.home, chore.bindir)
            finally:
                os.umask(0o077)
        case AdmitProject():
            from toft.backends import planning

            return planning.admit(chore)
        case MakeRecipe():
            from toft.backends import planning

            return planning.read(chore)
        case BuildTemplate() | PushProject():
            raise TypeError(f"{type(chore).__name__} belongs in another lane")


def _line(reply: Reply) -> bytes:
    return encode(reply) + b"\n"


if __name__ == "__main__":
    main()
