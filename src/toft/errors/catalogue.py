"""Pure: importing this module defines every error of Toft."""

from __future__ import annotations

from toft.errors import (
    access,
    backend,
    checkpoint,
    daemon,
    data_api,
    database,
    engine,
    keys,
    lease,
    project,
    service,
    setting,
)

__all__ = [
    "access",
    "backend",
    "checkpoint",
    "daemon",
    "data_api",
    "database",
    "engine",
    "keys",
    "lease",
    "project",
    "service",
    "setting",
]
