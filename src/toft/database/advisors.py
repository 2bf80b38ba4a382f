"""Advice by looking at the catalogue afterwards: security and speed of what is there.

The rules are those that Supabase's advisors check, read by statements of our own; their names are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

import msgspec

from toft.database.finding import Finding
from toft.migrate.history import array
from toft.pg.connection import Connection
from toft.pg.wire import Statement

DEFAULT_EXPOSED = ("public", "graphql_public")

_SECURITY, _PERFORMANCE = "security", "performance"
#: rule → level, category, remedy
RULES: dict[str, tuple[str, str, str]] = {
    "unindexed_foreign_keys": ("info", _PERFORMANCE, "create an index that begins with the key's columns"),
    "auth_users_exposed": (
        "error",
        _SECURITY,
        "keep a profile table by a trigger, or make it a security_invoker view",
    ),
    "auth_rls_initplan": ("warn", _PERFORMANCE, "write `(select auth.uid())`, which is evaluated once"),
    "no_primary_key": ("info", _PERFORMANCE, "give it one"),
    "multiple_permissive_policies": ("warn", _PERFORMANCE, "merge them by OR"),
    "policy_exists_rls_disabled": ("error", _SECURITY, "`alter table … enable row level security`"),
    "rls_enabled_no_policy": (
        "info",
        _SECURITY,
        "add a policy, or say in a comment that only the server reads it",
    ),
    "duplicate_index": ("warn", _PERFORMANCE, "drop all but one"),
    "security_definer_view": ("error", _SECURITY, "`alter view … set (security_invoker = on)`"),
    "function_search_path_mutable": (
        "warn",
        _SECURITY,
        "`alter function … set search_path = ''`, and name schemas",
    ),
    "rls_disabled_in_public": ("error", _SECURITY, "`alter table … enable row level security`"),
    "extension_in_public": ("warn", _SECURITY, "`alter extension … set schema extensions`"),
    "rls_references_user_metadata": ("error", _SECURITY, "use app_metadata, or a table of your own"),
    "materialized_view_in_api": ("warn", _SECURITY, "revoke select from anon and authenticated, or move it"),
    "foreign_table_in_api": ("warn", _SECURITY, "revoke select from anon and authenticated, or move it"),
    "unsupported_reg_types": ("warn", _SECURITY, "store text or oid: this type stops an upgrade"),
    "fkey_to_auth_unique": ("error", _SECURITY, "reference the primary key"),
    "extension_versions_outdated": ("warn", _SECURITY, "`alter extension … update`"),
    "sensitive_columns_exposed": ("error", _SECURITY, "enable row level security, or move the column away"),
    "rls_policy_always_true": ("warn", _SECURITY, "write the condition that you mean"),
    "public_bucket_allows_listing": (
        "warn",
        _SECURITY,
        "drop the policy: objects of a public bucket need none",
    ),
    "anon_security_definer_function_executable": (
        "warn",
        _SECURITY,
        "`revoke execute … from public, anon`, or make it SECURITY INVOKER",
    ),
    "authenticated_security_definer_function_executable": (
        "warn",
        _SECURITY,
        "`revoke execute … from public, authenticated`, or make it SECURITY INVOKER",
    ),
    "anon_can_truncate": ("info", _SECURITY, "`revoke truncate on … from anon, authenticated`"),
    "grants_missing": (
        "warn",
        _SECURITY,
        "`grant usage on schema …` and `grant select, … on …` to the API's roles",
    ),
}


class _Row(msgspec.Struct, frozen=True):
    rule: str
    object: str
    detail: str


async def advise(session: Connection, exposed: Sequence[str] = DEFAULT_EXPOSED) -> list[Finding]:
    """What the rules find. exposed: the schemas that the Data API serves."""
    results = await session.pipeline(
        [
            Statement(b"select set_config('search_path', '', true)"),
            Statement(_question().encode(), (array(exposed),)),
        ]
    )
    [[raw]] = results[-1].rows
    found = msgspec.json.decode(raw or b"[]", type=list[_Row])
    return [_finding(row) for row in found]


def _finding(row: _Row) -> Finding:
    level, category, remedy = RULES[row.rule]
    return Finding(
        rule=row.rule,
        source="catalogue",
        level=level,
        category=category,
        object=row.object,
        message=f"{row.object} {row.detail}"
        if not row.detail.startswith(("policy", "foreign"))
        else row.detail,
        remedy=remedy,
    )


@cache
def _question() -> str:
    return (resources.files("toft.database") / "advisors.sql").read_text("utf-8")
