"""The `storage` schema as SQL scripts, run once per base template as `supabase_storage_admin`.

Start at `10_tables.sql`. `scripts` lists them in order. Never: anything that a running service changes.
"""

from __future__ import annotations

from importlib import resources

ROLE = "supabase_storage_admin"
_NAMES = ("10_tables.sql", "20_functions.sql", "30_listing.sql", "40_history.sql")


def scripts(major: int) -> list[tuple[str, str, str]]:
    """(name, role that runs it, SQL) in order; the same for every major version that we support."""
    del major
    folder = resources.files(__name__)
    return [(f"storage/{name}", ROLE, folder.joinpath(name).read_text(encoding="utf-8")) for name in _NAMES]
