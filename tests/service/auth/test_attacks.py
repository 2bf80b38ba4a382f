"""Attacks on Auth over real HTTP, one test each: what is tried, and that it leads nowhere."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

from tests.kit.fix_auth import AuthBackend
from tests.service.auth.test_spine import claims_of
from tests.unit.auth.test_redirects import TRICKS
from toft.auth.passwords import PasswordWork
from toft.auth.routes import ROUTES, BodyKind
from toft.protocol.worker import JwtKey
from toft.tokens.keys import new_signing_key
from toft.world import SystemEntropy

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
ADA = {"email": "ada@example.com", "password": "a-long-enough-one"}


def part(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_hmac(header: dict[str, Any], claims: dict[str, Any], key: bytes) -> str:
    """A token by hand: libraries refuse to sign with a public key."""
    text = f"{part(header)}.{part(claims)}"
    return f"{text}.{part(hmac.digest(key, text.encode(), hashlib.sha256))}"


async def refused(backend: AuthBackend, token: str) -> httpx.Response:
    """A forged token opens neither the user's routes nor the administrator's."""
    answer = await backend.call("GET /user", token=token)
    assert (answer.status_code, answer.json()["code"]) == (403, "bad_jwt"), answer.text
    admin = await backend.call("GET /admin/users", token=token)
    assert (admin.status_code, admin.json()["code"]) == (403, "bad_jwt"), admin.text
    return answer


@pytest.fixture
async def forged(auth_backend: AuthBackend) -> dict[str, Any]:
    """The claims of a real session, raised to an administrator's."""
    return {**claims_of((await auth_backend.sign_up())["access_token"]), "role": "service_role"}


async def test_alg_none(auth_backend: AuthBackend, forged: dict[str, Any]):
    """A token that says that it is not signed, in any spelling, is refused."""
    for name in ("none", "None", "NONE", "nOnE", ""):
        await refused(auth_backend, f"{part({'alg': name, 'typ': 'JWT'})}.{part(forged)}.")
        await refused(auth_backend, f"{part({'alg': name})}.{part(forged)}.{part(b'x')}")


async def test_key_confusion(auth_backend: AuthBackend, forged: dict[str, Any]):
    """A public key, in any form that it is published in, is no secret to sign with."""
    private = rsa.generate_private_key(65537, 2048)
    jwk = RSAKey.import_key(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = private.public_key()
    ec = json.loads(auth_backend.ring.public_jwks())["keys"][0]
    auth_backend.ring.exchange([JwtKey("r-1", "RS256", json.dumps(jwk.as_dict(private=True)), signs=True)])
    published = auth_backend.ring.public_jwks()
    keys = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).strip(),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
        published,
        json.dumps(json.loads(published)["keys"][0]).encode(),
        json.dumps(ec).encode(),
        b"",
        b"\0",
    ]
    for key in keys:
        for header in ({"alg": "HS256", "kid": "r-1"}, {"alg": "HS256"}, {"alg": "RS256", "kid": "r-1"}):
            await refused(auth_backend, by_hmac(header, forged, key))


async def test_unknown_kid(auth_backend: AuthBackend, forged: dict[str, Any]):
    """A key of somebody else's, by a name of its own, by ours, or brought along in the header."""
    own = json.loads(auth_backend.ring.public_jwks())["keys"][0]
    stranger = new_signing_key(SystemEntropy())
    key = ECKey.import_key(json.loads(stranger.jwk))
    public = key.as_dict(private=False)
    registry = jws.JWSRegistry(algorithms=["ES256"], strict_check_header=False)
    for header in (
        {"alg": "ES256", "kid": stranger.kid},
        {"alg": "ES256", "kid": own["kid"]},
        {"alg": "ES256"},
        {"alg": "ES256", "kid": "../../../../dev/null"},
        {"alg": "ES256", "kid": "x' union select 'a"},
        {"alg": "ES256", "kid": own["kid"], "jwk": public},
        {"alg": "ES256", "jku": "http://127.0.0.1:1/keys"},
    ):
        await refused(auth_backend, jws.serialize_compact(header, json.dumps(forged), key, registry=registry))


@pytest.mark.parametrize(
    "times",
    [{"exp": 1}, {"exp": "9999999999"}, {"nbf": 9999999999}, {"iat": 9999999999}, {"exp": None, "nbf": "x"}],
)
async def test_expired_and_future(auth_backend: AuthBackend, forged: dict[str, Any], times: dict[str, Any]):
    """A real signature over times that do not hold, or are no times."""
    claims = {name: value for name, value in {**forged, **times}.items() if value is not None}
    await refused(auth_backend, auth_backend.ring.sign(claims))


