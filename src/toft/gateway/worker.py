"""A gateway worker's process: `python -m toft.gateway.worker --socket PATH --index N`.

It serves what the daemon attaches through its socket and outlives that daemon: the next one finds it by the
same socket. Whoever starts it has confined it by its argument vector; here it only gives up what it can by
itself.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import logging
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import uvloop

from toft.gateway.attach import Attachments
from toft.gateway.channel import Channel
from toft.gateway.services import Surroundings
from toft.world import SystemClock, SystemEntropy

_PR_SET_DUMPABLE: Final = 4
#: A backend's objects live long and requests leave no cycles worth a look every 700 allocations.
_GC_THRESHOLD: Final = 20_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to end by the daemon or by SIGTERM."""
    parser = argparse.ArgumentParser(prog="toft.gateway.worker")
    parser.add_argument("--socket", type=Path, required=True, help="where the daemon's channel is accepted")
    parser.add_argument("--index", type=int, required=True, help="which worker this is, for its log lines")
    options = parser.parse_args(argv)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format=f"%(asctime)s %(levelname)s worker-{options.index} %(name)s: %(message)s",
    )
    _limit_itself()
    uvloop.run(_serve(options.socket))
    return 0


async def _serve(socket_path: Path) -> None:
    surroundings = Surroundings(SystemClock(), SystemEntropy())
    attachments = Attachments(surroundings)
    channel = Channel(attachments)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, channel.shutdown.set)
    await channel.listen(socket_path)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 10, 10)
    try:
        await channel.shutdown.wait()
    finally:
        await attachments.close()
        channel.close()
        await surroundings.close()


def _limit_itself() -> None:
    """As many descriptors as allowed, and no core dump: memory holds the keys of every backend."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
