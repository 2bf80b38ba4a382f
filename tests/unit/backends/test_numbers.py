"""Ports, users and credentials."""

from __future__ import annotations

import pytest

from toft.backends.numbers import (
    FIRST_PORT,
    LAST_PORT,
    NoPortLeft,
    Ports,
    choose_uid,
    new_backend_id,
    new_credential,
)
from toft.world import SystemEntropy


class Fixed:
    """Chance that always says the same."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def bytes(self, count: int) -> bytes:
        return self._raw[:count].rjust(count, b"\0")


def test_ports_go_round_the_whole_range() -> None:
    """Every port is given out once before one comes again."""
    ports = Ports(Fixed(b"\0\0\1\0"))
    given = [ports.choose(lambda _: False) for _ in range(FIRST_PORT, LAST_PORT + 1)]
    assert given[0] == FIRST_PORT + 256
    assert sorted(given) == list(range(FIRST_PORT, LAST_PORT + 1))
    assert ports.choose(lambda _: False) == given[0]


def test_taken_ports_are_left_out() -> None:
    """A port that a backend has is not given to another; when all are, that is said."""
    ports = Ports(Fixed(b"\0\0\0\0"))
    assert ports.choose(lambda port: port < FIRST_PORT + 3) == FIRST_PORT + 3
    with pytest.raises(NoPortLeft):
        ports.choose(lambda _: True)


def test_ports_are_below_the_ephemeral_range() -> None:
    """The kernel never gives one of them to an outgoing connection."""
    assert LAST_PORT < 32768


def test_uids() -> None:
    """The lowest free user id is taken."""
    assert choose_uid(400_000, set()) == 400_000
    assert choose_uid(400_000, {400_000, 400_001, 400_003}) == 400_002


def test_ids_and_credentials_differ() -> None:
    """A hundred of each are a hundred different ones."""
    entropy = SystemEntropy()
    assert len({new_backend_id(entropy) for _ in range(100)}) == 100
    assert len({new_credential(entropy) for _ in range(100)}) == 100
