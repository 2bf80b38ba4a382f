"""One request as the endpoints see it: fields, query, audience, and who asks.

Checks of the bearer are here because their order and their words are a contract (auth spec, section 1).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import msgspec

from toft.auth.context import AuthContext
from toft.auth.errors import AuthError, bad_request, database_failure, describe_cause, forbidden
from toft.auth.model import NIL, Session, User
from toft.auth.records import audit
from toft.auth.records.sessions import load_session
from toft.auth.records.users import load_user
from toft.http.message import Request
from toft.pg.sqlstate import PostgresError
from toft.pg.typed import TypedConnection
from toft.tokens.caller import Caller, TokenFault

ADMIN_ROLES = frozenset({"service_role", "supabase_admin"})

_REASONS = {
    TokenFault.EMPTY: "token is malformed: token contains an invalid number of segments",
    TokenFault.PARTS: "token is malformed: token contains an invalid number of segments",
    TokenFault.NO_KEY: "token signature is invalid: signature is invalid",
    TokenFault.ALGORITHM: "token signature is invalid: signing method is not allowed",
    TokenFault.UNSECURED: "token signature is invalid: signing method none is not allowed",
    TokenFault.CRYPTO: "token is malformed: could not be decoded",
    TokenFault.ENCRYPTED: "token is malformed: it is encrypted",
    TokenFault.CLAIMS: "token is malformed: claims are no JSON object",
    TokenFault.CLAIM_TYPE: "token has invalid claims: a time is no number",
    TokenFault.EXPIRED: "token has invalid claims: token is expired",
    TokenFault.NOT_YET_VALID: "token has invalid claims: token is not valid yet",
    TokenFault.ISSUED_IN_FUTURE: "token has invalid claims: token used before issued",
    TokenFault.AUDIENCE_TYPE: "token has invalid claims: aud is neither text nor a list of texts",
    TokenFault.AUDIENCE: "token has invalid claims: token has invalid audience",
}


#: an escape that is legal JSON and that no text of Postgres can hold
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class Signed(msgspec.Struct, frozen=True):
    """A signed-in user; a token without a session is accepted as one."""

    user: User
    session: Session | None


class Call:
    """A request on its way to an endpoint."""

    __slots__ = (
        "caller", "client_ip", "context", "fields", "later", "now", "path", "query", "request", "user_agent",
    )  # fmt: skip

    def __init__(
        self,
        context: AuthContext,
        request: Request,
        caller: Caller,
        path: Mapping[str, str],
        query: Mapping[str, str],
        fields: dict[str, Any],
    ) -> None:
        self.context = context
        self.request = request
        self.caller = caller
        #: variable parts of the path, by name
        self.path = path
        self.query = query
        #: the body's members, names in lower case, nulls left out
        self.fields = fields
        self.now: datetime = context.clock.now()
        self.client_ip = _client_ip(request)
        self.user_agent = request.headers.get(b"user-agent", "") or ""
        #: what is done when the transaction has been committed, and not at all when it is rolled back
        self.later: list[Callable[[], Awaitable[None]]] = []

    @property
    def audience(self) -> str:
        """Whose users this is about: by header, else by the bearer, else the usual ones."""
        named = self.request.headers.get(b"x-jwt-aud")
        if named:
            return named
        of_token = self.caller.claims.get("aud")
        if isinstance(of_token, str) and of_token and self.caller.role not in ADMIN_ROLES:
            return of_token
        return self.context.settings.jwt_audience

    def read[T: msgspec.Struct](self, kind: type[T]) -> T:
        """The body as a value. A member of the wrong type is as bad as no JSON at all."""
        try:
            return msgspec.convert(self.fields, kind)
        except msgspec.ValidationError as error:
            raise bad_request(f"Could not parse request body as JSON: {error}", "bad_json") from None

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[TypedConnection]:
        """One transaction. A refusal that keeps its writes is raised after the commit."""
        refusal: AuthError | None = None
        self.later.clear()
        async with self.context.pool.lend() as conn, conn.transaction():
            try:
                yield conn
            except AuthError as error:
                if not error.keeps_writes:
                    raise
                refusal = error
        later, self.later = self.later, []
        for act in later:
            await act()
        if refusal is not None:
            raise refusal

    def report(self, error: AuthError) -> None:
        """Write the true cause of a failure, and every fault of ours, to the lease's log."""
        if error.cause is not None:
            line = f"auth {self.request.raw_path}: {error.message}: {describe_cause(error.cause)}"
            self.context.report(line)
        elif error.status >= 500:
            self.context.report(f"auth {self.request.raw_path}: {error.message}")

    async def note(
        self, conn: TypedConnection, user: User, action: str, traits: dict[str, Any] | None = None
    ) -> None:
        """Write the audit trail: this user did that."""
        actor = audit.Actor(user.id, user.name_in_audit, user.is_sso_user)
        await audit.note(conn, self.context.new_id(), actor, action, self.client_ip or "", self.now, traits)

    async def note_admin(
        self, conn: TypedConnection, action: str, traits: dict[str, Any] | None = None
    ) -> None:
        """Write the audit trail: an administrator did that."""
        actor = audit.Actor(NIL, self.caller.role)
        await audit.note(conn, self.context.new_id(), actor, action, self.client_ip or "", self.now, traits)

    # Who asks.

    async def require_user(self, conn: TypedConnection) -> Signed:
        """The signed-in user, or the refusal in upstream's order of checks."""
        self._require_bearer()
        subject = self.caller.claims.get("sub")
        if not isinstance(subject, str) or not subject:
            raise forbidden("bad_jwt", "invalid claim: missing sub claim")
        user_id = parse_uuid(subject)
        if user_id is None:
            raise bad_request("invalid claim: sub claim must be a UUID", "bad_jwt")
        user = await load_user(conn, user_id)
        if user is None:
            raise forbidden("user_not_found", "User from sub claim in JWT does not exist")
        session = await self._named_session(conn)
        if session is not None and session.user_id != user.id:
            raise forbidden("session_not_found", "Session from session_id claim in JWT does not exist")
        if user.is_banned(self.now):
            raise forbidden("user_banned", "User is banned")
        return Signed(user, session)

    async def require_first_party(self, conn: TypedConnection) -> Signed:
        """The signed-in user by a session of their own: no OAuth client changes an account or consents."""
        signed = await self.require_user(conn)
        if self.caller.claims.get("client_id") is not None:
            raise forbidden("no_authorization", "A token of an OAuth client cannot be used here")
        return signed

    async def require_admin(self, conn: TypedConnection) -> None:
        """An administrative role in the bearer's claims."""
        self._require_bearer()
        if self.caller.claims.get("session_id") is not None:
            await self._named_session(conn)
        if self.caller.role not in ADMIN_ROLES:
            raise forbidden("not_admin", "User not allowed")

    def is_admin(self) -> bool:
        """Whether a valid administrative bearer was sent, for routes that are open to all."""
        return self.caller.token is not None and self.caller.error is None and self.caller.role in ADMIN_ROLES

    def _require_bearer(self) -> None:
        if not self.caller.token:
            raise AuthError(401, "no_authorization", "This endpoint requires a valid Bearer token")
        if self.caller.error is not None:
            reason = _REASONS[self.caller.error.fault]
            raise forbidden("bad_jwt", f"invalid JWT: unable to parse or verify signature, {reason}")

    async def _named_session(self, conn: TypedConnection) -> Session | None:
        named = self.caller.claims.get("session_id")
        if named is None or named == "":
            return None
        session_id = parse_uuid(named) if isinstance(named, str) else None
        session = await load_session(conn, session_id) if session_id is not None else None
        if session is None:
            raise forbidden("session_not_found", "Session from session_id claim in JWT does not exist")
        return session


