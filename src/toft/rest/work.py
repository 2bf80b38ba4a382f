"""Pure: what is sent for one request: its settings, its statements with values, its kind of transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toft.http.message import HeaderList
from toft.pg.transaction import Isolation
from toft.pg.wire import Statement
from toft.rest.options import RestOptions
from toft.rest.parse.skim import Asked
from toft.rest.prepared import Prepared, known_isolation
from toft.rest.render.fragment import BODY_AS_BYTEA, Rendered
from toft.rest.render.settings import Settings, pre_request, transaction_settings
from toft.rest.request import Preferences
from toft.rest.root import ask_rights
from toft.rest.schema.model import SchemaCache
from toft.tokens.caller import Caller


class Work(msgspec.Struct, frozen=True, gc=False):
    """One transaction. version: what the schema must be, None when that is not asked."""

    settings: Settings
    statements: Sequence[Statement]
    version: str | None = None
    before: Sequence[Statement] = ()
    is_read_only: bool = False
    isolation: Isolation = "read committed"
    rolls_back: bool = False


class Sender(msgspec.Struct, frozen=True, gc=False):
    """Who sends a request, and what of it the database may read. is_trial: it is rolled back in any case."""

    caller: Caller
    method: str
    path: str
    headers: HeaderList
    is_trial: bool = False


def call_work(
    sender: Sender,
    asked: Asked,
    prepared: Prepared,
    schema: SchemaCache,
    options: RestOptions,
    version: str | None,
) -> Work:
    """The transaction of a request with a plan."""
    role = sender.caller.role
    # Row security makes a server's plan good for one role only.
    key = b"%b\0%b" % (role.encode(), prepared.name) if options.prepares_statements else None
    statements = [fill(prepared.main, asked, key)]
    if prepared.planned_count is not None:
        statements.append(fill(prepared.planned_count, asked, None))
    return _work(
        sender,
        asked,
        schema,
        options,
        statements,
        version,
        own_settings=prepared.settings,
        is_read_only=prepared.is_read_only,
        isolation=prepared.isolation,
    )


def root_work(
    sender: Sender, asked: Asked, schema: SchemaCache, options: RestOptions, version: str | None
) -> Work:
    """The transaction that finds out what the caller may use."""
    return _work(sender, asked, schema, options, ask_rights(asked.target.schema), version)


def aside_work(
    sender: Sender, asked: Asked, schema: SchemaCache, options: RestOptions, statements: Sequence[Statement]
) -> Work:
    """A transaction that asks other questions in the name of the same caller, and writes nothing."""
    return _work(sender, asked, schema, options, statements, None)


def _work(
    sender: Sender,
    asked: Asked,
    schema: SchemaCache,
    options: RestOptions,
    statements: Sequence[Statement],
    version: str | None,
    *,
    own_settings: tuple[tuple[str, bytes], ...] = (),
    is_read_only: bool = True,
    isolation: Isolation | None = None,
) -> Work:
    role = sender.caller.role
    settings = transaction_settings(
        schema=asked.target.schema,
        extra_search_path=options.extra_search_path,
        role=role,
        role_settings=schema.role_settings.get(role, ()),
        claims_json=sender.caller.claims_json,
        method=sender.method,
        path=sender.path,
        headers=sender.headers if schema.reads_headers or options.pre_request is not None else None,
        more=_more_settings(asked.target.preferences, own_settings, options),
    )
    return Work(
        settings,
        statements,
        version,
        () if options.pre_request is None else (pre_request(options.pre_request),),
        is_read_only,
        isolation or known_isolation(schema.role_isolation.get(role)) or "read committed",
        sender.is_trial or _rolls_back(asked.target.preferences, by_default=options.rolls_back),
    )


def _more_settings(
    preferences: Preferences, own: tuple[tuple[str, bytes], ...], options: RestOptions
) -> tuple[tuple[str, bytes], ...]:
    """The time zone that is preferred, what a function insists on, what the configuration adds."""
    zone = preferences.timezone
    if zone is None and not own:
        return options.app_settings
    zoned = () if zone is None else (("timezone", zone.encode()),)
    return (*zoned, *own, *options.app_settings)


def _rolls_back(preferences: Preferences, *, by_default: bool) -> bool:
    if preferences.transaction is None:
        return by_default
    return preferences.transaction == "rollback"


def fill(rendered: Rendered, asked: Asked, name_key: bytes | None) -> Statement:
    """The statement with the values of one request."""
    values = asked.values
    params = tuple(
        [values[s] if isinstance(s, int) and s >= 0 else _special(s, asked.body) for s in rendered.sources]
    )
    return Statement(rendered.sql, params, name_key, binary=rendered.is_binary)


def _special(source: int | bytes, body: bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    return b"\\x" + body.hex().encode() if source == BODY_AS_BYTEA else body
