"""How often a plan that was made serves again, for the shapes of one app and ever new values."""

from __future__ import annotations

from toft.bench.database import Place
from toft.bench.measure import Figure, single
from toft.bench.sent import ALLOWANCE, OPTIONS, load_schema
from toft.bench.subjects import SHAPES
from toft.rest.parse.skim import Head, finish, meaning, skim
from toft.rest.plan.plan import make_plan
from toft.rest.prepared import Prepared, prepare
from toft.rest.schema.store import Known

_ROUNDS = 2000
_HEAD = Head(accept="application/json")


async def measure_plans(place: Place) -> Figure:
    """Hits among all look-ups, by the rooms that a request walks through."""
    connection = await place.connect()
    known: Known[Prepared] = Known(await load_schema(connection))
    connection.close()
    for number in range(_ROUNDS):
        for shape in SHAPES:
            path, _, query = shape.replace("{n}", str(number)).replace(" ", "%20").partition("?")
            asked = skim("GET", path, query, _HEAD, OPTIONS, None)
            finish(asked, _HEAD, b"", OPTIONS.max_rows)
            if known.find(asked.shape) is None:
                meant, is_shared = meaning(asked)
                prepared = prepare(make_plan(known.schema, meant, ALLOWANCE))
                if is_shared:
                    known.keep(asked.shape, prepared)
    count = known.hits + known.misses
    return single("api.plan_cache_hits", "%", known.hits / count * 100, n=count, at_least=99)