@contextmanager
def naming(step: str) -> Generator[None]:
    """A database error inside becomes a failure of this step, with the true cause kept."""
    try:
        yield
    except PostgresError as error:
        raise database_failure(step, error) from None


def parse_uuid(text: str) -> UUID | None:
    """The UUID that this text is, or None."""
    try:
        return UUID(text) if len(text) == 36 else None
    except ValueError:
        return None


def parse_body(raw: bytes) -> dict[str, Any]:
    """The members of a JSON object, names in lower case, nulls left out. Raises `AuthError`."""
    if _NUL.search(raw):
        raise bad_request("Could not parse request body as JSON: texts must not contain NUL", "bad_json")
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"Could not parse request body as JSON: {error}", "bad_json") from None
    if not isinstance(value, dict):
        raise bad_request("Could not parse request body as JSON: it is no object", "bad_json")
    members = cast("dict[str, Any]", value)
    return {name.lower(): member for name, member in members.items() if member is not None}


def _client_ip(request: Request) -> str | None:
    """The first address that was forwarded, else the peer's; None for what is no address."""
    forwarded = request.headers.get(b"x-forwarded-for")
    given = forwarded.split(",", 1)[0].strip() if forwarded else request.client_host
    try:
        return str(ipaddress.ip_address(given))
    except ValueError:
        return None
