"""What the key ring accepts, refuses and publishes."""

from __future__ import annotations

import base64
import hmac
import json

import msgspec
import pytest
from joserfc import jws
from joserfc.jwk import ECKey, OctKey, RSAKey

from toft.protocol.worker import JwtKey
from toft.tokens.caller import TokenError, TokenFault
from toft.tokens.jwt import KeyRing
from toft.tokens.keys import new_signing_key
from toft.world import SystemEntropy

SECRET = "a-secret-of-forty-characters-for-testing"
NOW = 1_800_000_000.0
RSA = RSAKey.generate_key(2048, {"kid": "r1"}, private=True)
EC_KEY = new_signing_key(SystemEntropy())
OTHER_EC = ECKey.generate_key("P-256", private=True)


def jwt_key(key, alg, kid, signs=False):
    return JwtKey(kid=kid, alg=alg, jwk=json.dumps(key.as_dict(private=True)), signs=signs)


def ring(*, signs="ES256"):
    return KeyRing(
        SECRET,
        [
            JwtKey(EC_KEY.kid, "ES256", EC_KEY.jwk, signs == "ES256"),
            jwt_key(RSA, "RS256", "r1", signs == "RS256"),
            JwtKey(
                "oct1",
                "HS256",
                '{"kty":"oct","k":"c29tZS1vdGhlci1zeW1tZXRyaWMta2V5LWJ5dGVz"}',
                signs == "HS256",
            ),
        ],
    )


