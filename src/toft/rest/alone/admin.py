"""The admin port: is it alive, is it ready, how is it doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from toft.http.message import Handle, Request, Response
from toft.rest.errors import RestError

if TYPE_CHECKING:
    from toft.rest.alone.api import DataApi

_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_JSON = (b"content-type", b"application/json; charset=utf-8")
_SUCCESS = '{status="SUCCESS"}'


def admin_handle(api: DataApi) -> Handle:
    """What the admin port answers about `api`."""

    async def handle(request: Request) -> Response:
        match request.raw_path:
            case "/live":
                return Response(200)
            case "/ready":
                return Response(await _readiness(api))
            case "/metrics":
                return Response(200, [_TEXT], _metrics(api))
            case "/schema_cache":
                return _schema_cache(api)
            case _:
                return Response(404)

    return handle


async def _readiness(api: DataApi) -> int:
    if api.service.schema.known is None:
        return 503
    try:
        await api.service.ping()
    except RestError:
        return 500
    return 200


class _Metric(NamedTuple):
    name: str
    kind: str
    what: str
    value: float
    labels: str = ""

    def lines(self) -> str:
        """Prometheus' text, under the prefix that upstream's have."""
        name = f"pgrst_{self.name}"
        return f"# HELP {name} {self.what}\n# TYPE {name} {self.kind}\n{name}{self.labels} {self.value}\n"


def _metrics(api: DataApi) -> bytes:
    keeper, pool = api.service.schema, api.pool
    hits, misses = (keeper.known.hits, keeper.known.misses) if keeper.known is not None else (0, 0)
    bearers = api.bearers
    gauge, counter = "gauge", "counter"
    metrics = (
        _Metric("db_pool_max", gauge, "Max pool connections", api.settings.pool_size),
        _Metric("db_pool_available", gauge, "Idle connections in the pool", pool.size - pool.in_use),
        _Metric("db_pool_in_use", gauge, "Connections that work", pool.in_use),
        _Metric("db_pool_waiting", gauge, "Requests that wait for a connection", pool.waiting),
        _Metric("db_pool_timeouts_total", counter, "Requests that waited in vain", api.timeouts),
        _Metric("schema_cache_loads_total", counter, "Schema cache loads", keeper.loads, _SUCCESS),
        _Metric("schema_cache_query_time_seconds", gauge, "The last load's time", keeper.load_seconds),
        _Metric("jwt_cache_requests_total", counter, "Tokens that were looked at", bearers.looked_at),
        _Metric("jwt_cache_hits_total", counter, "Tokens that were known", bearers.hits),
        _Metric("jwt_cache_evictions_total", counter, "Tokens that were forgotten", bearers.evictions),
        _Metric("plan_cache_hits_total", counter, "Requests of a known shape", hits),
        _Metric("plan_cache_misses_total", counter, "Requests that were planned", misses),
    )
    return "".join(each.lines() for each in metrics).encode()


def _schema_cache(api: DataApi) -> Response:
    known = api.service.schema.known
    if known is None:
        return Response(503)
    schema = known.schema
    shown = {
        "dbTables": list(schema.tables.values()),
        "dbRelationships": [each for found in schema.relationships.values() for each in found],
        "dbRoutines": [each for found in schema.routines.values() for each in found],
        "dbRepresentations": [list(key) for key in schema.representations],
        "dbMediaHandlers": list(schema.handlers.values()),
    }
    return Response(200, [_JSON], msgspec.json.encode(shown))
