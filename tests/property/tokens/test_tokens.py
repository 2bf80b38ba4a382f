"""Laws of tokens: what was signed comes back, what was touched does not, and nothing else is ever raised."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toft.http.message import Headers
from toft.protocol.worker import JwtKey
from toft.tokens.apikey import make_publishable, make_secret
from toft.tokens.caller import Caller, Refusal, TokenError
from toft.tokens.identify import ProjectKeys, identify
from toft.tokens.jwt import KeyRing
from toft.tokens.keys import new_signing_key
from toft.world import SystemEntropy

SECRET = "a-secret-of-forty-characters-for-testing"
KEY = new_signing_key(SystemEntropy())
SYMMETRIC = KeyRing(SECRET)
RING = KeyRing(SECRET, [JwtKey(KEY.kid, KEY.alg, KEY.jwk, signs=True)])
KEYS = ProjectKeys(
    ring=RING,
    anon_key=SYMMETRIC.sign({"role": "anon"}),
    service_role_key=SYMMETRIC.sign({"role": "service_role"}),
    publishable_key=make_publishable(SystemEntropy()),
    secret_key=make_secret(SystemEntropy()),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
CLAIMS = st.dictionaries(
    st.text(max_size=10).filter(lambda name: name not in ("exp", "nbf", "iat", "aud")), JSON, max_size=5
)


@given(CLAIMS)
def test_what_was_signed_comes_back(claims):
    """By each kind of key."""
    for ring in (RING, SYMMETRIC):
        assert RING.verify(ring.sign(claims), 0) == claims


@given(CLAIMS, st.data())
def test_what_was_touched_does_not(claims, data):
    """Any other character anywhere, and the token is refused, or says the same as before."""
    token = RING.sign(claims)
    at = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.sampled_from("ABab01-_.=! "))
    touched = token[:at] + other + token[at + 1 :]
    try:
        assert RING.verify(touched, 0) == claims
    except TokenError:
        pass
    else:
        # base64 leaves a few bits of the last character unused
        assert touched == token or at in (token.index("."), len(token) - 1, token.rindex(".") - 1)


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_refused_in_one_way(text):
    """Nothing but a `TokenError` comes out of reading what is no token."""
    with pytest.raises(TokenError):
        RING.verify(text, 0)


@given(JSON, JSON, st.binary(max_size=70))
def test_any_three_parts_are_refused_in_one_way(header, payload, signature):
    """Also when header and payload are JSON of any shape."""

    def part(value: object) -> str:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    with pytest.raises(TokenError):
        RING.verify(f"{part(header)}.{part(payload)}.{part(signature)}", 0)


@given(
    st.sampled_from(["rest", "auth", "storage"]),
    st.none() | st.text(st.characters(max_codepoint=255), max_size=60),
    st.none() | st.text(st.characters(max_codepoint=255), max_size=60),
)
def test_nobody_rises_by_accident(service, authorization, apikey):
    """Without one of the project's own keys or tokens, a caller is anon or refused."""
    raw = [(b"authorization", authorization), (b"apikey", apikey)]
    headers = Headers([(name, value.encode("latin-1")) for name, value in raw if value is not None])
    caller = identify(headers, service, KEYS, 0)
    assert isinstance(caller, Refusal) or (isinstance(caller, Caller) and caller.role == "anon")
