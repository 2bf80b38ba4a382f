"""One request as the endpoints see it: path, query, who asks, and as whom statements run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from toft.http.message import BodyTooLarge, Request
from toft.pg.sqlstate import PostgresError
from toft.pg.wire import Statement
from toft.storage import records
from toft.storage.context import StorageContext
from toft.storage.errors import access_denied, too_large, word_token_error
from toft.storage.fields import parse_object
from toft.storage.records import Actor
from toft.tokens.caller import Caller

LARGEST_JSON_BODY = 1024 * 1024


class Call:
    """A request on its way to an endpoint."""

    __slots__ = ("_headers_json", "caller", "context", "operation", "path", "query", "request", "route_path")

    def __init__(
        self,
        context: StorageContext,
        request: Request,
        caller: Caller,
        route_path: str,
        path: Mapping[str, str],
        operation: str,
    ) -> None:
        self.context = context
        self.request = request
        self.caller = caller
        self.route_path = route_path
        #: variable parts of the path, decoded
        self.path = path
        self.operation = operation
        self.query = dict(parse_qsl(request.query, keep_blank_values=True))
        self._headers_json: bytes | None = None

    def require_token(self) -> Actor:
        """The caller, with a token that verifies."""
        if self.caller.token is None or self.caller.error is not None:
            raise access_denied(word_token_error(self.caller.error))
        return self.actor

    @property
    def has_token(self) -> bool:
        """Whether a token came that verifies; routes that tolerate none go on as anon."""
        return self.caller.token is not None and self.caller.error is None

    @property
    def actor(self) -> Actor:
        """The caller as the database sees them."""
        caller = self.caller
        token = caller.token or "" if caller.error is None else ""
        return Actor(caller.role, self.owner_id or "", token, caller.claims_json)

    @property
    def owner_id(self) -> str | None:
        """Who owns what the caller writes: the token's subject, if it has one."""
        subject = self.caller.claims.get("sub")
        return subject if isinstance(subject, str) and subject and "\0" not in subject else None

    def scope(self, actor: Actor) -> Statement:
        """The statement after which others run as this actor."""
        if self._headers_json is None:
            fields: dict[str, str] = {}
            for name, value in self.request.headers.raw:
                fields.setdefault(name.decode("latin-1"), value.decode("latin-1"))
            self._headers_json = msgspec.json.encode(fields)
        return records.scope(actor, self._headers_json, self.request.method, self.route_path, self.operation)

    def header(self, name: bytes) -> str | None:
        """A field of the request's head."""
        return self.request.headers.get(name)

    async def read_body(self) -> dict[str, Any]:
        """The members of a JSON body; none when it is empty."""
        try:
            return parse_object(await self.request.body.read(LARGEST_JSON_BODY))
        except BodyTooLarge:
            raise too_large() from None

    def report(self, error: PostgresError) -> None:
        """Tell the lease's log what the database really said."""
        where = f" | {' '.join(error.where.split())}" if error.where else ""
        self.context.report(f"storage {self.operation}: {error.message} (SQLSTATE {error.sqlstate}){where}")
