"""Waits out the grace of a daemon that was stopped while leases lived, then sees to their end.

The next daemon makes it superfluous: the moment that one's socket appears, this process ends. When nobody
came it becomes the daemon that ends what is left.
"""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

from toft import settings as options
from toft.backends.places import Places
from toft.host.watch import Watch
from toft.protocol.lease import GRACE_SECONDS
from toft.world import Clock, SystemClock


def main() -> None:
    """Wait, and become the daemon that ends what is left if there is no other."""
    settings = options.load()
    places = Places(home=Path(settings.home), run=Path(settings.run))
    if is_anybody_coming(places, SystemClock(), GRACE_SECONDS) or not places.state.exists():
        return
    os.execv(sys.executable, [sys.executable, "-P", "-m", "toft.daemon.main", "--end-leases"])  # noqa: S606


def is_anybody_coming(places: Places, clock: Clock, seconds: float) -> bool:
    """Wait for a daemon for so long; also when the folder of its socket has gone there is nothing to do."""
    deadline = clock.mono() + seconds
    try:
        watch = Watch(places.run, names=True)
    except FileNotFoundError:
        return True
    with watch:
        news = select.poll()
        news.register(watch, select.POLLIN)
        while not places.control_socket.exists():
            left = deadline - clock.mono()
            if left <= 0 or not news.poll(left * 1000):
                return False
            watch.clear()
            if not places.run.exists():
                break
    return True


if __name__ == "__main__":
    main()
