"""Routes, keys at the door and cross-origin rules: from values to values."""

from __future__ import annotations

import pytest

from toft.gateway.route import Door, Route, decide_route, does_own_cors, needs_key
from toft.gateway.sql_hello import Opening, fatal, is_between_messages, read_opening
from toft.http.cors import allow_any_origin, is_preflight, preflight_headers
from toft.http.message import HeaderList, Headers


@pytest.mark.parametrize(
    ("raw_path", "route"),
    [
        ("/rest/v1", Route("rest", "/")),
        ("/rest/v1/", Route("rest", "/")),
        ("/rest/v1/rpc/f", Route("rest", "/rpc/f")),
        ("/rest/v1/a%2Fb", Route("rest", "/a%2Fb")),
        ("/rest/v1//x", Route("rest", "//x")),
        ("/auth/v1/token", Route("auth", "/token")),
        ("/storage/v1/object/b/rest/v1/x", Route("storage", "/object/b/rest/v1/x")),
        ("/explain/rest/v1/todos", Route("rest", "/todos", is_trial=True)),
        ("/explain/auth/v1/token", Door.EXPLANATION),
        ("/graphql/v1", Route("rest", "/rpc/graphql", profile="graphql_public")),
        ("/realtime/v1/websocket", Door.REALTIME),
        ("/functions/v1", Door.FUNCTIONS),
        ("/functions/v12", Door.NOTHING),
        ("/", Door.WELCOME),
        ("/health", Door.HEALTH),
        ("", Door.NOTHING),
        ("/rest", Door.NOTHING),
        ("/rest/v1x", Door.NOTHING),
        ("/REST/v1", Door.NOTHING),
        ("/x/../rest/v1", Door.NOTHING),
    ],
)
def test_routes(raw_path: str, route: Route | Door) -> None:
    """A prefix names the service; what follows goes to it untouched."""
    assert decide_route(raw_path) == route


@pytest.mark.parametrize(
    ("method", "raw_path", "needs"),
    [
        ("GET", "/rest/v1/t", True),
        ("OPTIONS", "/rest/v1/t", False),
        ("POST", "/auth/v1/token", True),
        ("GET", "/auth/v1/verify", False),
        ("GET", "/auth/v1/verifyx", True),
        ("GET", "/auth/v1/callback", False),
        ("GET", "/auth/v1/authorize", False),
        ("POST", "/auth/v1/sso/saml/acs", False),
        ("GET", "/auth/v1/.well-known/jwks.json", False),
        ("POST", "/auth/v1/oauth/token", False),
        ("GET", "/auth/v1/oauth/authorizations/1", True),
        ("GET", "/storage/v1/object/public/b/x", False),
    ],
)
def test_who_needs_a_key(method: str, raw_path: str, needs: bool) -> None:
    """Only what links and OAuth clients use is open; Storage refuses in its own words."""
    route = decide_route(raw_path)
    assert isinstance(route, Route)
    assert needs_key(method, route) is needs


def test_own_cors() -> None:
    """Only resumable uploads answer browsers themselves."""
    assert does_own_cors(Route("storage", "/upload/resumable/x"))
    assert not does_own_cors(Route("storage", "/object/x"))
    assert not does_own_cors(Route("rest", "/upload/resumable"))


def test_preflight() -> None:
    """A preflight has an origin and asks for a method; whatever it asks is allowed."""
    asked: HeaderList = [
        (b"origin", b"http://a"),
        (b"access-control-request-method", b"PUT"),
        (b"access-control-request-headers", b"x-own"),
    ]
    assert is_preflight("OPTIONS", Headers(asked))
    assert not is_preflight("GET", Headers(asked))
    assert not is_preflight("OPTIONS", Headers(asked[:1]))
    assert dict(preflight_headers(Headers(asked)))[b"access-control-allow-headers"].endswith(b", x-own")
    assert b"apikey" not in dict(preflight_headers(Headers(asked[:2])))[b"access-control-allow-headers"]


def test_service_may_say_who_may_read() -> None:
    """A service's own rule is left alone."""
    own: HeaderList = [(b"Access-Control-Allow-Origin", b"http://a")]
    allow_any_origin(own)
    assert own == [(b"Access-Control-Allow-Origin", b"http://a")]


@pytest.mark.parametrize(
    ("raw", "opening", "size"),
    [
        (b"", Opening.INCOMPLETE, 0),
        (b"\0\0\0\x08\x04\xd2\x16", Opening.INCOMPLETE, 0),
        (b"\0\0\0\x08\x04\xd2\x16\x2f", Opening.ENCRYPTION, 8),
        (b"\0\0\0\x08\x04\xd2\x16\x30rest", Opening.ENCRYPTION, 8),
        (b"\0\0\0\x10\x04\xd2\x16\x2e12345678", Opening.CANCEL, 16),
        (b"\0\0\0\x09\0\x03\0\0\0", Opening.STARTUP, 9),
        (b"\0\0\0\x09\0\x03\0\x02\0", Opening.STARTUP, 9),
        (b"\0\0\0\x0a\0\x03\0\0\0", Opening.INCOMPLETE, 10),
        (b"\0\0\0\x08\0\x02\0\0", Opening.UNKNOWN, 8),
        (b"\0\0\0\x07\0\x03\0\0", Opening.UNKNOWN, 7),
        (b"\0\xff\0\0\0\x03\0\0", Opening.UNKNOWN, 0xFF0000),
        (b"GET / HT", Opening.UNKNOWN, 0x47455420),
    ],
)
def test_openings(raw: bytes, opening: Opening, size: int) -> None:
    """The first packet tells what a client wants, or that it is none."""
    assert read_opening(raw) == (opening, size)


def test_refusal_is_a_message() -> None:
    """A refusal is one ErrorResponse of the right length."""
    said = fatal("53300", "énough")
    assert said[:1] == b"E"
    assert int.from_bytes(said[1:5], "big") == len(said) - 1
    assert "Ménough\0\0".encode() in said


def test_between_messages() -> None:
    """Only after ReadyForQuery may a message be put in."""
    assert is_between_messages(b"Z\0\0\0\x05I")
    assert not is_between_messages(b"")
    assert not is_between_messages(b"Z\0\0\0\x05")
    assert not is_between_messages(b"xZ\0\0\0\x05")
