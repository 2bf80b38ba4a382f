"""Refilling comes to rest, serves everybody, and keeps the limit, from any shelves there may be."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from toft.leases.refill import Drop, Grade, Limits, Make, Order, Promote, Refuse, Shelf, decide_refill

COUNT = st.integers(0, 4)
SHELVES = st.lists(
    st.builds(
        Shelf,
        kind=st.just(""),
        waiting=COUNT,
        starting=COUNT,
        cloned=COUNT,
        cloning=COUNT,
        used_mono=st.floats(-300, 100),
    ),
    max_size=5,
)
LIMITS = st.builds(
    Limits, started=COUNT, cloned=COUNT, most_things=st.integers(1, 20), background=st.integers(1, 3)
)
NOW = 100.0


class World:
    """Shelves on which every order is carried out, and makers that always succeed."""

    def __init__(self, shelves: list[Shelf], taken: int) -> None:
        self.shelves = {
            str(n): msgspec.structs.replace(shelf, kind=str(n)) for n, shelf in enumerate(shelves)
        }
        self.taken = taken
        self.served = 0
        self.refused = 0

    @property
    def things(self) -> int:
        return self.taken + sum(shelf.started + shelf.at_hand for shelf in self.shelves.values())

    def carry_out(self, order: Order) -> None:
        shelf = self.shelves[order.kind]
        counts: dict[str, int] = {}
        match order:
            case Make(_, grade):
                name = "starting" if grade is Grade.STARTED else "cloning"
                counts = {name: getattr(shelf, name) + 1}
            case Promote():
                assert shelf.cloned > 0, "promoted one that is not there"
                counts = {"cloned": shelf.cloned - 1, "starting": shelf.starting + 1}
            case Drop(_, grade):
                name = "ready" if grade is Grade.STARTED else "cloned"
                assert getattr(shelf, name) > 0, "dropped one that is not there"
                counts = {name: getattr(shelf, name) - 1}
            case Refuse():
                assert shelf.waiting > 0, "refused one who does not wait"
                counts = {"waiting": shelf.waiting - 1}
                self.refused += 1
        self.shelves[order.kind] = msgspec.structs.replace(shelf, **counts)

    def finish_making(self) -> None:
        for kind, shelf in self.shelves.items():
            ready = shelf.ready + shelf.starting
            served = min(ready, shelf.waiting)
            self.served += served
            self.taken += served
            self.shelves[kind] = msgspec.structs.replace(
                shelf,
                waiting=shelf.waiting - served,
                ready=ready - served,
                starting=0,
                cloned=shelf.cloned + shelf.cloning,
                cloning=0,
            )


@given(SHELVES, LIMITS, st.integers(0, 10), st.booleans())
def test_comes_to_rest(shelves: list[Shelf], limits: Limits, taken: int, is_pressed: bool) -> None:
    """After finitely many orders there are no more, everybody is served or refused, and the limit holds."""
    world = World(shelves, taken)
    asked = sum(shelf.waiting for shelf in world.shelves.values())
    began_with = world.things
    for _ in range(200):
        orders = decide_refill(
            [*world.shelves.values()], world.things, limits, is_pressed=is_pressed, now_mono=NOW
        )
        for order in orders:
            world.carry_out(order)
        assert world.things <= max(limits.most_things, began_with)
        is_making = any(shelf.starting or shelf.cloning for shelf in world.shelves.values())
        world.finish_making()
        if not orders and not is_making:
            break
    else:
        raise AssertionError("it never came to rest")
    assert world.served + world.refused == asked
    for shelf in world.shelves.values():
        is_used = NOW - shelf.used_mono < limits.in_use_seconds
        assert shelf.ready <= (limits.started if is_used and not is_pressed else 0)
        assert shelf.cloned <= (limits.cloned if is_used and not is_pressed else 0)
