"""Second factors: enrolled, verified, asked for, taken away."""

from __future__ import annotations

from tests.kit.fix_auth import AuthBackend
from tests.service.auth.test_spine import claims_of
from toft.auth.totp import code_at

ON = {
    "mfa_totp_enroll_enabled": True,
    "mfa_totp_verify_enabled": True,
    "mfa_phone_enroll_enabled": True,
    "mfa_phone_verify_enabled": True,
}
TOTP = {"factor_type": "totp", "friendly_name": "app"}


async def enrolled(backend: AuthBackend, token: str) -> dict:
    answer = await backend.call("POST /factors", TOTP, token=token)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def verified(backend: AuthBackend, token: str) -> tuple[dict, dict]:
    """A verified factor and the session at aal2."""
    factor = await enrolled(backend, token)
    path = f"/factors/{factor['id']}"
    challenge = (await backend.call(f"POST {path}/challenge", {}, token=token)).json()
    code = code_at(factor["totp"]["secret"], backend.clock.unix())
    body = {"challenge_id": challenge["id"], "code": code}
    answer = await backend.call(f"POST {path}/verify", body, token=token)
    assert answer.status_code == 200, answer.text
    return factor, answer.json()


async def test_totp_raises_the_session(auth_backend: AuthBackend):
    """Same session, aal2, a new refresh token; weaker sessions of the user end."""
    auth_backend.configure(**ON)
    first = await auth_backend.sign_up()
    grant = {"email": "ada@example.com", "password": "a-long-enough-one"}
    other = (await auth_backend.call("POST /token?grant_type=password", grant)).json()
    factor, raised = await verified(auth_backend, first["access_token"])
    assert factor["totp"]["qr_code"].startswith("<svg")
    assert factor["totp"]["uri"].startswith("otpauth://totp/127.0.0.1:ada%40example.com?")
    claims = claims_of(raised["access_token"])
    assert claims["aal"] == "aal2"
    assert claims["session_id"] == claims_of(first["access_token"])["session_id"]
    assert [entry["method"] for entry in claims["amr"]] == ["totp", "password"]
    assert raised["user"]["factors"][0]["status"] == "verified"
    assert "secret" not in raised["user"]["factors"][0]
    assert (await auth_backend.call("GET /user", token=other["access_token"])).status_code == 403
    old = {"refresh_token": first["refresh_token"]}
    auth_backend.clock.turn(seconds=11)
    assert (await auth_backend.call("POST /token?grant_type=refresh_token", old)).status_code == 400


async def test_refreshed_session_stays_raised(auth_backend: AuthBackend):
    """The level is the session's, not the token's."""
    auth_backend.configure(**ON)
    _, raised = await verified(auth_backend, (await auth_backend.sign_up())["access_token"])
    body = {"refresh_token": raised["refresh_token"]}
    again = (await auth_backend.call("POST /token?grant_type=refresh_token", body)).json()
    assert claims_of(again["access_token"])["aal"] == "aal2"


async def test_refusals(auth_backend: AuthBackend):
    """Each has its status and code."""
    token = (await auth_backend.sign_up())["access_token"]
    off = await auth_backend.call("POST /factors", TOTP, token=token)
    assert (off.status_code, off.json()["code"]) == (422, "mfa_totp_enroll_not_enabled")
    assert off.json()["message"] == "MFA enroll is disabled for TOTP"
    auth_backend.configure(**ON, mfa_max_enrolled_factors=2)
    factor = await enrolled(auth_backend, token)
    same = await auth_backend.call("POST /factors", TOTP, token=token)
    assert same.json()["code"] == "mfa_factor_name_conflict"
    assert (await auth_backend.call("POST /factors", {"factor_type": "x"}, token=token)).status_code == 400
    await auth_backend.call("POST /factors", {**TOTP, "friendly_name": "two"}, token=token)
    many = await auth_backend.call("POST /factors", {**TOTP, "friendly_name": "three"}, token=token)
    assert many.json()["code"] == "too_many_enrolled_mfa_factors"
    path = f"/factors/{factor['id']}"
    unknown = await auth_backend.call("POST /factors/none/challenge", {}, token=token)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "mfa_factor_not_found")
    challenge = (await auth_backend.call(f"POST {path}/challenge", None, token=token)).json()
    wrong = {"challenge_id": challenge["id"], "code": "000000"}
    cases = [
        ({**wrong, "code": ""}, {}, 400, "validation_failed"),
        ({**wrong, "challenge_id": factor["id"]}, {}, 422, "mfa_factor_not_found"),
        (wrong, {"x-forwarded-for": "10.1.1.1"}, 422, "mfa_ip_address_mismatch"),
        (wrong, {}, 422, "mfa_verification_failed"),
    ]
    for body, headers, status, code in cases:
        answer = await auth_backend.call(f"POST {path}/verify", body, token=token, **headers)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    auth_backend.clock.turn(seconds=301)
    late = await auth_backend.call(f"POST {path}/verify", wrong, token=token)
    assert late.json()["code"] == "mfa_challenge_expired"


