"""The live leases: deadlines on the clock that never jumps, streams, and what is remembered of the ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from toft.errors.lease import LeaseEnded, LeaseNotFound
from toft.ids import BackendId, LeaseId
from toft.leases import lifecycle
from toft.leases.book import LeaseBook
from toft.leases.lease import Lease
from toft.protocol.lease import TemplateUse
from toft.store.connection import Store


class JumpingClock:
    """A wall clock that can be set, and one that only goes forward."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 1, 1, tzinfo=UTC)
        self.seconds = 1000.0

    def now(self) -> datetime:
        return self.wall

    def unix(self) -> float:
        return self.wall.timestamp()

    def mono(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "s")
    yield store
    store.close()


def open_book(store: Store, clock: JumpingClock) -> LeaseBook:
    book = LeaseBook(store, clock, lambda: None)
    book.load()
    return book


def begin(store: Store, book: LeaseBook, name: str = "1", *, ttl: float = 60, is_held: bool = False) -> Lease:
    lease = Lease(
        id=LeaseId(f"l_{name}"),
        backend_id=BackendId(f"b_{name}"),
        label="",
        project=None,
        credential_digest="",
        ttl_seconds=ttl,
        is_held=is_held,
        created_at="2026-01-01T00:00:00.000+00:00",
        expires_mono=1000.0 + ttl,
        template=TemplateUse("base", True, 0),
    )
    with store.transaction() as tx:
        book.add(tx, lease)
    return lease


@pytest.mark.parametrize("jump", [timedelta(days=3650), timedelta(days=-3650)])
def test_a_jump_of_the_wall_clock_ends_nothing(store: Store, clock: JumpingClock, jump: timedelta) -> None:
    """Leases end by the clock that never jumps, whatever the wall clock says."""
    book = open_book(store, clock)
    lease = begin(store, book)
    clock.wall += jump
    assert book.due() == []
    clock.seconds += 60
    assert book.due() == [(lease, lifecycle.EXPIRED)]


def test_the_next_deadline(store: Store, clock: JumpingClock) -> None:
    """The loop sleeps until the first lease is over; one whose holder is connected has no end."""
    book = open_book(store, clock)
    begin(store, book, "1", ttl=60)
    begin(store, book, "2", ttl=30)
    assert book.next_deadline() == 1030.0


async def test_streams(store: Store, clock: JumpingClock) -> None:
    """A held lease ends with its last stream, not with one of two."""
    book = open_book(store, clock)
    lease = begin(store, book, is_held=True)
    one, two = book.open_stream(lease.id), book.open_stream(lease.id)
    assert book.next_deadline() is None
    assert book.close_stream(lease.id, one) is None
    assert book.close_stream(lease.id, two) == lease


async def test_a_stream_of_a_lease_that_was_let_go(store: Store, clock: JumpingClock) -> None:
    """Closing it ends nothing."""
    book = open_book(store, clock)
    lease = begin(store, book)
    assert book.close_stream(lease.id, book.open_stream(lease.id)) is None


async def test_the_end_is_told(store: Store, clock: JumpingClock) -> None:
    """Streams hear the reason; who asks later too; who asks for what never was hears that."""
    book = open_book(store, clock)
    lease = begin(store, book, is_held=True)
    stream = book.open_stream(lease.id)
    with store.transaction() as tx:
        book.end(tx, lease, "it was released")
    assert stream.ended.result() == "it was released"
    with pytest.raises(LeaseEnded, match="it was released"):
        book.get(lease.id)
    with pytest.raises(LeaseNotFound):
        book.get("l_0")


async def test_a_notice_is_told_once(store: Store, clock: JumpingClock) -> None:
    """On the stream, and in what is shown of the lease."""
    book = open_book(store, clock)
    lease = begin(store, book)
    stream = book.open_stream(lease.id)
    with store.transaction() as tx:
        assert book.notify(tx, lease, "mind the gap")
    with store.transaction() as tx:
        assert not book.notify(tx, book.live()[0], "mind the gap")
    assert stream.notices.qsize() == 1
    assert book.live()[0].notices == ("mind the gap",)


def test_leases_survive_the_daemon(store: Store, clock: JumpingClock) -> None:
    """The next daemon reads the live ones as they were, and not the ended ones."""
    book = open_book(store, clock)
    kept, ended = begin(store, book, "1"), begin(store, book, "2")
    with store.transaction() as tx:
        book.end(tx, ended, "over")
    assert open_book(store, clock).live() == [kept]


def test_a_transaction_that_fails_takes_no_lease(store: Store, clock: JumpingClock) -> None:
    """What was not kept in the store is not kept in memory."""
    book = open_book(store, clock)
    begin(store, book)
    with pytest.raises(Exception, match="UNIQUE"):
        begin(store, book)
    assert len(book.live()) == 1
