"""Which backends live here. Each lives in exactly one worker, so no process shares anything of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from toft.gateway.served import Served
from toft.gateway.services import Surroundings
from toft.protocol.worker import BackendSpec, BackendUsage, LogLine


class UnknownBackend(Exception):
    """No backend of that id is attached here."""


class Attachments:
    """The backends of this worker by id."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        #: asks the daemon to start a backend's postmaster; the channel puts itself here
        self.wake: Callable[[str], None] = lambda _: None
        self._served: dict[str, Served] = {}
        #: what is detached and still winds down
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def ports(self) -> dict[str, tuple[int, int]]:
        """What is attached: id → (http_port, db_port)."""
        return {name: (served.spec.http_port, served.spec.db_port) for name, served in self._served.items()}

    async def attach(self, spec: BackendSpec) -> None:
        """Serve a backend, or serve one that is here already by its new spec. Raises `PortTaken`."""
        served = self._served.get(spec.backend_id)
        if served is not None:
            await served.update(spec)
            return
        name = spec.backend_id
        served = Served(spec, self._surroundings, lambda: self.wake(name))
        try:
            await served.open()
        except BaseException:
            served.cut("it could not be attached")
            raise
        self._served[name] = served

    def detach(self, backend_id: str) -> None:
        """Cut a backend off: its ports are free when this returns. What was cancelled ends by itself."""
        served = self._served.pop(backend_id, None)
        if served is not None:
            served.cut("this backend is gone")
            ending = asyncio.get_running_loop().create_task(served.wait_quiet())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def relisten(self, backend_id: str, http_port: int, db_port: int) -> None:
        """Move a backend to other ports. Raises `PortTaken`, `UnknownBackend`."""
        served = self._find(backend_id)
        await served.update(msgspec.structs.replace(served.spec, http_port=http_port, db_port=db_port))

    def set_awake(self, backend_id: str, *, is_awake: bool, failure: str | None) -> None:
        """What the daemon tells about a postmaster. Raises `UnknownBackend`."""
        self._find(backend_id).set_awake(is_awake=is_awake, failure=failure)

    def warm(self, backend_id: str) -> None:
        """Make ready for the first request. Raises `UnknownBackend`."""
        self._find(backend_id).warm()

    def ask_again(self) -> None:
        """Repeat to a new daemon what waits to be woken."""
        for served in self._served.values():
            served.upstream.ask_again()

    def usage(self) -> dict[str, BackendUsage]:
        """What each backend did."""
        return {name: served.usage() for name, served in self._served.items()}

    def log(self, backend_id: str) -> list[LogLine]:
        """What a backend's services have said. Raises `UnknownBackend`."""
        return self._find(backend_id).journal.lines

    async def close(self) -> None:
        """Detach everything and wait until it is quiet."""
        for name in tuple(self._served):
            self.detach(name)
        if self._ending:
            await asyncio.wait(self._ending)

    def _find(self, backend_id: str) -> Served:
        served = self._served.get(backend_id)
        if served is None:
            raise UnknownBackend(backend_id)
        return served
