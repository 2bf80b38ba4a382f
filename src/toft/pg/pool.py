"""A pool that holds nothing while nobody asks.

Connections are opened on demand, lent last in first out, and closed when idle: surplus ones soon, the last
one after a minute. A task may be cancelled at any moment, also in the very tick in which it is handed a
connection; the connection then goes back. A connection with a cancelled query comes back when it has settled.
When the server has no room for another connection, the pool makes do with those that it has.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Protocol

from toft.pg.sqlstate import TOO_MANY_CONNECTIONS, ConnectionLost, PostgresError

SURPLUS_SECONDS: Final = 10.0
#: Who waits is told so much too late at most.
_PATIENCE_STEP_SECONDS: Final = 0.02


class Poolable(Protocol):
    """What a pool must know of a connection: `connection.py` and `typed.py` have one each."""

    on_lost: Callable[[], None] | None

    @property
    def is_broken(self) -> bool: ...

    @property
    def is_quiet(self) -> bool: ...

    @property
    def settling(self) -> asyncio.Task[None] | None: ...

    def close(self) -> None: ...


class PoolClosed(ConnectionLost):
    """The pool was closed: its backend has been detached or put to sleep."""


class Pool[C: Poolable]:
    """Lends connections that `dial` opens; at most `max_size` exist at a time."""

    def __init__(
        self,
        dial: Callable[[], Awaitable[C]],
        max_size: int = 4,
        idle_seconds: float = 60.0,
    ) -> None:
        self._dial = dial
        self._max_size = max_size
        self._idle_seconds = idle_seconds
        self._surplus_seconds = min(SURPLUS_SECONDS, idle_seconds)
        self._free: list[tuple[C, float]] = []
        #: all that exist, those being dialled not included
        self._all: set[C] = set()
        self._dialling = 0
        #: resolved with a connection, or with None: try again, there may be room for another
        self._waiting: deque[tuple[asyncio.Future[C | None], float]] = deque()
        self._patience_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def size(self) -> int:
        """Connections that exist or are being opened."""
        return len(self._all) + self._dialling

    @property
    def in_use(self) -> int:
        return self.size - len(self._free)

    @property
    def waiting(self) -> int:
        """Tasks that wait for a connection."""
        return len(self._waiting)

    def lend(self) -> Loan[C]:
        """`async with pool.lend() as connection`. Raises what `dial` raises, or `PoolClosed`."""
        return Loan(self)

    def close(self) -> None:
        """Close all connections at once, lent ones too, and refuse whoever waits or comes later."""
        self._is_closed = True
        self.drop_connections()
        while self._waiting:
            waiter, _ = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(PoolClosed("the pool was closed"))

    def drop_connections(self) -> None:
        """Close all connections at once; the next loan opens a new one."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        self._free.clear()
        for connection in tuple(self._all):
            connection.close()

    def keep_free(self, seconds: float) -> None:
        """Keep open so long what lies free now; once lent, it ages as the others do."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds - self._idle_seconds
        self._free = [(connection, until) for connection, _ in self._free]

    # What a Loan calls.

    def take_free(self) -> C | None:
        """A connection that lies ready, if there is one."""
        while self._free:
            connection = self._free.pop()[0]
            if not connection.is_broken:
                return connection
        return None

    async def take(self, within: float = math.inf) -> C:
        """A connection, as soon as there is one. Raises TimeoutError after so many seconds, and as `lend`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        enqueue = self._waiting.append
        while True:
            if self._is_closed:
                raise PoolClosed("the pool was closed")
            connection = self.take_free()
            if connection is not None:
                return connection
            if self.size < self._max_size:
                try:
                    async with asyncio.timeout_at(None if within == math.inf else deadline):
                        return await self._open()
                except PostgresError as error:
                    if not self._can_make_do(error):
                        raise
            waiter: asyncio.Future[C | None] = loop.create_future()
            enqueue((waiter, deadline))
            enqueue = self._waiting.appendleft  # whoever has to try again keeps its place
            if self._patience_timer is None and within < math.inf:
                self._patience_timer = loop.call_at(deadline, self._end_patience)
            try:
                handed = await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                    self._pass_on(waiter.result())
                raise
            if handed is not None:
                if not handed.is_broken:
                    return handed
                self._pass_on(None)

    def give_back(self, connection: C) -> None:
        if connection.is_quiet and not self._is_closed:
            self._pass_on(connection)
        elif connection.settling is not None:
            connection.settling.add_done_callback(lambda _: self.give_back(connection))
        elif not connection.is_broken:
            connection.close()  # in a transaction that nobody is going to end

    async def _open(self) -> C:
        self._dialling += 1
        try:
            connection = await self._dial()
        except BaseException as error:
            self._dialling -= 1
            if not self._can_make_do(error):
                self._pass_on(None)
            raise
        self._dialling -= 1
        self._all.add(connection)
        connection.on_lost = lambda: self._lost(connection)
        if connection.is_broken:
            self._lost(connection)
        if self._is_closed:
            connection.close()
            raise PoolClosed("the pool was closed")
        return connection

    def _can_make_do(self, error: BaseException) -> bool:
        """Whether the server was too full for one more connection, while there are some to wait for."""
        is_full = isinstance(error, PostgresError) and error.sqlstate == TOO_MANY_CONNECTIONS
        return is_full and bool(self._all)

    def _lost(self, connection: C) -> None:
        self._all.discard(connection)
        self._free = [item for item in self._free if item[0] is not connection]
        self._pass_on(None)

    def _pass_on(self, connection: C | None) -> None:
        """Hand a connection, or the room for one, to whoever has waited longest."""
        while self._waiting:
            waiter, _ = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        if connection is not None:
            loop = asyncio.get_running_loop()
            now = loop.time()
            self._free.append((connection, now))
            self._look_at(now + self._surplus_seconds)

    def _look_at(self, due: float) -> None:
        """Look for idle connections no later than then."""
        if self._idle_timer is not None:
            if self._idle_timer.when() <= due:
                return
            self._idle_timer.cancel()
        self._idle_timer = asyncio.get_running_loop().call_at(due, self._close_idle)

    def _end_patience(self) -> None:
        """Tell those who have waited too long: one timer for all, which comes by while anybody waits."""
        self._patience_timer = None
        loop = asyncio.get_running_loop()
        now, soonest = loop.time(), math.inf
        for waiter, deadline in self._waiting:
            if waiter.done():
                continue
            if deadline <= now:
                waiter.set_exception(TimeoutError())
            else:
                soonest = min(soonest, deadline)
        while self._waiting and self._waiting[0][0].done():
            self._waiting.popleft()
        if soonest < math.inf:
            self._patience_timer = loop.call_at(
                max(soonest, now + _PATIENCE_STEP_SECONDS), self._end_patience
            )

    def _close_idle(self) -> None:
        """Close what has been idle too long, and look again when the next one will have been."""
        self._idle_timer = None
        now = asyncio.get_running_loop().time()
        for connection, since in tuple(self._free):
            is_last = len(self._all) == 1
            due = since + (self._idle_seconds if is_last else self._surplus_seconds)
            if due > now:
                self._look_at(due)
            else:
                connection.close()


class Loan[C: Poolable]:
    """One use of a connection."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Pool[C]) -> None:
        self._pool = pool
        self._connection: C | None = None

    async def __aenter__(self) -> C:
        connection = self._connection = self._pool.take_free() or await self._pool.take()
        return connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._pool.give_back(self._connection)