def part(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def symmetric(claims, secret=SECRET, header=None):
    return jws.serialize_compact(
        {"alg": "HS256", **(header or {})}, json.dumps(claims), OctKey.import_key(secret)
    )


def forged_hmac(header, key):
    """A token by hand, since the library refuses to misuse a public key."""
    text = f"{part(header)}.{part({'role': 'service_role'})}"
    return f"{text}.{part(hmac.digest(key, text.encode(), 'sha256'))}"


def fault_of(token, keys=None, now=NOW):
    with pytest.raises(TokenError) as caught:
        (keys or ring()).verify(token, now)
    return caught.value.fault, caught.value.detail


@pytest.mark.parametrize("alg", ["ES256", "RS256", "HS256"])
def test_a_ring_accepts_what_it_signs(alg):
    """Each kind of signing key makes tokens that the same ring reads back, with its `kid` in the header."""
    keys = ring(signs=alg)
    token = keys.sign({"sub": "u", "exp": NOW + 1})
    assert keys.verify(token, NOW) == {"sub": "u", "exp": NOW + 1}
    assert keys.algorithm == alg
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    assert header["alg"] == alg
    assert header["typ"] == "JWT"


def test_secret_signs_when_there_is_no_key_set():
    """Without a key set the project's secret is the one key, and nothing is published."""
    keys = KeyRing(SECRET)
    token = keys.sign({"role": "anon"})
    assert keys.verify(token, NOW) == {"role": "anon"}
    assert keys.public_jwks() == b'{"keys":[]}'


def test_symmetric_token_without_kid_is_checked_with_the_secret_even_beside_an_oct_key():
    """A hand-made admin token uses the secret's text, not the key set's decoded bytes."""
    assert ring(signs="HS256").verify(symmetric({"role": "service_role"}), NOW)["role"] == "service_role"


def test_published_set_holds_public_parts_only():
    """Neither symmetric keys nor private numbers leave the ring."""
    published = msgspec.json.decode(ring().public_jwks())["keys"]
    assert [key["kid"] for key in published] == [EC_KEY.kid, "r1"]
    for key in published:
        assert key["use"] == "sig"
        assert key["key_ops"] == ["verify"]
        assert not {"d", "p", "q", "dp", "dq", "qi", "k"} & set(key)


def test_unsecured_tokens_are_refused():
    """`alg: none`, in any spelling, is no algorithm."""
    for name in ("none", "None", "NONE", "nOnE"):
        assert fault_of(f"{part({'alg': name})}.{part({'role': 'service_role'})}.")[0] is TokenFault.UNSECURED
    assert fault_of(f"{part({})}.{part({})}.")[0] is TokenFault.UNSECURED


def test_public_key_is_no_symmetric_secret():
    """HS256 over the published key's text, under that key's id, does not verify."""
    public = RSA.as_pem(private=False)
    assert fault_of(forged_hmac({"alg": "HS256", "kid": "r1"}, public)) == (TokenFault.NO_KEY, "algorithm")
    assert fault_of(forged_hmac({"alg": "HS256"}, public)) == (TokenFault.NO_KEY, "signature")


def test_keys_that_are_not_ours_are_refused():
    """Unknown kid, a foreign key under our kid, a key embedded in the header: no key fits."""
    foreign = jws.serialize_compact({"alg": "ES256", "kid": "x"}, b"{}", OTHER_EC)
    assert fault_of(foreign) == (TokenFault.NO_KEY, "kid")
    ours = jws.serialize_compact({"alg": "ES256", "kid": EC_KEY.kid}, b"{}", OTHER_EC)
    assert fault_of(ours) == (TokenFault.NO_KEY, "signature")
    embedded = jws.serialize_compact(
        {"alg": "ES256", "jwk": OTHER_EC.as_dict(private=False)}, b"{}", OTHER_EC
    )
    assert fault_of(embedded) == (TokenFault.NO_KEY, "signature")
    assert fault_of(symmetric({}, secret="x" * 40)) == (TokenFault.NO_KEY, "signature")


def test_asymmetric_token_without_kid_is_tried_with_the_only_fitting_key():
    """Tokens made by hand often have no `kid`."""
    token = jws.serialize_compact({"alg": "ES256"}, b'{"a":1}', ECKey.import_key(json.loads(EC_KEY.jwk)))
    assert ring().verify(token, NOW) == {"a": 1}


@pytest.mark.parametrize(
    ("token", "fault", "detail"),
    [
        ("", TokenFault.EMPTY, ""),
        ("abc", TokenFault.PARTS, "1"),
        ("a.b", TokenFault.PARTS, "2"),
        ("a.b.c.d.e", TokenFault.PARTS, "5"),
        ("!!!.b.c", TokenFault.CRYPTO, "header"),
        (f"{part([1])}.b.c", TokenFault.CRYPTO, "header"),
        (f"{part({'alg': 'HS1024'})}.{part({})}.x", TokenFault.ALGORITHM, "HS1024"),
        (f"{part({'alg': 'dir', 'enc': 'A256GCM'})}.{part({})}.x", TokenFault.ENCRYPTED, ""),
    ],
)
def test_malformed_tokens(token, fault, detail):
    """Each way of being no token has its own fault."""
    assert fault_of(token) == (fault, detail)


@pytest.mark.parametrize("payload", [b"[]", b"1", b"no json", b"\xff\xfe"])
def test_payload_must_be_an_object(payload):
    """A signed payload that is no JSON object has no claims."""
    token = jws.serialize_compact({"alg": "HS256"}, payload, OctKey.import_key(SECRET))
    assert fault_of(token)[0] is TokenFault.CLAIMS


@pytest.mark.parametrize(
    ("claims", "fault", "detail"),
    [
        ({"exp": NOW - 1}, TokenFault.EXPIRED, "exp"),
        ({"exp": NOW}, TokenFault.EXPIRED, "exp"),
        ({"exp": "soon"}, TokenFault.CLAIM_TYPE, "exp"),
        ({"exp": True}, TokenFault.CLAIM_TYPE, "exp"),
        ({"nbf": NOW + 31}, TokenFault.NOT_YET_VALID, "nbf"),
        ({"iat": NOW + 31}, TokenFault.ISSUED_IN_FUTURE, "iat"),
        ({"iat": "x", "exp": NOW - 1}, TokenFault.EXPIRED, "exp"),
        ({"aud": 3}, TokenFault.AUDIENCE_TYPE, "aud"),
        ({"aud": ["a", 3]}, TokenFault.AUDIENCE_TYPE, "aud"),
    ],
)
def test_times_and_types(claims, fault, detail):
    """Claims are judged in the order exp, nbf, iat, aud."""
    assert fault_of(symmetric(claims)) == (fault, detail)


def test_kept_tokens_expire_all_the_same():
    """The cache keeps the signature's result, never the judgement of time."""
    keys = ring()
    token = symmetric({"exp": NOW + 10})
    assert keys.verify(token, NOW)
    assert keys.verify(token, NOW + 9)
    assert fault_of(token, keys, NOW + 10)[0] is TokenFault.EXPIRED
    assert keys.verify(token, NOW + 10, leeway_seconds=30)


def test_token_without_exp_never_expires():
    """Upstream's admin tokens have none."""
    assert ring().verify(symmetric({"role": "service_role"}), NOW * 2)


def test_cache_is_bounded():
    """A flood of different tokens does not grow the ring, and the first still verifies afterwards."""
    keys = KeyRing(SECRET)
    tokens = [keys.sign({"n": n}) for n in range(1100)]
    assert [keys.verify(token, NOW)["n"] for token in tokens] == list(range(1100))
    assert len(keys._kept) == 1024
    assert keys.verify(tokens[0], NOW) == {"n": 0}


def test_claims_json_is_compact():
    """What goes to the database as `request.jwt.claims` has no spaces and every claim."""
    token = symmetric({"role": "authenticated", "n": [1, {"a": None}]})
    assert ring().read(token).claims_json == b'{"role":"authenticated","n":[1,{"a":null}]}'
