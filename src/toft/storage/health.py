"""What platforms ask to see whether Storage is alive."""

from __future__ import annotations

from toft import __version__
from toft.http.message import Response
from toft.pg.sqlstate import ConnectionLost, Unreachable
from toft.storage import records
from toft.storage.access import run_as
from toft.storage.buckets import json_response
from toft.storage.call import Call
from toft.storage.errors import StorageError, wrong_role
from toft.storage.records import SERVICE


async def status(call: Call) -> Response:
    """GET /status: the process is there."""
    return Response(200)


async def version(call: Call) -> Response:
    """GET /version."""
    return Response(200, [(b"content-type", b"text/plain; charset=utf-8")], __version__.encode())


async def purge_cache(call: Call) -> Response:
    """DELETE /cdn and below: there is no cache between us and anybody, so there is nothing to do."""
    call.require_token()
    if call.caller.role != "service_role":
        raise wrong_role()
    return json_response({"message": "success"})


async def health(call: Call) -> Response:
    """GET /health: the database answers."""
    call.require_token()
    try:
        await run_as(call, SERVICE, records.load_bucket_facts(""))
    except (StorageError, Unreachable, ConnectionLost):
        return json_response({"healthy": False})
    return json_response({"healthy": True})
