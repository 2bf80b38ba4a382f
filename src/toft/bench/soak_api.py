"""`python -m toft.bench.soak_api [REQUESTS]`: a million requests, and the gateway's memory meanwhile."""

from __future__ import annotations

import sys

from toft.bench.api import ApiBench
from toft.bench.ground import ground
from toft.bench.memory import GROWTH_MB, measure_memory


def main() -> int:
    """Serve them; the exit status says whether memory stayed as it was."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with ground(pool_size="1", pool_cloned="0", sleep_after="0", workers="1") as land:
        bench = ApiBench(land, 1.0)
        figure = measure_memory(bench.meter, bench.mixed, 50.0, _say, requests)
    grown = figure.value or 0.0
    print(f"{figure.n} requests: {grown:+.2f} MB after the first fifth (at most {GROWTH_MB})")
    return 0 if grown <= GROWTH_MB else 1


def _say(text: str) -> None:
    sys.stderr.write(f"soak: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
