"""What a fresh Supabase database is made of: the scripts of `bootstrap/`, in order, each with its role.

Reads package resources and nothing else. `extensions/` beside it holds our stand-in extensions and the list
of real ones that `postgres` may create (trusted.txt); laying them over a server is `binaries.py`'s work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

SUPERUSER = "supabase_admin"

#: What `[api] auto_expose_new_tables = false` does after the bootstrap; run as `postgres`.
REVOKE_AUTO_EXPOSE = """\
alter default privileges for role postgres in schema public
  revoke select, insert, update, delete on tables from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke usage, select on sequences from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke execute on functions from anon, authenticated, service_role;
"""


class Script(msgspec.Struct, frozen=True):
    """SQL for one simple query, run on a connection of its own as `role` in database `postgres`."""

    name: str
    role: str
    sql: str


class Bootstrap(msgspec.Struct, frozen=True):
    """Everything that is run after initdb. `version` is the digest of it."""

    version: str
    scripts: tuple[Script, ...]


class _Step(msgspec.Struct, frozen=True):
    name: str
    role: str = SUPERUSER
    from_major: int = 0
    before_major: int = 1000


#: Where the services' own schemas (auth, storage) come in.
_SERVICES = _Step("")

_STEPS = (
    _Step("roles"),
    _Step("roles_before_16", before_major=16),
    _Step("roles_from_16", from_major=16),
    _Step("schemas"),
    _Step("parameters"),
    _Step("freshness"),
    _Step("guard"),
    _Step("extension_grants"),
    _Step("stand_ins"),
    _Step("extensions", role="postgres"),
    _Step("extensions_before_16", role="postgres", before_major=16),
    _SERVICES,
    _Step("members_before_16", before_major=16),
    _Step("members_from_16", from_major=16),
    _Step("triggers"),
)


def load_bootstrap(major: int, services: Sequence[Script] = ()) -> Bootstrap:
    """The scripts for one major version; `services` run after the schemas and before the guard."""
    scripts = tuple(_scripts(major, services))
    digest = hashlib.sha256(str(major).encode())
    for script in scripts:
        for part in (script.name, script.role, script.sql):
            digest.update(part.encode() + b"\0")
    return Bootstrap(version=digest.hexdigest(), scripts=scripts)


def _scripts(major: int, services: Sequence[Script]) -> Iterator[Script]:
    for step in _STEPS:
        if step is _SERVICES:
            yield from services
        elif step.from_major <= major < step.before_major:
            yield Script(name=step.name, role=step.role, sql=_read_script(step.name))


@cache
def _read_script(name: str) -> str:
    return (resources.files("toft.engine") / "bootstrap" / f"{name}.sql").read_text("utf-8")


@cache
def stand_ins() -> Mapping[str, str]:
    """Extensions that we can stand in for, with a sentence on what the stand-in does."""
    folder = resources.files("toft.engine") / "extensions"
    return {
        entry.name.removesuffix(".control"): _describe(entry.read_text("utf-8"))
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".control")
    }


def _describe(control: str) -> str:
    comment = control.partition("comment = '")[2].partition("'\n")[0]
    return comment.removeprefix("Stand-in by Toft: ")
