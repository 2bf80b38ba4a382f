"""All objects of a database that are a project's own, as values that can be compared.

Read from pg_catalog in one statement, with an empty search path, so that every name comes with its schema.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from toft.pg.connection import Connection
from toft.pg.wire import Statement


class Item(msgspec.Struct, frozen=True):
    """One object. identity: its name with schema (and table); parent: what it belongs to."""

    kind: str
    identity: str
    parent: str | None
    facts: dict[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.identity


type Catalogue = dict[tuple[str, str], Item]


async def read_catalogue(session: Connection) -> Catalogue:
    """What is there now."""
    results = await session.pipeline(
        [
            Statement(b"select set_config('search_path', '', true)"),
            Statement(_question().encode()),
        ]
    )
    [[raw]] = results[-1].rows
    items = msgspec.json.decode(raw or b"[]", type=list[Item])
    return {item.key: item for item in items}


def fingerprint(catalogue: Catalogue) -> str:
    """A digest of a schema: equal for equal schemas, whatever way led to them.

    Where a column stands in its table counts for nothing, since a column that was dropped leaves a gap.
    """
    plain = [
        (item.kind, item.identity, {name: fact for name, fact in item.facts.items() if name != "position"})
        for _, item in sorted(catalogue.items())
    ]
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()


@cache
def _question() -> str:
    return (resources.files("toft.database") / "catalogue.sql").read_text("utf-8")
