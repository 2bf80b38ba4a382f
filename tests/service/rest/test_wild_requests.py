"""Requests by chance on real Postgres: whatever parses, Postgres can plan."""

from __future__ import annotations

import itertools
import os

import pytest

from tests.kit.fix_rest import Api, make_api
from tests.kit.fix_supabase import SupabaseCluster
from tests.kit.wild import HOSTILE, wild_requests
from toft.rest.options import RestOptions

#: how many, and from where: `make soak-requests` sends a million
REQUESTS = int(os.environ.get("WILD_REQUESTS", "4000"))
SEED = int(os.environ.get("WILD_SEED", "1"))


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_no_request_breaks_anything(supabase: SupabaseCluster, api: Api) -> None:
    """Never a 5xx, never a syntax error, and every answer that is an error has its four keys."""
    tenant = await supabase.connect()
    await tenant.script(HOSTILE)
    everything = RestOptions(aggregates=True, plans=True, rolls_back=True, requires_filter=False)
    wide = make_api(supabase, everything)
    reached = 0
    for method, target, body, headers in itertools.islice(wild_requests(SEED), REQUESTS):
        reply = await wide(method, target, body, headers=headers)
        assert reply.status < 500, (method, target, body, headers, reply)
        if reply.status >= 400 and reply.body:
            assert set(reply.json) == {"code", "details", "hint", "message"}
            # A text search may be wrong (that has the same code), our SQL may not.
            is_about_search = "tsquery" in (said := reply.json["message"]) or "escaped character" in said
            assert reply.code != "42601" or is_about_search, (method, target, body, headers, reply)
            reached += not reply.code.startswith("PGRST")
        else:
            reached += 1
    assert reached > REQUESTS / 2
    wide.pool.close()
    print(f"{REQUESTS} requests, seed {SEED}: {reached} reached SQL, none was answered by a 5xx")
