"""Those who wait until one certain backend is as it is wished, or is known not to become so."""

from __future__ import annotations

import asyncio

from toft.errors.shape import ToftError
from toft.ids import BackendId


class Expected:
    """Waiters by backend. Whoever changes a wish and wants to see it come true asks here first."""

    def __init__(self) -> None:
        self._waiting: dict[BackendId, list[asyncio.Future[None]]] = {}

    def expect(self, backend_id: BackendId) -> asyncio.Future[None]:
        """A future that is done when the backend rests in the wished state; raises what prevents it."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(backend_id, []).append(waiter)
        return waiter

    def is_expected(self, backend_id: BackendId) -> bool:
        """Whether somebody waits for this very backend."""
        return backend_id in self._waiting

    def came(self, backend_id: BackendId) -> None:
        """It is as it was wished."""
        for waiter in self._waiting.pop(backend_id, ()):
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, backend_id: BackendId, error: ToftError) -> None:
        """It will not be."""
        for waiter in self._waiting.pop(backend_id, ()):
            if not waiter.done():
                waiter.set_exception(error)
