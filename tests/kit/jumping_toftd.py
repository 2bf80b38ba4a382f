"""toftd with a wall clock that a test can push: by the seconds in the file that JUMP names."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timedelta
from pathlib import Path

from toft.daemon import main as toftd
from toft.world import SystemClock


class PushedClock(SystemClock):
    """The machine's clocks, but for the time of day."""

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=pushed())

    def unix(self) -> float:
        return super().unix() + pushed()


def pushed() -> float:
    """By how many seconds."""
    return float(Path(os.environ["JUMP"]).read_text())


toftd.SystemClock = PushedClock

if __name__ == "__main__":
    sys.exit(toftd.main())
