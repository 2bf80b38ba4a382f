"""Pure: how many of what a pool should hold, and the orders that bring it there.

Three rules, in order of weight. Who waits comes first: as many are made as there are callers waiting. What is
in use is kept ready, but only while nobody waits and memory is not short. What is not in use, or more than is
wanted, goes; under pressure everything goes that nobody waits for.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec


class Grade(enum.Enum):
    """How far a thing is prepared: a started one is just handed over, a cloned one must be started."""

    STARTED = "started"
    CLONED = "cloned"


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of one kind; used_mono: when one was last taken."""

    kind: str
    waiting: int = 0
    ready: int = 0
    starting: int = 0
    cloned: int = 0
    cloning: int = 0
    used_mono: float = 0.0

    @property
    def started(self) -> int:
        return self.ready + self.starting

    @property
    def at_hand(self) -> int:
        return self.cloned + self.cloning


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """most_in_use: so many kinds are kept ready, the last used. background: made at a time.

    calm_seconds: nothing is made for the shelf so soon after a hand-over, which has better use for the cores.
    """

    started: int
    cloned: int
    most_things: int
    in_use_seconds: float = 900.0
    most_in_use: int = 4
    background: int = 1
    calm_seconds: float = 0.05


class Make(msgspec.Struct, frozen=True):
    """Begin a new one of this kind, up to this grade."""

    kind: str
    grade: Grade


class Promote(msgspec.Struct, frozen=True):
    """Start a cloned one."""

    kind: str


class Drop(msgspec.Struct, frozen=True):
    """Throw away one that stands ready in this grade."""

    kind: str
    grade: Grade


class Refuse(msgspec.Struct, frozen=True):
    """Tell one who waits that there is no room and nothing that could make some."""

    kind: str


type Order = Make | Promote | Drop | Refuse


def decide_refill(
    shelves: Sequence[Shelf], things: int, limits: Limits, *, is_pressed: bool, now_mono: float
) -> list[Order]:
    """The orders of this moment. `things` counts all there are, taken ones too, but none that is going."""
    if any(shelf.waiting for shelf in shelves):
        return _serve_waiting(shelves, things, limits)
    wanted = _kinds_in_use(shelves, limits, now_mono) if not is_pressed else frozenset[str]()
    surplus = [
        order for shelf in shelves for order in _drop_surplus(shelf, limits, is_wanted=shelf.kind in wanted)
    ]
    if surplus or now_mono < _calm_from(shelves, limits):
        return surplus
    return _top_up([shelf for shelf in shelves if shelf.kind in wanted], things, limits)


def next_change(shelves: Sequence[Shelf], limits: Limits, now_mono: float) -> float | None:
    """When the loop must look again though nothing happens: calm has come, or something falls out of use."""
    ends = [
        shelf.used_mono + limits.in_use_seconds
        for shelf in shelves
        if shelf.ready + shelf.cloned and shelf.used_mono + limits.in_use_seconds > now_mono
    ]
    calm_from = _calm_from(shelves, limits)
    if calm_from > now_mono:
        ends.append(calm_from)
    return min(ends, default=None)


def _calm_from(shelves: Sequence[Shelf], limits: Limits) -> float:
    return max((shelf.used_mono for shelf in shelves), default=0.0) + limits.calm_seconds


def _serve_waiting(shelves: Sequence[Shelf], things: int, limits: Limits) -> list[Order]:
    orders: list[Order] = []
    room = limits.most_things - things
    for shelf in sorted(shelves, key=lambda shelf: shelf.used_mono):
        missing = shelf.waiting - shelf.started
        promoted = max(0, min(missing, shelf.cloned))
        orders += [Promote(shelf.kind)] * promoted
        made = max(0, min(missing - promoted, room))
        orders += [Make(shelf.kind, Grade.STARTED)] * made
        room -= made
        for _ in range(missing - promoted - made):
            orders.append(_make_room(shelf, shelves, orders) or Refuse(shelf.kind))
    return orders


def _make_room(needy: Shelf, shelves: Sequence[Shelf], orders: Sequence[Order]) -> Drop | None:
    """At the limit, one thing that stands idle on the shelf used longest ago gives its place."""
    for shelf in sorted(shelves, key=lambda shelf: shelf.used_mono):
        if shelf.kind == needy.kind:
            continue
        needed = max(0, shelf.waiting - shelf.started)
        idle = {Grade.CLONED: shelf.cloned - needed, Grade.STARTED: shelf.ready - shelf.waiting}
        for grade, count in idle.items():
            if count > orders.count(Drop(shelf.kind, grade)):
                return Drop(shelf.kind, grade)
    return None


def _kinds_in_use(shelves: Sequence[Shelf], limits: Limits, now_mono: float) -> frozenset[str]:
    recent = [shelf for shelf in shelves if now_mono - shelf.used_mono < limits.in_use_seconds]
    recent.sort(key=lambda shelf: shelf.used_mono, reverse=True)
    return frozenset(shelf.kind for shelf in recent[: limits.most_in_use])


def _drop_surplus(shelf: Shelf, limits: Limits, *, is_wanted: bool) -> list[Order]:
    started, cloned = (limits.started, limits.cloned) if is_wanted else (0, 0)
    return [
        *[Drop(shelf.kind, Grade.STARTED)] * max(0, min(shelf.ready, shelf.started - started)),
        *[Drop(shelf.kind, Grade.CLONED)] * max(0, min(shelf.cloned, shelf.at_hand - cloned)),
    ]


def _top_up(shelves: Sequence[Shelf], things: int, limits: Limits) -> list[Order]:
    """A few at a time, first what can be handed over at once, the kind used last before the others."""
    busy = sum(shelf.starting + shelf.cloning for shelf in shelves)
    orders: list[Order] = []
    by_use = sorted(shelves, key=lambda shelf: shelf.used_mono, reverse=True)
    for shelf in by_use:
        missing = limits.started - shelf.started
        promoted = max(0, min(missing, shelf.cloned))
        orders += [Promote(shelf.kind)] * promoted
        orders += [Make(shelf.kind, Grade.STARTED)] * max(0, missing - promoted)
    if not orders:
        for shelf in by_use:
            orders += [Make(shelf.kind, Grade.CLONED)] * max(0, limits.cloned - shelf.at_hand)
    return _within(orders, max(0, limits.background - busy), limits.most_things - things)


def _within(orders: Sequence[Order], hands: int, room: int) -> list[Order]:
    kept: list[Order] = []
    for order in orders[:hands]:
        if isinstance(order, Make):
            if room <= 0:
                continue
            room -= 1
        kept.append(order)
    return kept