async def test_wrong_audience(auth_backend: AuthBackend):
    """A token for another audience reads no user of this one; an audience of no type is no token."""
    session = await auth_backend.sign_up()
    claims = claims_of(session["access_token"])
    elsewhere = auth_backend.ring.sign({**claims, "aud": "another-app"})
    answer = await auth_backend.call("GET /user", token=elsewhere, **{"x-jwt-aud": "authenticated"})
    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    for audience in ({"a": 1}, 7, [1]):
        await refused(
            auth_backend, auth_backend.ring.sign({**claims, "aud": audience, "role": "service_role"})
        )


async def test_twenty_refreshes_and_a_thief(auth_backend: AuthBackend):
    """Of twenty refreshes at once one family lives; who comes later with the old token ends it for both."""
    first = (await auth_backend.sign_up())["refresh_token"]
    line = "POST /token?grant_type=refresh_token"
    answers = await asyncio.gather(*(auth_backend.call(line, {"refresh_token": first}) for _ in range(20)))
    living = {answer.json()["refresh_token"] for answer in answers}
    assert len(living) == 1
    next_one = (await auth_backend.call(line, {"refresh_token": living.pop()})).json()["refresh_token"]
    auth_backend.clock.turn(seconds=11)
    thief = await auth_backend.call(line, {"refresh_token": first})
    assert thief.json()["code"] == "refresh_token_already_used"
    assert (await auth_backend.call(line, {"refresh_token": next_one})).status_code == 400


async def test_replayed_codes(auth_backend: AuthBackend):
    """A code or a link that has been used opens nothing again, in any of its forms."""
    auth_backend.configure(email_enable_confirmations=True)
    await auth_backend.call("POST /signup", ADA)
    code, link = (
        auth_backend.outbox.last_code("ada@example.com"),
        auth_backend.outbox.last_link("ada@example.com"),
    )
    proof = {"type": "signup", "email": "ada@example.com", "token": code}
    assert (await auth_backend.call("POST /verify", proof)).status_code == 200
    assert (await auth_backend.call("POST /verify", proof)).json()["code"] == "otp_expired"
    hashed = dict(parse_qsl(urlsplit(link).query))["token"]
    by_hash = {"type": "signup", "token_hash": hashed}
    assert (await auth_backend.call("POST /verify", by_hash)).json()["code"] == "otp_expired"
    assert "error_code=otp_expired" in (await go(link)).headers["location"]
    auth_backend.clock.turn(minutes=1)
    await auth_backend.call("POST /otp", {"email": "ada@example.com"})
    wrong = {**proof, "type": "email", "token": "000000"}
    assert (await auth_backend.call("POST /verify", wrong)).json()["code"] == "otp_expired"


async def go(address: str) -> httpx.Response:
    async with httpx.AsyncClient() as browser:
        return await browser.get(address)


@pytest.mark.parametrize("target", [trick for trick in TRICKS if trick])
async def test_redirect_tricks(auth_backend: AuthBackend, target: str):
    """Wherever a browser may be sent, a target that only looks allowed becomes the site's own address."""
    auth_backend.configure(
        site_url="https://app.example.com",
        additional_redirect_urls=("https://exact.example.com/callback", "https://preview-*.example.com/**"),
    )
    link = f"{auth_backend.url}/verify?token=x&type=signup&redirect_to={quote(target, safe='')}"
    location = (await go(link)).headers["location"]
    assert location.startswith("https://app.example.com#"), location
    asked = f"POST /otp?redirect_to={quote(target, safe='')}"
    assert (await auth_backend.call(asked, {"email": "ada@example.com"})).status_code == 200
    inside = dict(parse_qsl(urlsplit(auth_backend.outbox.last_link("ada@example.com")).query))["redirect_to"]
    assert inside == "https://app.example.com"


async def test_pkce_downgrade(auth_backend: AuthBackend):
    """Who began with a challenge cannot be brought to an end without its verifier."""
    auth_backend.configure(email_enable_confirmations=True, oauth_server_enabled=True)
    body = {**ADA, "code_challenge": CHALLENGE, "code_challenge_method": "s256"}
    await auth_backend.call("POST /signup", body)
    link = auth_backend.outbox.last_link("ada@example.com")
    assert "token=pkce_" in link
    location = (await go(link.replace("token=pkce_", "token="))).headers["location"]
    assert "access_token" not in location
    code = dict(parse_qsl(urlsplit(location).query))["code"]
    line = "POST /token?grant_type=pkce"
    for verifier in ("", CHALLENGE, VERIFIER.lower(), VERIFIER + " "):
        answer = await auth_backend.call(line, {"auth_code": code, "code_verifier": verifier})
        assert answer.status_code == 400, answer.text
    good = await auth_backend.call(line, {"auth_code": code, "code_verifier": VERIFIER})
    assert good.status_code == 200
    client = (
        await auth_backend.admin(
            "POST /admin/oauth/clients", {"redirect_uris": ["http://127.0.0.1:7/b"], "client_name": "c"}
        )
    ).json()
    for challenge in ({}, {"code_challenge": CHALLENGE[:20], "code_challenge_method": "S256"},
                      {"code_challenge": CHALLENGE, "code_challenge_method": "none"}):  # fmt: skip
        query = {"client_id": client["client_id"], "redirect_uri": "http://127.0.0.1:7/b", **challenge}
        answer = await go(str(httpx.URL(f"{auth_backend.url}/oauth/authorize", params=query)))
        assert "error=invalid_request" in answer.headers["location"]


