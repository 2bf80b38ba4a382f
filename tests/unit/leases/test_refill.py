"""How many of what a pool should hold."""

from __future__ import annotations

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

LIMITS = Limits(started=2, cloned=2, most_things=10, in_use_seconds=100, most_in_use=2, background=1)
STARTED, CLONED = Grade.STARTED, Grade.CLONED


def decide(*shelves: Shelf, things: int = 0, is_pressed: bool = False, now: float = 50.0) -> list[Order]:
    return decide_refill(shelves, things, LIMITS, is_pressed=is_pressed, now_mono=now)


def test_who_waits_is_served() -> None:
    """One is made for each who waits and for whom none is being made."""
    assert decide(Shelf(kind="a", waiting=3, starting=1)) == [Make("a", STARTED)] * 2


def test_a_cloned_one_is_started_first() -> None:
    """A directory at hand is quicker than a new one."""
    assert decide(Shelf(kind="a", waiting=2, cloned=1)) == [Promote("a"), Make("a", STARTED)]


def test_nothing_is_refilled_while_somebody_waits() -> None:
    """The pool of one kind never competes with a caller for another."""
    assert decide(Shelf(kind="a", waiting=1, starting=1), Shelf(kind="b", used_mono=49)) == []


def test_in_use_is_kept_ready() -> None:
    """First started ones, then cloned ones, one at a time."""
    assert decide(Shelf(kind="a", used_mono=49)) == [Make("a", STARTED)]
    assert decide(Shelf(kind="a", used_mono=49, starting=1)) == []
    assert decide(Shelf(kind="a", used_mono=49, ready=2)) == [Make("a", CLONED)]
    assert decide(Shelf(kind="a", used_mono=49, ready=1, cloned=2)) == [Promote("a")]
    assert decide(Shelf(kind="a", used_mono=49, ready=2, cloned=2)) == []


def test_unused_goes() -> None:
    """What no lease asked for in a while is dropped."""
    assert decide(Shelf(kind="a", used_mono=-51, ready=1, cloned=1)) == [
        Drop("a", STARTED),
        Drop("a", CLONED),
    ]


def test_only_the_kinds_used_last_are_kept() -> None:
    """A project whose migrations change with every run does not fill the machine."""
    shelves = [Shelf(kind=str(n), used_mono=n, ready=2, cloned=2) for n in range(3)]
    assert set(decide(*shelves)) == {Drop("0", STARTED), Drop("0", CLONED)}


def test_pressure_drains() -> None:
    """Under memory pressure everything goes that nobody waits for, and nothing is made."""
    shelf = Shelf(kind="a", used_mono=49, ready=2, cloned=1)
    assert decide(shelf, is_pressed=True) == [Drop("a", STARTED)] * 2 + [Drop("a", CLONED)]
    assert decide(Shelf(kind="a", used_mono=49), is_pressed=True) == []


def test_pressure_still_serves() -> None:
    """Who waits is served even then."""
    assert decide(Shelf(kind="a", waiting=1), is_pressed=True) == [Make("a", STARTED)]


def test_at_the_limit_an_idle_one_gives_its_place() -> None:
    """The limit counts all there are, so a ready one of another kind goes for one who waits."""
    shelves = (Shelf(kind="a", waiting=1), Shelf(kind="b", used_mono=1, ready=1), Shelf(kind="c", cloned=1))
    assert decide(*shelves, things=10) == [Drop("c", CLONED)]
    assert decide(*shelves[:2], things=10) == [Drop("b", STARTED)]


def test_at_the_limit_without_idle_ones_the_caller_is_refused() -> None:
    """When all are taken, waiting would be for nothing."""
    assert decide(Shelf(kind="a", waiting=2), things=9) == [Make("a", STARTED), Refuse("a")]


def test_a_hand_over_is_left_in_peace() -> None:
    """Right after one was taken nothing is made for the shelf; the loop looks again when it is calm."""
    shelves = [Shelf(kind="a", used_mono=50.0, ready=1)]
    assert decide(*shelves, now=50.0) == []
    assert next_change(shelves, LIMITS, 50.0) == 50.0 + LIMITS.calm_seconds
    assert decide(*shelves, now=50.1) == [Make("a", STARTED)]


def test_next_change() -> None:
    """The loop looks again when something falls out of use."""
    shelves = [Shelf(kind="a", used_mono=10, ready=1), Shelf(kind="b", used_mono=5), Shelf(kind="c", ready=1)]
    assert next_change(shelves, LIMITS, 50.0) == 100.0
    assert next_change([Shelf(kind="a", used_mono=-60, ready=1)], LIMITS, 50.0) is None
