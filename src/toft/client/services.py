"""Calls to a backend's own HTTP port, as its applications make them. Not on the CLI's quick path."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from toft.errors.service import ServiceRefused, ServiceUnreachable

#: longer than the longest answer of a service takes
PATIENCE_SECONDS = 30.0

type Members = dict[str, Any]


class Answer:
    """What a service answered. body: JSON as values, text where it is no JSON, None for nothing."""

    def __init__(self, status: int, headers: dict[str, str], body: Any) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def code(self) -> str:
        """The error's code in the newer shape of bodies, or nothing."""
        return str(cast("Members", self.body).get("code", "")) if isinstance(self.body, dict) else ""

    @property
    def words(self) -> str:
        """What is said about a failure, with the true cause where it is told."""
        body: object = self.body
        members = cast("Members", body) if isinstance(body, dict) else {}
        told = next((str(members[name]) for name in ("message", "msg", "Error") if members.get(name)), "")
        cause = self.headers.get("x-toft-cause")
        words = told or (body if isinstance(body, str) else f"status {self.status}")
        return f"{words} ({cause})" if cause else words


class Api:
    """One backend's HTTP port. key: sent as `apikey`; the secret key makes an administrator of the caller."""

    def __init__(self, url: str, key: str = "") -> None:
        self.url = url.rstrip("/")
        self._key = key

    def ask(
        self,
        method: str,
        path: str,
        message: object = None,
        patience_seconds: float = PATIENCE_SECONDS,
        more: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and read its answer. Never through a proxy. Raises `ServiceUnreachable`.

        more: header fields besides our own.
        """
        parts = urlsplit(self.url)
        headers = {"x-supabase-api-version": "2024-01-01", **(more or {})}
        if self._key:
            headers["apikey"] = self._key
        body = None
        if message is not None:
            body = json.dumps(message).encode()
            headers["content-type"] = "application/json"
        dial = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = dial(parts.hostname or "", parts.port, timeout=patience_seconds)
        try:
            connection.request(method, parts.path + path, body, headers)
            response = connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServiceUnreachable(url=self.url, cause=str(error) or type(error).__name__) from None
        finally:
            connection.close()
        told = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, told, _read(raw))

    def call(self, service: str, method: str, path: str, message: object = None) -> Any:
        """The body of an answer that went well. Raises `ServiceRefused` with the service's own words."""
        answer = self.ask(method, path, message)
        if answer.status >= 300:
            raise ServiceRefused(service=service, cause=answer.words)
        return answer.body


def _read(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode("utf-8", "replace")
