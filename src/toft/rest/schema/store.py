"""Pure: keeps schema caches by version, so that backends which still are what their template was share one.

A version names one history of DDL and is never met again after another, so what was built for it stays true.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from toft.rest.schema.model import SchemaCache

_VERSIONS_KEPT: Final = 4
PLANS_KEPT: Final = 1000


class Known[P]:
    """A schema cache and the plans that were made with it, by shape; the longest unused go first."""

    __slots__ = ("_plans", "hits", "misses", "schema")

    def __init__(self, schema: SchemaCache) -> None:
        self.schema = schema
        self._plans: OrderedDict[Hashable, P] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def find(self, shape: Hashable) -> P | None:
        """The plan of this shape, if there is one."""
        plan = self._plans.get(shape)
        if plan is None:
            self.misses += 1
        else:
            self._plans.move_to_end(shape)
            self.hits += 1
        return plan

    def keep(self, shape: Hashable, plan: P) -> None:
        """Remember a plan."""
        self._plans[shape] = plan
        if len(self._plans) > PLANS_KEPT:
            self._plans.popitem(last=False)


class SchemaStore[P]:
    """The schema caches of one template, shared by all backends made from it."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Known[P]] = OrderedDict()
        #: the first one that was loaded: most likely what a new backend still is
        self._first: Known[P] | None = None

    @property
    def first(self) -> Known[P] | None:
        """A good guess for a backend that was not looked at yet."""
        return self._first

    def find(self, version: str) -> Known[P] | None:
        """What was built for this version."""
        known = self._known.get(version)
        if known is not None:
            self._known.move_to_end(version)
        return known

    def keep(self, schema: SchemaCache) -> Known[P]:
        """Remember a schema cache that was just built."""
        known: Known[P] = Known(schema)
        if not schema.version:
            return known
        if self._first is None:
            self._first = known
        self._known[schema.version] = known
        while len(self._known) > _VERSIONS_KEPT:
            self._known.popitem(last=False)
        return known
