"""Waits out the grace of a daemon that was stopped while leases lived, then sees to their end.

A daemon that was started meanwhile has the lock and answers: then there is nothing to do.
"""

from __future__ import annotations

import os
import sys
import time

GRACE_SECONDS = 30.0


def main() -> None:
    """Sleep, then become the daemon that ends what is left."""
    time.sleep(GRACE_SECONDS)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "toft.daemon.main", "--end-leases"])  # noqa: S606


if __name__ == "__main__":
    main()
