"""Pure: the messages about migrations that are applied to a lease in use."""

from __future__ import annotations

from typing import Any

import msgspec


class PushWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Apply what the history of a lease's database does not know.

    project: the digest of a Bundle that the daemon has. watch: tell of locks, rewrites and rows, statement by
    statement. dry_run: only say what is pending. timeout_seconds: after that the run is cancelled.
    """

    project: str
    include_all: bool = False
    include_roles: bool = False
    include_seed: bool = False
    migrations_dir: str | None = None
    dry_run: bool = False
    watch: bool = False
    timeout_seconds: float = 300.0


class FileReport(msgspec.Struct, kw_only=True):
    """A migration that ran. status: `applied` or `failed`. seen: after each statement, if it was watched."""

    path: str
    status: str
    transaction: str
    statements: int
    duration_ms: float
    seen: list[dict[str, Any]] = []


class PushReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was done. failure: the error that ended it, as problem+json; what was done before stays."""

    pending: list[str]
    applied: list[str]
    seeds: list[str]
    files: list[FileReport]
    elevated: list[dict[str, Any]]
    notices: list[str]
    failure: dict[str, Any] | None
    duration_ms: float
