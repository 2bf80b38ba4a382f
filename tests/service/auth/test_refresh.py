"""Refreshing: rotation, lost answers, reuse, races, and what ends with a session."""

from __future__ import annotations

import asyncio

from tests.kit.fix_auth import AuthBackend
from tests.service.auth.test_spine import claims_of


async def refresh(backend: AuthBackend, token: str):
    return await backend.call("POST /token?grant_type=refresh_token", {"refresh_token": token})


async def test_refresh_swaps_the_token_and_keeps_the_session(auth_backend: AuthBackend):
    """A new pair for the same session, with the user as the row stands now."""
    first = await auth_backend.sign_up()
    sql = await auth_backend.sql()
    await sql.script("""update auth.users set raw_app_meta_data = raw_app_meta_data || '{"role":"admin"}'""")
    second = (await refresh(auth_backend, first["refresh_token"])).json()
    assert second["refresh_token"] != first["refresh_token"]
    before, after = claims_of(first["access_token"]), claims_of(second["access_token"])
    assert after["session_id"] == before["session_id"]
    assert after["app_metadata"]["role"] == "admin"
    assert after["amr"] == before["amr"]
    rows = await sql.query("select revoked, parent from auth.refresh_tokens order by id")
    assert rows == [["t", None], ["f", first["refresh_token"]]]


async def test_lost_answer_gives_the_active_token_again(auth_backend: AuthBackend):
    """The parent of the active token may be shown again, however late."""
    first = await auth_backend.sign_up()
    second = (await refresh(auth_backend, first["refresh_token"])).json()
    auth_backend.clock.turn(hours=5)
    again = (await refresh(auth_backend, first["refresh_token"])).json()
    assert again["refresh_token"] == second["refresh_token"]


async def test_reuse_within_the_interval_branches_and_later_ends_the_family(auth_backend: AuthBackend):
    """A grandparent is good for ten seconds; then somebody has a copy, and nobody refreshes any more."""
    first = (await auth_backend.sign_up())["refresh_token"]
    second = (await refresh(auth_backend, first)).json()["refresh_token"]
    third = (await refresh(auth_backend, second)).json()
    branched = await refresh(auth_backend, first)
    assert branched.status_code == 200
    assert branched.json()["refresh_token"] not in (first, second, third["refresh_token"])
    auth_backend.clock.turn(seconds=11)
    fourth = (await refresh(auth_backend, third["refresh_token"])).json()
    stolen = await refresh(auth_backend, second)
    assert stolen.status_code == 400
    assert stolen.json() == {
        "code": "refresh_token_already_used",
        "message": "Invalid Refresh Token: Already Used",
    }
    for token in (fourth["refresh_token"], branched.json()["refresh_token"]):
        assert (await refresh(auth_backend, token)).json()["code"] == "refresh_token_already_used"
    # the session's row stays, so that access tokens live on
    assert (await auth_backend.call("GET /user", token=fourth["access_token"])).status_code == 200


async def test_without_rotation_reuse_is_refused_and_the_family_lives(auth_backend: AuthBackend):
    """The old token is refused; the active one still works."""
    auth_backend.configure(enable_refresh_token_rotation=False, refresh_token_reuse_interval_seconds=0)
    first = (await auth_backend.sign_up())["refresh_token"]
    second = (await refresh(auth_backend, first)).json()["refresh_token"]
    third = (await refresh(auth_backend, second)).json()["refresh_token"]
    assert (await refresh(auth_backend, first)).status_code == 400
    assert (await refresh(auth_backend, third)).status_code == 200


async def test_twenty_at_once_converge(auth_backend: AuthBackend):
    """Parallel refreshes of one token all succeed and end with one living token."""
    first = (await auth_backend.sign_up())["refresh_token"]
    answers = await asyncio.gather(*(refresh(auth_backend, first) for _ in range(20)))
    assert [answer.status_code for answer in answers] == [200] * 20
    assert len({answer.json()["refresh_token"] for answer in answers}) == 1
    sql = await auth_backend.sql()
    assert await sql.query("select count(*) from auth.refresh_tokens where not revoked") == [["1"]]


async def test_bad_tokens(auth_backend: AuthBackend):
    """What is no token, what is unknown, and what belongs to an ended session."""
    assert (await refresh(auth_backend, "short")).json()["message"] == "Refresh token is not valid"
    assert (await refresh(auth_backend, "")).json()["code"] == "validation_failed"
    assert (await refresh(auth_backend, "abcdefghijkl")).json() == {
        "code": "refresh_token_not_found",
        "message": "Invalid Refresh Token: Refresh Token Not Found",
    }
    session = await auth_backend.sign_up()
    await auth_backend.call("POST /logout", token=session["access_token"])
    answer = await refresh(auth_backend, session["refresh_token"])
    assert answer.json()["code"] == "refresh_token_not_found"


async def test_banned_and_timed_out_sessions_do_not_go_on(auth_backend: AuthBackend):
    """A ban, the session's age and its idleness are looked at when it is refreshed."""
    session = await auth_backend.sign_up()
    token, user_id = session["refresh_token"], session["user"]["id"]
    auth_backend.configure(session_timebox_seconds=3600.0)
    auth_backend.clock.turn(hours=2)
    assert (await refresh(auth_backend, token)).json()["code"] == "session_expired"
    auth_backend.configure(session_timebox_seconds=None, session_inactivity_seconds=600.0)
    expired = (await refresh(auth_backend, token)).json()
    assert expired["message"] == "Invalid Refresh Token: Session Expired (Inactivity)"
    auth_backend.configure(session_inactivity_seconds=None)
    banned = await auth_backend.admin(f"PUT /admin/users/{user_id}", {"ban_duration": "1h30m"})
    assert banned.status_code == 200
    assert (await refresh(auth_backend, token)).json()["code"] == "user_banned"
    await auth_backend.admin(f"PUT /admin/users/{user_id}", {"ban_duration": "none"})
    assert (await refresh(auth_backend, token)).status_code == 200