async def test_nobody_learns_who_is_known(auth_backend: AuthBackend):
    """Sign-up, recovery, codes and sign-in answer a stranger and a user alike, to the last header's name."""
    # as upstream: where either kind of address needs no confirming, a sign-up says that it is taken
    auth_backend.configure(
        email_enable_confirmations=True, sms_enable_confirmations=True, email_max_frequency_seconds=0
    )
    await auth_backend.admin("POST /admin/users", {**ADA, "email_confirm": True})
    for line, body in (
        ("POST /signup", {"password": "another-long-one", "data": {"a": 1}}),
        ("POST /recover", {}),
        ("POST /resend", {"type": "signup"}),
        ("POST /token?grant_type=password", {"password": "wrong"}),
        ("POST /verify", {"type": "recovery", "token": "000000"}),
    ):
        seen = [
            await auth_backend.call(line, {"email": email, **body})
            for email in ("ada@example.com", "stranger@example.com")
        ]
        assert seen[0].status_code == seen[1].status_code, line
        assert sorted(seen[0].headers) == sorted(seen[1].headers), line
        assert _shape(seen[0].json()) == _shape(seen[1].json()), line


#: what upstream's answer for a user who is known leaves out, and apps look at
_TOLD = ("identities", "role", "user_metadata")


def _shape(value: Any) -> Any:
    """A body without what differs from user to user: ids, instants and addresses."""
    if isinstance(value, dict):
        return {name: _shape(member) for name, member in value.items() if name not in _TOLD}
    if isinstance(value, str) and re.fullmatch(r"[0-9a-f-]{36}|20\d\d-.*Z|.*@example.com|", value):
        return type(value).__name__ if not value.startswith("20") else "instant"
    return value


class CountedWork(PasswordWork):
    """Counts what is hashed or compared: what it costs is bcrypt's time and nothing else."""

    def __init__(self) -> None:
        super().__init__(SystemEntropy())
        self.done = 0

    async def hash(self, password: str) -> str:
        self.done += 1
        return await super().hash(password)

    async def matches(self, password: str, stored: str) -> bool:
        self.done += 1
        return await super().matches(password, stored)


async def test_time_tells_nothing(auth_backend: AuthBackend):
    """An unknown user, one without a password and a wrong password cost the same work, one comparison."""
    auth_backend.passwords.close()
    counted = auth_backend.passwords = CountedWork()
    auth_backend.configure()
    await auth_backend.sign_up()
    await auth_backend.admin("POST /admin/users", {"email": "link@example.com", "email_confirm": True})
    sql = await auth_backend.sql()
    await sql.script("update auth.users set encrypted_password = '' where email = 'link@example.com'")
    await counted.pretend("warm")  # makes what strangers are compared with, once
    for email in ("ada@example.com", "stranger@example.com", "link@example.com"):
        before = counted.done
        answer = await auth_backend.call(
            "POST /token?grant_type=password", {"email": email, "password": "wrong"}
        )
        assert answer.json()["code"] == "invalid_credentials"
        assert counted.done - before == 1, email


async def test_oversize_metadata(auth_backend: AuthBackend):
    """A body beyond a megabyte is refused unread; one as deep as a well is no JSON; neither leaves a row."""
    assert auth_backend.http is not None
    for raw, status in (
        (json.dumps({**ADA, "data": {"x": "y" * (1 << 21)}}).encode(), 413),
        (
            b'{"email":"a@b.example","password":"a-long-enough-one","data":'
            + b'{"a":' * 100_000
            + b"1"
            + b"}" * 100_001,
            400,
        ),
        (b'{"data":' + b"[" * 100_000, 400),
    ):
        answer = await auth_backend.http.post(auth_backend.url + "/signup", content=raw)
        assert answer.status_code == status, answer.text
    assert await (await auth_backend.sql()).query("select from auth.users") == []
    large = {"text": "ü" * 100_000, "deep": [[[[{"a": None}]]]]}
    answer = await auth_backend.call("POST /signup", {**ADA, "data": large})
    assert answer.status_code == 200
    assert answer.json()["user"]["user_metadata"]["text"] == large["text"]


