"""`toft bench density`: what many idle backends cost together, the daemon and the gateway included."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from toft.bench.backend import migrated_bundle
from toft.bench.clients import HttpSession
from toft.bench.ground import ground
from toft.bench.measure import Figure, single
from toft.bench.processes import cost_of, processes_of

WATCHED_SECONDS = 30.0


def measure(is_quick: bool, report: Callable[[str], None]) -> list[Figure]:
    """Memory per backend, CPU of all together and wake-ups per backend, each having answered one request."""
    count = 30 if is_quick else 300
    ticks = os.sysconf("SC_CLK_TCK")
    bundle = migrated_bundle(3)
    with ground(pool_size="1", pool_cloned="0", sleep_after="0") as land:
        report(f"taking {count} leases")
        for _ in range(count):
            lease = land.lease(bundle)
            session = HttpSession(lease.http_port)
            session.get("/rest/v1/t_1?select=id&limit=1", lease.anon_key)
            session.close()
        report("letting them become idle")
        time.sleep(5 if is_quick else 75)  # connections that nobody uses go after a minute
        pids = processes_of(str(land.home), land.daemon.settings.run)
        before = cost_of(pids, ticks)
        time.sleep(WATCHED_SECONDS / (6 if is_quick else 1))
        after = cost_of(pids, ticks)
        seconds = WATCHED_SECONDS / (6 if is_quick else 1)
    cpu = (after.cpu_seconds - before.cpu_seconds) / seconds * 100
    wakeups = (after.wakeups - before.wakeups) / seconds / count
    return [
        single("density.count", "backends", count, at_least=count),
        single("density.pss_mb", "MB each", after.pss_kb / 1024 / count, n=count, at_most=10),
        single("density.idle_cpu_pct", "% of one core", cpu, n=count, at_most=2),
        single("density.wakeups", "per second each", wakeups, n=count, at_most=0.3),
    ]
