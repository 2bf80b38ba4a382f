"""All backends that have a record: written through, seen in memory, looked at when touched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.backends.strategies import make_backend
from toft.backends.backend import Attachment, Wish
from toft.backends.estate import Estate
from toft.ids import BackendId
from toft.store.connection import Store
from toft.world import SystemClock

ID = BackendId("b_1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "s")
    yield store
    store.close()


def open_estate(store: Store) -> Estate:
    estate = Estate(store, SystemClock(), lambda: None)
    estate.load()
    return estate


def test_records_survive_the_daemon(store: Store) -> None:
    """What one daemon wished, the next one reads, secrets included."""
    estate = open_estate(store)
    with store.transaction() as tx:
        estate.add(tx, make_backend(uid=400_016))
    estate.change(ID, wish=Wish.ASLEEP, is_cloned=True, is_primed=True, pid=5, pid_ticks=6)
    [read] = open_estate(store).all()
    assert read == estate.get(ID)


def test_touched_is_looked_at_once(store: Store) -> None:
    """A change asks for one look."""
    estate = open_estate(store)
    with store.transaction() as tx:
        estate.add(tx, make_backend())
    assert (estate.next_touched(), estate.next_touched()) == (ID, None)
    estate.see(ID, is_running=True, attachment=Attachment.AWAKE)
    assert estate.next_touched() == ID
    assert estate.seen(ID).is_running


def test_ports_and_users_are_given_back(store: Store) -> None:
    """They are a backend's from its wish until nothing of it is left."""
    estate = open_estate(store)
    with store.transaction() as tx:
        estate.add(tx, make_backend(uid=400_016))
    assert estate.is_port_taken(20000)
    assert estate.uids == {400_016}
    estate.change(ID, http_port=20005)
    assert (estate.is_port_taken(20000), estate.is_port_taken(20005)) == (False, True)
    with store.transaction() as tx:
        estate.drop(tx, ID)
    assert not estate.is_port_taken(20005)
    assert estate.uids == set()
    assert open_estate(store).get(ID) is None


def test_a_failed_transaction_changes_nothing(store: Store) -> None:
    """Neither in the store nor in memory."""
    estate = open_estate(store)
    with store.transaction() as tx:
        estate.add(tx, make_backend())
    with pytest.raises(ValueError, match="no"), store.transaction() as tx:
        estate.change(ID, tx, wish=Wish.GONE)
        raise ValueError("no")
    backend = estate.get(ID)
    assert backend is not None
    assert backend.wish is Wish.STARTED


def test_deaths_are_counted_and_forgotten(store: Store) -> None:
    """Only those of the last minute count."""

    class Clock(SystemClock):
        seconds = 0.0

        def mono(self) -> float:
            return self.seconds

    clock = Clock()
    estate = Estate(store, clock, lambda: None)
    with store.transaction() as tx:
        estate.add(tx, make_backend())
    assert [estate.count_death(ID), estate.count_death(ID)] == [1, 2]
    assert estate.seen(ID).recent_deaths == 2
    clock.seconds = 61.0
    assert estate.seen(ID).recent_deaths == 0
    assert estate.count_death(ID) == 1


def test_what_is_seen_of_the_gone_is_no_matter(store: Store) -> None:
    """A late sighting of a backend without a record changes nothing."""
    estate = open_estate(store)
    estate.see(ID, is_running=True)
    assert estate.next_touched() is None