async def test_unicode_and_case_in_addresses(auth_backend: AuthBackend):
    """Case makes no second user; look-alikes are others or none; mail goes to the address that is stored."""
    await auth_backend.sign_up("kay@example.com")
    again = await auth_backend.call("POST /signup", {**ADA, "email": "KAY@EXAMPLE.COM"})
    assert again.json()["code"] == "user_already_exists"
    kelvin = await auth_backend.call("POST /recover", {"email": "\u212aay@example.com"})
    assert kelvin.status_code == 200
    assert {message.to for message in auth_backend.outbox.messages} <= {"kay@example.com"}
    cyrillic = await auth_backend.call("POST /signup", {**ADA, "email": "k\u0430y@example.com"})
    assert cyrillic.status_code in (200, 400)
    if cyrillic.status_code == 200:
        assert cyrillic.json()["user"]["email"] == "k\u0430y@example.com"
    for email in (
        "kay@example.com\n",
        "kay@example.com\u0000",
        "kay@example.com,eve@example.com",
        "kay@example.com\r\nBcc: eve@example.com",
        "kay@exam\u2028ple.com",
        "kay\u200b@example.com",
        " kay@example.com",
    ):
        answer = await auth_backend.call("POST /signup", {**ADA, "email": email})
        assert answer.status_code in (400, 422), repr(email)


SQL = "x'); drop table auth.users; --"
FIELDS = (
    *("email", "phone", "password", "token", "token_hash", "type", "refresh_token", "auth_code"),
    *("code_verifier", "id_token", "provider", "nonce", "channel", "friendly_name", "factor_type", "code"),
    *("challenge_id", "action", "client_name", "redirect_uri", "client_id", "client_secret", "grant_type"),
    *("scope", "role", "aud", "id", "ban_duration", "password_hash", "redirect_to", "new_email", "state"),
    *("code_challenge", "code_challenge_method", "authorization_id"),
)


async def test_sql_in_every_field(auth_backend: AuthBackend):
    """In every field, query and path of every route it is a text like any other."""
    auth_backend.configure(
        oauth_server_enabled=True, oauth_server_allow_dynamic_registration=True, sms_enable_signup=True,
        enable_manual_linking=True, mfa_totp_enroll_enabled=True, mfa_phone_enroll_enabled=True,
    )  # fmt: skip
    session = await auth_backend.sign_up()
    body: dict[str, Any] = dict.fromkeys(FIELDS, SQL)
    bodies = [
        body,
        {**body, "data": {SQL: SQL}},
        {"email": "bob@example.com", "password": SQL, "data": {SQL: SQL}},
    ]
    for route in ROUTES:
        path = "/".join(quote(SQL, safe="") if piece.startswith("{") else piece for piece in route.path)
        query = "&".join(
            f"{name}={quote(SQL, safe='')}" for name in (*FIELDS, "page", "sort", "filter", "query")
        )
        for sent in bodies if route.body is not BodyKind.NONE else [None]:
            for key in ({"token": session["access_token"]}, {"apikey": auth_backend.keys.secret_key}):
                answer = await auth_backend.call(f"{route.method} /{path}?{query}", sent, **key)
                assert answer.status_code < 500, (route.method, path, answer.text)
    sql = await auth_backend.sql()
    assert await sql.query("select count(*) from auth.users where email = 'ada@example.com'") == [["1"]]


async def test_nothing_is_half_written_when_a_trigger_fails(auth_backend: AuthBackend):
    """Whichever table's trigger refuses, the sign-up leaves no row in any table, and sends nothing."""
    auth_backend.configure(email_enable_confirmations=True)
    sql = await auth_backend.sql()
    await sql.script(
        "create function public.refuse() returns trigger language plpgsql security definer as"
        " $$ begin raise exception 'no'; end $$"
    )
    for table in ("auth.users", "auth.identities"):
        await sql.script(
            f"create trigger refuse after insert on {table} for each row execute function public.refuse()"
        )
        answer = await auth_backend.call("POST /signup", ADA)
        assert answer.json()["message"] == "Database error saving new user"
        for name in (
            "users",
            "identities",
            "sessions",
            "refresh_tokens",
            "one_time_tokens",
            "audit_log_entries",
        ):
            assert await sql.query(f"select from auth.{name}") == [], (table, name)
        await sql.script(f"drop trigger refuse on {table}")
    assert auth_backend.outbox.messages == []


async def test_tokens_as_deep_as_a_well(auth_backend: AuthBackend):
    """Nesting without end in a token is one more token that cannot be read."""
    deep = b"[" * 20_000
    good = part({"alg": "HS256"})
    for token in (f"{part(deep)}.{good}.x", f"{good}.{part(deep)}.x", f"{part(b'{"a":' * 9000)}.x.x"):
        await refused(auth_backend, token)
