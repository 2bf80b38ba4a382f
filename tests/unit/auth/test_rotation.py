"""The rules of refresh tokens, as a table."""

from __future__ import annotations

import pytest

from toft.auth.rotation import (
    Branch,
    Limits,
    Refuse,
    Repeat,
    Shown,
    Swap,
    decide_refresh,
    decide_session_end,
)


@pytest.mark.parametrize(
    ("shown", "rotates", "outcome"),
    [
        (Shown(is_revoked=False), True, Swap()),
        (Shown(is_revoked=False), False, Swap()),
        (Shown(is_revoked=True, revoked_seconds_ago=9e9, is_parent_of_active=True), True, Repeat()),
        (Shown(is_revoked=True, revoked_seconds_ago=9.9), True, Branch()),
        (Shown(is_revoked=True, revoked_seconds_ago=1, has_active=False), True, Refuse(ends_family=True)),
        (Shown(is_revoked=True, revoked_seconds_ago=10), True, Refuse(ends_family=True)),
        (Shown(is_revoked=True, revoked_seconds_ago=10), False, Refuse(ends_family=False)),
    ],
)
def test_what_becomes_of_a_token(shown, rotates, outcome):
    """In this order: living, parent of the living, revoked a moment ago, used before."""
    assert decide_refresh(shown, reuse_interval_seconds=10, rotates=rotates) == outcome


@pytest.mark.parametrize(
    ("limits", "facts", "reason"),
    [
        (Limits(), {}, None),
        (Limits(), {"not_after": 99}, ""),
        (Limits(timebox_seconds=99), {}, ""),
        (Limits(timebox_seconds=100), {}, None),
        (Limits(inactivity_seconds=49), {}, " (Inactivity)"),
        (Limits(inactivity_seconds=50), {}, None),
    ],
)
def test_how_long_a_session_lives(limits, facts, reason):
    """Its row's end, its age, its idleness."""
    known = {"now": 100, "created_at": 0, "active_at": 50, "not_after": None} | facts
    assert decide_session_end(limits, **known) == reason
