"""What a Data API is given: its database, its options, the shared schema store and a clock."""

from __future__ import annotations

import msgspec

from toft.pg.connection import Connection
from toft.pg.pool import Pool
from toft.rest.options import RestOptions
from toft.rest.prepared import Prepared
from toft.rest.schema.store import SchemaStore
from toft.world import Clock


class RestContext(msgspec.Struct, frozen=True):
    """pool: connections as `authenticator`. schemas: one store for all backends of a template."""

    pool: Pool[Connection]
    clock: Clock
    options: RestOptions = RestOptions()
    schemas: SchemaStore[Prepared] = msgspec.field(default_factory=SchemaStore[Prepared])
