"""What a Data API is given: its database, its options, the shared schema store and a clock."""

from __future__ import annotations

import msgspec

from toft.pg.connection import Connection
from toft.pg.pool import Pool
from toft.rest.options import RestOptions
from toft.rest.prepared import Prepared
from toft.rest.schema.store import SchemaStore
from toft.world import Clock, Entropy, SystemEntropy


class RestContext(msgspec.Struct, frozen=True):
    """pool: connections as `authenticator`. schemas: one store for all backends of a template.

    explanations_url: where `RestService.explanation` is served, an id to be added; None: nowhere.
    """

    pool: Pool[Connection]
    clock: Clock
    options: RestOptions = RestOptions()
    schemas: SchemaStore[Prepared] = msgspec.field(default_factory=SchemaStore[Prepared])
    entropy: Entropy = msgspec.field(default_factory=SystemEntropy)
    explanations_url: str | None = None
