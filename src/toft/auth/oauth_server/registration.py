"""Pure: what a client may say of itself, and what is told of it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from toft.auth.errors import bad_request
from toft.auth.oauth_server.model import Client
from toft.auth.represent import write_instant

GRANT_TYPES = ("authorization_code", "refresh_token")
_METHODS = ("client_secret_basic", "client_secret_post", "none")
_DANGEROUS_SCHEMES = frozenset({"javascript", "data", "file", "vbscript", "about", "blob"})
_ODD = re.compile(r"[\x00-\x20\x7f\\,<>\"]")
_MOST_REDIRECTS = 10


class Registration(msgspec.Struct, frozen=True):
    """A client as it describes itself. Empty: not said."""

    redirect_uris: list[str] = []
    client_name: str = ""
    client_uri: str = ""
    logo_uri: str = ""
    grant_types: list[str] = []
    token_endpoint_auth_method: str = ""
    client_type: str = ""


def check_registration(given: Registration) -> tuple[str, str]:
    """The client's type and its method at the token endpoint. Raises `AuthError`."""
    check_redirects(given.redirect_uris)
    check_rest(given)
    method = given.token_endpoint_auth_method
    if method and method not in _METHODS:
        raise bad_request(f"token_endpoint_auth_method must be one of {', '.join(_METHODS)}")
    kind = given.client_type or ("public" if method == "none" else "confidential")
    if kind not in ("public", "confidential"):
        raise bad_request("client_type must be public or confidential")
    method = method or ("none" if kind == "public" else "client_secret_basic")
    if (kind == "public") != (method == "none"):
        raise bad_request("client_type and token_endpoint_auth_method do not go together")
    return kind, method


def check_rest(given: Registration) -> None:
    """Names, addresses and grants."""
    if len(given.client_name) > 1024:
        raise bad_request("client_name cannot exceed 1024 characters")
    for name, uri in (("client_uri", given.client_uri), ("logo_uri", given.logo_uri)):
        if uri and (len(uri) > 2048 or not _is_web_address(uri)):
            raise bad_request(f"{name} must be a valid URL of at most 2048 characters")
    for kind in given.grant_types:
        if kind not in GRANT_TYPES:
            raise bad_request(f"grant_types must be of {', '.join(GRANT_TYPES)}")


def check_redirects(uris: Sequence[str]) -> None:
    """Raise unless all of them may be redirected to."""
    if not uris:
        raise bad_request("redirect_uris is required")
    if len(uris) > _MOST_REDIRECTS:
        raise bad_request(f"redirect_uris cannot exceed {_MOST_REDIRECTS} items")
    for uri in uris:
        if not _may_redirect(uri):
            raise bad_request(f"invalid redirect_uri: {uri}")


def _may_redirect(uri: str) -> bool:
    if len(uri) > 2048 or _ODD.search(uri) or not uri.isascii():
        return False
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if not parts.scheme or not host or "#" in uri or parts.scheme in _DANGEROUS_SCHEMES:
        return False
    if "@" in parts.netloc:
        return False
    return parts.scheme != "http" or host == "localhost" or _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_web_address(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not _ODD.search(uri)


def hash_secret(secret: str) -> str:
    """What is stored of a client's secret."""
    return base64.urlsafe_b64encode(hashlib.sha256(secret.encode()).digest()).rstrip(b"=").decode()


def is_secret(client: Client, secret: str) -> bool:
    """Whether this is the client's secret."""
    return bool(client.secret_hash) and hmac.compare_digest(
        client.secret_hash.encode(), hash_secret(secret).encode()
    )


def client_json(client: Client, secret: str | None = None) -> dict[str, Any]:
    """A client as its owner sees it; the secret only when it was just made."""
    out: dict[str, Any] = {"client_id": str(client.id)}
    if secret is not None:
        out["client_secret"] = secret
    out |= {
        "client_type": client.client_type,
        "redirect_uris": list(client.redirect_uris),
        "token_endpoint_auth_method": client.auth_method,
        "grant_types": list(client.grant_types),
        "response_types": ["code"],
    }
    for name, value in (
        ("client_name", client.name),
        ("client_uri", client.uri),
        ("logo_uri", client.logo_uri),
    ):
        if value:
            out[name] = value
    out |= {
        "registration_type": client.registration_type,
        "created_at": write_instant(client.created_at),
        "updated_at": write_instant(client.updated_at),
    }
    return out


def client_summary(client: Client) -> dict[str, str]:
    """A client as a user sees it who is asked for consent."""
    members = {"id": str(client.id), "name": client.name, "uri": client.uri, "logo_uri": client.logo_uri}
    return {name: value for name, value in members.items() if value}
