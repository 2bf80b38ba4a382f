"""Keeps the pool supplied: counts what there is of each template, and does what `leases/refill.py` says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import assert_never

from toft.backends.act import Actor
from toft.backends.acts.create import choose_ports
from toft.backends.backend import Backend, Wish
from toft.backends.context import Context
from toft.backends.numbers import choose_uid, new_backend_id
from toft.errors.backend import TooManyBackends
from toft.errors.engine import TemplateFailed
from toft.errors.shape import ToftError
from toft.ids import BackendId, TemplateKey
from toft.leases.refill import (
    Drop,
    Grade,
    Limits,
    Make,
    Order,
    Promote,
    Refuse,
    Shelf,
    decide_refill,
    next_change,
)

#: Nothing is made for the shelf so long after making one failed.
REST_SECONDS = 5.0
#: User ids from `uid_base` on that build templates and serve; backends have the ones after them.
OWN_UIDS = 16


class Supply:
    """The pool's supply. `refill` is called by the loop when something may have changed."""

    def __init__(self, context: Context, actor: Actor, limits: Limits) -> None:
        self._context = context
        self._actor = actor
        self._limits = limits
        self._rests_until: dict[str, float] = {}
        self._look_again_at: float | None = None
        self.is_pressed = False
        self.is_closed = False
        #: whether memory is short right now, for kernels that do not tell when it gets so
        self.is_short: Callable[[], bool] = lambda: False
        #: nothing is made but for who waits
        self.keeps_nothing = False
        actor.failed_to_make = self.rest

    def refill(self) -> None:
        """Look at what there is and begin what is missing."""
        if self.is_closed:
            return
        now = self._context.clock.mono()
        shelves = self.shelves()
        orders = decide_refill(
            shelves,
            self._context.estate.count(),
            self._limits,
            is_pressed=self.is_pressed or self.keeps_nothing,
            now_mono=now,
        )
        is_asked = any(shelf.waiting for shelf in shelves)
        if orders and not is_asked and self.is_short():
            orders = [order for order in orders if isinstance(order, Drop)]
        for order in orders:
            self._carry_out(order, is_asked=is_asked)
        self._rests_until = {kind: until for kind, until in self._rests_until.items() if until > now}
        times = [*self._rests_until.values(), next_change(shelves, self._limits, now)]
        self._look_again_at = min((at for at in times if at is not None), default=None)

    def next_change(self) -> float | None:
        """When to look again though nothing happens, as it was at the last refill."""
        return None if self.is_closed else self._look_again_at

    def rest(self, kind: str) -> None:
        """Making one failed: wait a while before the next try that nobody asked for."""
        self._rests_until[kind] = self._context.clock.mono() + REST_SECONDS

    def shelves(self) -> list[Shelf]:
        """What there is of each template."""
        context = self._context
        counts: dict[str, Counter[str]] = {}
        for backend in context.estate.all():
            state = self._state(backend)
            if state is not None:
                counts.setdefault(backend.template_key, Counter())[state] += 1
        return [
            Shelf(
                kind=kind,
                waiting=context.pool.waiting(kind),
                ready=context.pool.ready(kind),
                starting=counts.get(kind, Counter())["starting"],
                cloned=counts.get(kind, Counter())["cloned"],
                cloning=counts.get(kind, Counter())["cloning"],
                used_mono=context.templates.used_mono(TemplateKey(kind)),
            )
            for kind in sorted({*counts, *context.pool.kinds(), *context.templates.usable()})
        ]

    def _state(self, backend: Backend) -> str | None:
        """How a backend that nobody has counts; None for one that is taken, going, or on the shelf."""
        is_spoken_for = backend.is_leased or backend.snapshot is not None
        if is_spoken_for or backend.wish is Wish.GONE or self._actor.was_offered(backend.id):
            return None
        if backend.wish is Wish.CLONED:
            return "cloned" if backend.is_cloned else "cloning"
        return "starting"

    def _carry_out(self, order: Order, *, is_asked: bool) -> None:
        if not is_asked and self._rests_until.get(order.kind, 0) > self._context.clock.mono():
            return
        match order:
            case Make():
                self._make(TemplateKey(order.kind), order.grade)
            case Promote():
                backend_id = self._find_cloned(order.kind)
                if backend_id is not None:
                    self._context.estate.change(backend_id, wish=Wish.STARTED)
            case Drop():
                backend_id = (
                    self._context.pool.withdraw_any(order.kind)
                    if order.grade is Grade.STARTED
                    else self._find_cloned(order.kind)
                )
                if backend_id is not None:
                    self._context.estate.change(backend_id, wish=Wish.GONE)
            case Refuse():
                refusal = TooManyBackends(count=self._context.estate.count())
                self._context.pool.fail(order.kind, refusal, everyone=False)
            case _:
                assert_never(order)

    def _find_cloned(self, kind: str) -> BackendId | None:
        for backend in self._context.estate.all():
            if backend.template_key == kind and self._state(backend) == "cloned":
                return backend.id
        return None

    def _make(self, key: TemplateKey, grade: Grade) -> None:
        context = self._context
        recipe = context.templates.recipe(key)
        if recipe is None:
            context.pool.fail(
                key, TemplateFailed(engine=key, cause="it is not there any more"), everyone=True
            )
            return
        base = context.knobs.uid_base
        http_port, db_port = choose_ports(context)
        backend = Backend(
            id=new_backend_id(context.entropy),
            template_key=key,
            engine_id=recipe.engine_id,
            wish=Wish.STARTED if grade is Grade.STARTED else Wish.CLONED,
            http_port=http_port,
            db_port=db_port,
            uid=None if base is None else choose_uid(base + OWN_UIDS, context.estate.uids),
            settings=recipe.settings,
            created_at=context.clock.now().isoformat(timespec="milliseconds"),
            created_mono=context.clock.mono(),
        )
        try:
            with context.store.transaction() as tx:
                context.estate.add(tx, backend)
        except ToftError as error:
            self.rest(key)
            context.pool.fail(key, error, everyone=True)
