"""When a lease ends."""

from __future__ import annotations

import math

import pytest

from toft.errors.lease import TtlOutOfRange
from toft.ids import BackendId, LeaseId
from toft.leases import lifecycle
from toft.leases.lease import Lease
from toft.protocol.lease import TemplateUse


def make_lease(*, is_held: bool = False, expires_mono: float = 100.0) -> Lease:
    return Lease(
        id=LeaseId("l_1"),
        backend_id=BackendId("b_1"),
        label="",
        project=None,
        credential_digest="",
        ttl_seconds=60,
        is_held=is_held,
        created_at="2026-01-01T00:00:00.000+00:00",
        expires_mono=expires_mono,
        template=TemplateUse("base", True, 0),
    )


@pytest.mark.parametrize("seconds", [0, -1, 0.5, 10 * 365 * 86400, 30 * 86400 + 1, math.nan, math.inf])
def test_ttl_out_of_range(seconds: float) -> None:
    """A time to live of nothing, of ten years, or of no number is refused."""
    with pytest.raises(TtlOutOfRange):
        lifecycle.check_ttl(seconds)


@pytest.mark.parametrize("seconds", [1, 1800, 30 * 86400])
def test_ttl_in_range(seconds: float) -> None:
    """From one second to thirty days anything goes."""
    assert lifecycle.check_ttl(seconds) == seconds


@pytest.mark.parametrize(
    ("is_held", "is_connected", "now", "reason"),
    [
        (False, False, 99.9, None),
        (False, False, 100.0, lifecycle.EXPIRED),
        # a stream on a lease that was let go does not keep it
        (False, True, 100.0, lifecycle.EXPIRED),
        (True, True, 1e9, None),
        (True, False, 99.9, None),
        (True, False, 100.0, lifecycle.HOLDER_NOT_BACK),
    ],
)
def test_decide_end(is_held: bool, is_connected: bool, now: float, reason: str | None) -> None:
    """A held lease lives as long as its holder is connected; others until their time is over."""
    lease = make_lease(is_held=is_held)
    assert lifecycle.decide_end(lease, is_connected=is_connected, now_mono=now) == reason


def test_renew_counts_from_now() -> None:
    """Renewal sets a new time to live from now on, shorter or longer."""
    renewed = lifecycle.renew(make_lease(), 5, 50.0)
    assert (renewed.expires_mono, renewed.ttl_seconds) == (55.0, 5)


def test_renew_lets_go() -> None:
    """A held lease that is let go ends by time."""
    renewed = lifecycle.renew(make_lease(is_held=True), 5, 50.0, hold=False)
    assert lifecycle.decide_end(renewed, is_connected=True, now_mono=55.0) == lifecycle.EXPIRED


def test_renew_checks_the_ttl() -> None:
    """A renewal keeps the bounds too."""
    with pytest.raises(TtlOutOfRange):
        lifecycle.renew(make_lease(), 0, 50.0)


def test_adopt() -> None:
    """A new daemon gives held leases the grace and leaves the others as they are."""
    assert lifecycle.adopt(make_lease(is_held=True), 10.0, 30).expires_mono == 40.0
    assert lifecycle.adopt(make_lease(), 10.0, 30).expires_mono == 100.0
