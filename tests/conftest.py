"""Fixtures, one file per concern under `tests/kit/`. A new one is added to this list by its name."""

from __future__ import annotations

pytest_plugins: list[str] = [
    "tests.kit.fix_cli",
    "tests.kit.fix_daemon",
    "tests.kit.fix_engine",
    "tests.kit.fix_issuer",
    "tests.kit.fix_postgres",
    "tests.kit.fix_supabase",
    # after those whose modules it imports
    "tests.kit.fix_auth",
    "tests.kit.fix_rest",
    "tests.kit.fix_storage",
    "tests.kit.fix_gateway",
    "tests.kit.fix_webhooks",
]
