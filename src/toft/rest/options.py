"""Pure: how one Data API behaves: what upstream configures by PGRST_*, as a value."""

from __future__ import annotations

from typing import Final

import msgspec

from toft.protocol.worker import RestSettings
from toft.rest.schema.model import Name

_MAX_BODY_BYTES: Final = 64 << 20


class RestOptions(msgspec.Struct, frozen=True, cache_hash=True):
    """Defaults are those of a Supabase backend."""

    schemas: tuple[str, ...] = ("public", "graphql_public")
    extra_search_path: tuple[str, ...] = ("public", "extensions")
    max_rows: int | None = 1000
    #: None: there is no anonymous access
    anon_role: str | None = "anon"
    pre_request: Name | None = None
    #: answers at `/` instead of the description
    root_function: str | None = None
    aggregates: bool = False
    plans: bool = False
    #: every transaction is rolled back, unless the client may and does say otherwise
    rolls_back: bool = False
    allows_transaction_preference: bool = False
    prepares_statements: bool = True
    hoisted_settings: tuple[str, ...] = (
        "statement_timeout",
        "plan_filter.statement_cost_limit",
        "default_transaction_isolation",
    )
    #: name and value, set for every transaction
    app_settings: tuple[tuple[str, bytes], ...] = ()
    #: follow-privileges, ignore-privileges, disabled
    openapi_mode: str = "follow-privileges"
    openapi_security: bool = False
    #: the URL that clients see, for the description
    openapi_server_url: str | None = None
    timing: bool = False
    trace_header: str | None = None
    #: UPDATE and DELETE need a filter
    requires_filter: bool = True
    #: refusals say in their hint why: which privilege, policy, index, name
    explains: bool = True
    acquire_seconds: float = 10.0
    max_body_bytes: int = _MAX_BODY_BYTES


def from_settings(settings: RestSettings, *, max_body_bytes: int = _MAX_BODY_BYTES) -> RestOptions:
    """The options of a backend with this `[api]` section."""
    return RestOptions(
        schemas=settings.schemas,
        extra_search_path=settings.extra_search_path,
        max_rows=settings.max_rows,
        max_body_bytes=max_body_bytes,
    )
