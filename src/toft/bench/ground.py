"""A daemon of its own for a bench, in a home of its own, with everything gone afterwards.

The home lies on tmpfs where there is one: the figures are then about Toft and Postgres, not about how a disk
deletes files. TOFT_BENCH_DIR names another place.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from toft import settings as options
from toft.client.backend import Daemon, create_lease
from toft.protocol.bundle import Bundle
from toft.protocol.lease import Lease, LeaseSummary
from toft.protocol.routes import Leases, Metrics

SETTLE_SECONDS = 60.0


class Ground:
    """A running daemon and the calls that benches make."""

    def __init__(self, daemon: Daemon, home: Path) -> None:
        self.daemon = daemon
        self.home = home

    def lease(self, bundle: Bundle | None = None) -> Lease:
        """Take a lease that lives until it is released."""
        return msgspec.convert(create_lease(self.daemon, {"ttl_seconds": 3600}, bundle), Lease)

    def release(self, lease: LeaseSummary) -> None:
        """Give it back."""
        self.daemon.call("DELETE", f"/v1/leases/{lease.id}")

    def release_all(self) -> None:
        """Give back every lease there is."""
        for lease in msgspec.convert(self.daemon.call("GET", "/v1/leases"), Leases).leases:
            self.release(lease)

    def pools(self) -> dict[str, dict[str, int]]:
        """Template key → what its pool holds."""
        return msgspec.convert(self.daemon.call("GET", "/v1/metrics"), Metrics).pools

    def settle(self, template: str, ready: int = 0, cloned: int = 0) -> None:
        """Wait until the pool of this template holds so much and nothing is being made for it."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            pool = self.pools().get(template)
            if pool and pool["ready"] >= ready and pool["cloned"] >= cloned and not pool["starting"]:
                return
            time.sleep(0.002)
        raise TimeoutError("the pool did not fill")

    def template_of(self, bundle: Bundle | None = None) -> str:
        """The template that leases of this project come from, made now if need be."""
        lease = self.lease(bundle)
        self.release(lease)
        return lease.template.key


@contextmanager
def ground(**given: str) -> Generator[Ground]:
    """A daemon with these `TOFT_*` settings (names in lower case, without the prefix)."""
    environ = options.environment()
    place = environ.get("TOFT_BENCH_DIR") or ("/dev/shm" if Path("/dev/shm").is_dir() else None)
    home = Path(tempfile.mkdtemp(prefix="toft-bench-", dir=place))
    home.chmod(0o711)
    environ = {name: value for name, value in environ.items() if not name.startswith("TOFT_")}
    environ |= {"TOFT_HOME": str(home), **{"TOFT_" + name.upper(): value for name, value in given.items()}}
    daemon = Daemon(options.load(environ), environ, options.python())
    try:
        yield Ground(daemon, home)
    finally:
        daemon.call("POST", "/v1/stop", {"purge": True})
        shutil.rmtree(home, ignore_errors=True)