async def test_a_challenge_is_answered_once(auth_backend: AuthBackend):
    """The same answer again is refused."""
    auth_backend.configure(**ON)
    token = (await auth_backend.sign_up())["access_token"]
    factor = await enrolled(auth_backend, token)
    path = f"/factors/{factor['id']}"
    challenge = (await auth_backend.call(f"POST {path}/challenge", {}, token=token)).json()
    code = code_at(factor["totp"]["secret"], auth_backend.clock.unix() - 30)
    body = {"challenge_id": challenge["id"], "code": code}
    assert (await auth_backend.call(f"POST {path}/verify", body, token=token)).status_code == 200
    replay = await auth_backend.call(f"POST {path}/verify", body, token=token)
    assert replay.json()["code"] == "mfa_ip_address_mismatch"


async def test_account_changes_need_the_second_factor(auth_backend: AuthBackend):
    """With a verified factor an aal1 session may change data, but neither address nor password."""
    auth_backend.configure(**ON)
    await verified(auth_backend, (await auth_backend.sign_up())["access_token"])
    grant = {"email": "ada@example.com", "password": "a-long-enough-one"}
    weak = (await auth_backend.call("POST /token?grant_type=password", grant)).json()["access_token"]
    for body in ({"password": "another-long-one"}, {"email": "new@example.com"}):
        answer = await auth_backend.call("PUT /user", body, token=weak)
        assert (answer.status_code, answer.json()["code"]) == (401, "insufficient_aal")
    assert (await auth_backend.call("PUT /user", {"data": {"a": 1}}, token=weak)).status_code == 200
    more = await auth_backend.call("POST /factors", {**TOTP, "friendly_name": "two"}, token=weak)
    assert (more.status_code, more.json()["code"]) == (403, "insufficient_aal")


async def test_unenrol(auth_backend: AuthBackend):
    """Taking a verified factor away needs aal2 and lowers the session."""
    auth_backend.configure(**ON)
    factor, raised = await verified(auth_backend, (await auth_backend.sign_up())["access_token"])
    grant = {"email": "ada@example.com", "password": "a-long-enough-one"}
    weak = (await auth_backend.call("POST /token?grant_type=password", grant)).json()["access_token"]
    path = f"DELETE /factors/{factor['id']}"
    assert (await auth_backend.call(path, token=weak)).json()["code"] == "insufficient_aal"
    assert (await auth_backend.call(path, token=raised["access_token"])).json() == {"id": factor["id"]}
    body = {"refresh_token": raised["refresh_token"]}
    again = (await auth_backend.call("POST /token?grant_type=refresh_token", body)).json()
    claims = claims_of(again["access_token"])
    assert (claims["aal"], [entry["method"] for entry in claims["amr"]]) == ("aal1", ["password"])


async def test_phone_factor(auth_backend: AuthBackend):
    """The challenge sends a code."""
    auth_backend.configure(**ON)
    token = (await auth_backend.sign_up())["access_token"]
    body = {"factor_type": "phone", "friendly_name": "mobile", "phone": "+1 555 0100"}
    factor = (await auth_backend.call("POST /factors", body, token=token)).json()
    assert factor["phone"] == "15550100"
    path = f"/factors/{factor['id']}"
    challenge = (await auth_backend.call(f"POST {path}/challenge", {"channel": "sms"}, token=token)).json()
    answer = {"challenge_id": challenge["id"], "code": auth_backend.outbox.last_code("15550100")}
    raised = await auth_backend.call(f"POST {path}/verify", answer, token=token)
    assert claims_of(raised.json()["access_token"])["amr"][0]["method"] == "mfa/phone"


async def test_administrators_look_after_factors(auth_backend: AuthBackend):
    """List, rename, delete."""
    auth_backend.configure(**ON)
    session = await auth_backend.sign_up()
    factor = await enrolled(auth_backend, session["access_token"])
    path = f"/admin/users/{session['user']['id']}/factors"
    assert [one["id"] for one in (await auth_backend.admin(f"GET {path}")).json()] == [factor["id"]]
    renamed = await auth_backend.admin(f"PUT {path}/{factor['id']}", {"friendly_name": "phone"})
    assert renamed.json()["friendly_name"] == "phone"
    assert (await auth_backend.admin(f"DELETE {path}/{factor['id']}")).json()["id"] == factor["id"]
    assert (await auth_backend.admin(f"GET {path}")).json() == []
    assert (await auth_backend.call(f"GET {path}")).status_code == 403
