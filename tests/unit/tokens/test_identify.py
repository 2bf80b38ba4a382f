"""Who sends a request: the rules of the door, per service."""

from __future__ import annotations

import pytest

from toft.http.message import Headers
from toft.tokens.apikey import has_valid_form, make_legacy_key, make_publishable, make_secret
from toft.tokens.caller import Caller, Refusal, TokenFault
from toft.tokens.identify import ProjectKeys, identify
from toft.tokens.jwt import KeyRing
from toft.world import SystemEntropy

SECRET = "a-secret-of-forty-characters-for-testing"
NOW = 1_800_000_000.0
RING = KeyRing(SECRET)
KEYS = ProjectKeys(
    ring=RING,
    anon_key=make_legacy_key("anon", SECRET, NOW - 10),
    service_role_key=make_legacy_key("service_role", SECRET, NOW - 10),
    publishable_key=make_publishable(SystemEntropy()),
    secret_key=make_secret(SystemEntropy()),
)
USER = RING.sign({"sub": "u1", "role": "authenticated", "exp": NOW + 60})


def who(service="rest", **headers):
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return identify(Headers(raw), service, KEYS, NOW)


@pytest.mark.parametrize("service", ["rest", "auth", "storage"])
def test_user_session_counts_whatever_the_api_key(service):
    """Rule 1: a bearer that is no opaque key is passed on; a foreign or missing apikey does not matter."""
    for key in (KEYS.publishable_key, KEYS.anon_key, "nonsense", None):
        headers = {"authorization": f"Bearer {USER}"} | ({"apikey": key} if key else {})
        caller = who(service, **headers)
        assert caller.role == "authenticated"
        assert caller.claims["sub"] == "u1"
        assert caller.token == USER
        assert not caller.is_secret_key


@pytest.mark.parametrize("service", ["rest", "auth", "storage"])
def test_opaque_keys_become_tokens(service):
    """Rule 2: as apikey only, as bearer only, and as both."""
    for key, role in ((KEYS.publishable_key, "anon"), (KEYS.secret_key, "service_role")):
        bearer = f"Bearer {key}"
        for headers in ({"apikey": key}, {"authorization": bearer}, {"apikey": key, "authorization": bearer}):
            caller = who(service, **headers)
            assert isinstance(caller, Caller)
            assert caller.role == role
            assert caller.claims["role"] == role
            assert caller.token == (KEYS.anon_key if role == "anon" else KEYS.service_role_key)
            assert caller.is_secret_key == (role == "service_role")


def test_legacy_key_alone_is_a_bearer_except_for_auth():
    """Rule 3: a lone legacy key names the role for the data services and is nobody for Auth."""
    for service in ("rest", "storage"):
        assert who(service, apikey=KEYS.service_role_key).role == "service_role"
    assert who("auth", apikey=KEYS.service_role_key).token is None
    assert who("auth", apikey=KEYS.service_role_key).role == "anon"
    assert who("auth", authorization=f"Bearer {KEYS.service_role_key}").role == "service_role"


def test_foreign_opaque_key_is_refused():
    """No service could make sense of an opaque key that is not the project's."""
    other = make_secret(SystemEntropy())
    assert who(apikey=other) is Refusal.INVALID_API_KEY
    assert who(authorization=f"Bearer {other}") is Refusal.INVALID_API_KEY
    assert who(apikey=KEYS.secret_key[:-1]) is Refusal.INVALID_API_KEY


def test_no_key_at_all_is_anon():
    """The local stack does not insist on a key."""
    caller = who()
    assert (caller.role, caller.token, caller.claims_json) == ("anon", None, b'{"role":"anon"}')


def test_other_schemes_are_no_bearer():
    """Basic authentication is for the service to read; `bearer` may be written in any case."""
    assert who(authorization="Basic abc").token is None
    assert who(authorization=f"bearer {USER}").role == "authenticated"
    assert who(authorization="Bearer ").error.fault is TokenFault.EMPTY


def test_failing_token_leaves_an_anonymous_caller_with_its_error():
    """Routes that tolerate a bad token go on as anon; the others answer the error."""
    caller = who(authorization="Bearer a.b.c")
    assert (caller.role, caller.token) == ("anon", "a.b.c")
    assert caller.error.fault is TokenFault.CRYPTO
    assert who(apikey="nonsense").error.fault is TokenFault.PARTS


def test_expiry_allows_for_clocks_on_the_data_api_only():
    """The Data API accepts a token for 30 seconds more; Auth and Storage do not."""
    token = RING.sign({"role": "authenticated", "exp": NOW - 5})
    assert who("rest", authorization=f"Bearer {token}").error is None
    for service in ("auth", "storage"):
        assert who(service, authorization=f"Bearer {token}").error.fault is TokenFault.EXPIRED


def test_token_without_role_is_anon_in_name_and_claims():
    """The claims that policies read name the role that the request runs as."""
    caller = who(authorization=f"Bearer {RING.sign({'sub': 'x'})}")
    assert caller.role == "anon"
    assert caller.claims_json == b'{"sub":"x","role":"anon"}'


def test_opaque_keys_have_a_checkable_form():
    """A mistyped key is recognised without knowing the right one."""
    for key in (KEYS.publishable_key, KEYS.secret_key):
        assert has_valid_form(key)
        assert not has_valid_form(key[:-1])
        assert not has_valid_form(key.replace(key[20], "A" if key[20] != "A" else "B", 1))
    assert len(KEYS.publishable_key) == len("sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH")
    assert not has_valid_form("eyJ")
