"""Names and numbers that toftd gives out: ids, credentials, ports, user ids."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection

from toft.ids import BackendId, LeaseId, make_id
from toft.world import Entropy

#: Below the range from which the kernel gives ports to outgoing connections.
FIRST_PORT = 20_000
LAST_PORT = 31_999


class NoPortLeft(Exception):
    """Every port of the range is a backend's."""


def new_backend_id(entropy: Entropy) -> BackendId:
    """An identifier that no backend had before."""
    return BackendId(make_id("b", entropy.bytes(10)))


def new_lease_id(entropy: Entropy) -> LeaseId:
    """An identifier that no lease had before."""
    return LeaseId(make_id("l", entropy.bytes(10)))


def new_credential(entropy: Entropy) -> str:
    """What proves the holder of a lease: 192 bits."""
    return "toft_" + base64.urlsafe_b64encode(entropy.bytes(24)).decode()


class Ports:
    """Goes round the range, so that a port that was just given up is not given out soon."""

    def __init__(self, entropy: Entropy) -> None:
        self._next = FIRST_PORT + int.from_bytes(entropy.bytes(4), "big") % (LAST_PORT - FIRST_PORT + 1)

    def choose(self, is_taken: Callable[[int], bool]) -> int:
        """The next port of the range that is not taken."""
        for _ in range(FIRST_PORT, LAST_PORT + 1):
            port = self._next
            self._next = port + 1 if port < LAST_PORT else FIRST_PORT
            if not is_taken(port):
                return port
        raise NoPortLeft


def choose_uid(first: int, taken: Collection[int]) -> int:
    """The lowest user id from `first` on that no backend has."""
    uid = first
    while uid in taken:
        uid += 1
    return uid
