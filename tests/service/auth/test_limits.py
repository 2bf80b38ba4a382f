"""Rate limits: not met in a lease, unless it asks to meet them."""

from __future__ import annotations

from tests.kit.fix_auth import AuthBackend
from toft.protocol.worker import AuthRateLimits

WRONG = {"email": "ada@example.com", "password": "wrong"}


async def statuses(backend: AuthBackend, line: str, body: object, count: int, **headers: str) -> list[int]:
    return [(await backend.call(line, body, **headers)).status_code for _ in range(count)]


async def test_generous_unless_asked(auth_backend: AuthBackend):
    """What config.toml says by default holds nobody up."""
    assert 429 not in await statuses(auth_backend, "POST /verify", {}, 40)


async def test_enforced(auth_backend: AuthBackend):
    """By address and kind of request; they come back with time; administrators are not counted."""
    limits = AuthRateLimits(
        enforce=True, token_refresh=3, sign_in_sign_ups=2, token_verifications=2, anonymous_users=1
    )
    auth_backend.configure(rate_limits=limits, enable_anonymous_sign_ins=True)
    line = "POST /token?grant_type=refresh_token"
    assert await statuses(auth_backend, line, {"refresh_token": "x"}, 4) == [400, 400, 400, 429]
    answer = await auth_backend.call(line, {"refresh_token": "x"})
    assert answer.json() == {"code": "over_request_rate_limit", "message": "Request rate limit reached"}
    assert await statuses(auth_backend, line, {}, 1, **{"x-forwarded-for": "10.0.0.2"}) == [400]
    assert await statuses(auth_backend, "POST /otp", {"email": "?"}, 3) == [400, 400, 429]
    assert await statuses(auth_backend, "POST /verify", {}, 3) == [400, 400, 429]
    assert await statuses(auth_backend, "POST /signup", {}, 2) == [200, 429]
    auth_backend.clock.turn(seconds=101)
    assert await statuses(auth_backend, line, {"refresh_token": "x"}, 2) == [400, 429]
    admin = [
        (await auth_backend.call(line, {}, token=auth_backend.keys.service_role_key)).status_code
        for _ in range(4)
    ]
    assert admin == [400] * 4


async def test_mails_and_texts(auth_backend: AuthBackend):
    """The project as a whole has so many in an hour."""
    limits = AuthRateLimits(enforce=True, email_sent=1, sms_sent=1)
    auth_backend.configure(
        rate_limits=limits,
        sms_enable_signup=True,
        sms_enable_confirmations=True,
        email_max_frequency_seconds=0,
    )
    codes = []
    for body in (
        {"email": "ada@example.com"},
        {"email": "bob@example.com"},
        {"phone": "+1555"},
        {"phone": "+1556"},
    ):
        answer = await auth_backend.call("POST /otp", body)
        codes.append(answer.json().get("code"))
    assert codes == [None, "over_email_send_rate_limit", None, "over_sms_send_rate_limit"]
    auth_backend.clock.turn(hours=1)
    assert (await auth_backend.call("POST /otp", {"email": "bob@example.com"})).status_code == 200
