"""What backends ask of the gateway's workers. The daemon gives the one that starts and supervises them."""

from __future__ import annotations

from typing import Protocol

from toft.ids import BackendId
from toft.protocol.worker import BackendSpec, BackendUsage, LogLine


class WorkerLost(Exception):
    """The worker that was asked is gone; what it served will be attached to another."""


class Gateway(Protocol):
    """All workers as one. Every call raises `WorkerLost` when the worker dies meanwhile."""

    async def attach(self, spec: BackendSpec) -> None:
        """Open both ports on the worker that serves the fewest. Raises `PortTaken`."""
        ...

    async def detach(self, backend_id: BackendId) -> None:
        """Close ports and connections. Fine when no worker serves it."""
        ...

    async def relisten(self, backend_id: BackendId, http_port: int, db_port: int) -> None:
        """Move to other ports. Raises `PortTaken`, and stays where it is."""
        ...

    async def set_awake(self, backend_id: BackendId, *, is_awake: bool, failure: str | None = None) -> None:
        """Tell whether the postmaster runs."""
        ...

    async def log(self, backend_id: BackendId) -> list[LogLine]:
        """What its services have said about faults, oldest first."""
        ...

    async def warm(self, backend_id: BackendId) -> None:
        """Have it made ready for its first request; returns before it is."""
        ...

    async def usage(self) -> dict[str, BackendUsage]:
        """What each attached backend did."""
        ...
