"""Carries out what `decide.py` says: one act at a time for each backend, as a task, and judges failures.

What fails before a lease is thrown away and its failure told to one who waits for it. What fails under a
lease is tried again a few times, then given up with its cause. What fails while it is destroyed is tried
until it is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from toft.backends.acts import create, destroy, sleep, swap
from toft.backends.backend import Attachment, Backend, Wish
from toft.backends.context import Context
from toft.backends.decide import Act, decide_act, is_ready
from toft.backends.fault import explain
from toft.backends.gateway import WorkerLost
from toft.errors.backend import BackendFailed, PortTaken
from toft.errors.engine import TemplateFailed
from toft.errors.shape import ToftError
from toft.ids import BackendId
from toft.telemetry.events import ActFailed, BackendBroken, BackendGone, BackendReady

#: An act that failed rests so long before the next try; doubled each time, up to the last.
FIRST_REST_SECONDS = 0.1
LAST_REST_SECONDS = 10.0
#: Acts that may wait for long; a backend that should go does not wait with them.
_INTERRUPTIBLE = frozenset({Act.START, Act.PRIME, Act.ATTACH})

type Perform = Callable[[Context, Backend], Awaitable[None]]


class Actor:
    """Drives every backend towards its wish. `look` is called for each backend that was touched."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._busy: dict[BackendId, tuple[Act, asyncio.Task[None]]] = {}
        self._failures: dict[BackendId, int] = {}
        self._causes: dict[BackendId, str] = {}
        self._since: dict[BackendId, float] = {}
        self._offered: set[BackendId] = set()
        #: hears the template's key when a backend of it failed before anybody had it
        self.failed_to_make: Callable[[str], None] = lambda _key: None
        self._acts: dict[Act, Perform] = {
            Act.CLONE: create.clone,
            Act.SWAP: swap.swap,
            Act.START: create.start,
            Act.PRIME: create.prime,
            Act.ATTACH: create.attach,
            Act.TELL_AWAKE: create.tell_awake,
            Act.SLEEP: sleep.sleep,
            Act.REFUSE: sleep.refuse,
            Act.BREAK: self._break,
            Act.DESTROY: destroy.destroy,
        }

    def look(self, backend_id: BackendId) -> None:
        """Decide and begin the next act, hand it to the pool when it is ready, or leave it at rest."""
        backend = self._context.estate.get(backend_id)
        if backend is None:
            self._forget(backend_id)
            return
        if backend.wish is Wish.GONE:
            self._since.setdefault(backend_id, self._context.clock.mono())
        busy = self._busy.get(backend_id)
        if busy is not None:
            if backend.wish is Wish.GONE and busy[0] in _INTERRUPTIBLE:
                busy[1].cancel()
            return
        if self._is_spoiled(backend):
            return
        act = decide_act(backend, self._context.estate.seen(backend_id))
        if act is not None:
            task = self._context.tasks.start(self._perform(backend, act), f"{act.value} {backend_id}")
            self._busy[backend_id] = (act, task)
        elif is_ready(backend, self._context.estate.seen(backend_id)) and backend_id not in self._offered:
            self._offer(backend)
        elif act is None and backend.is_leased:
            self._tell_rest(backend)

    def busy_with(self, backend_id: BackendId) -> Act | None:
        """The act that is going on."""
        busy = self._busy.get(backend_id)
        return busy[0] if busy is not None else None

    def was_offered(self, backend_id: BackendId) -> bool:
        """Whether it went to the pool."""
        return backend_id in self._offered

    def _offer(self, backend: Backend) -> None:
        self._offered.add(backend.id)
        took = (self._context.clock.mono() - backend.created_mono) * 1000
        self._context.tell(BackendReady(backend=backend.id, template=backend.template_key, took_ms=took))
        if backend.snapshot is None:
            if self._context.pool.waiting(backend.template_key) == 0:
                self._context.tasks.start(self._warm(backend.id), f"warm {backend.id}")
            self._context.pool.offer(backend.template_key, backend.id)
        else:
            self._context.expected.came(backend.id)

    def _tell_rest(self, backend: Backend) -> None:
        """A leased one is as it was wished, or broken for good."""
        if backend.failure is not None:
            self._context.expected.fail(backend.id, BackendFailed(cause=backend.failure))
        else:
            self._context.expected.came(backend.id)

    async def _warm(self, backend_id: BackendId) -> None:
        """Nobody waits for it: have its services make ready."""
        with suppress(WorkerLost):
            await self._context.gateway.warm(backend_id)

    def _is_spoiled(self, backend: Backend) -> bool:
        """One on the shelf that is not ready any more goes; nobody has it yet."""
        context = self._context
        if backend.is_leased or backend.wish is Wish.GONE or backend.id not in self._offered:
            return False
        if is_ready(backend, context.estate.seen(backend.id)):
            return False
        if context.pool.withdraw(backend.template_key, backend.id):
            context.estate.change(backend.id, wish=Wish.GONE)
            return True
        return False  # in the hands of one who takes it: mended like a leased one

    async def _perform(self, backend: Backend, act: Act) -> None:
        context = self._context
        try:
            await self._acts[act](context, backend)
            self._failures.pop(backend.id, None)
        except WorkerLost:
            context.estate.see(backend.id, attachment=Attachment.NONE)
        except (ToftError, OSError) as error:
            await self._failed(backend, act, error)
        finally:
            self._busy.pop(backend.id, None)
            context.estate.touch(backend.id)

    async def _failed(self, backend: Backend, act: Act, error: ToftError | OSError) -> None:
        context = self._context
        fault = explain(error, context.places.home, act.value)
        context.tell(ActFailed(backend=backend.id, act=act.value, cause=str(fault)))
        now = context.estate.get(backend.id)
        if now is None:
            return
        count = self._failures[backend.id] = self._failures.get(backend.id, 0) + 1
        self._causes[backend.id] = str(fault)
        if isinstance(fault, TemplateFailed):
            context.templates.forget(now.template_key)
        if not now.is_leased and now.wish is not Wish.GONE:
            if now.snapshot is None:
                self.failed_to_make(now.template_key)
                context.pool.fail(now.template_key, fault, everyone=False)
            else:
                context.expected.fail(now.id, fault)
            context.estate.change(backend.id, wish=Wish.GONE)
            return
        if act is Act.SWAP:  # it goes on with what it has
            context.expected.fail(now.id, fault)
            context.estate.change(now.id, swap=None)
            return
        if act is Act.START or isinstance(fault, PortTaken):
            context.estate.count_death(backend.id)
        await asyncio.sleep(min(LAST_REST_SECONDS, FIRST_REST_SECONDS * 2 ** (count - 1)))

    async def _break(self, context: Context, backend: Backend) -> None:
        cause = self._causes.get(backend.id, "its Postgres ended again and again")
        with context.store.transaction() as tx:
            context.estate.change(backend.id, tx, failure=cause)
            context.ledger.append(tx, "backend.broken", backend.id, cause=cause)
        context.tell(BackendBroken(backend=backend.id, cause=cause))

    def _forget(self, backend_id: BackendId) -> None:
        since = self._since.pop(backend_id, None)
        if since is not None:
            took = (self._context.clock.mono() - since) * 1000
            self._context.tell(BackendGone(backend=backend_id, took_ms=took))
        self._context.expected.fail(backend_id, BackendFailed(cause="its lease has ended"))
        self._context.turns.pop(backend_id, None)
        self._failures.pop(backend_id, None)
        self._causes.pop(backend_id, None)
        self._offered.discard(backend_id)
