"""CREATE EXTENSION as `postgres`: real ones, stand-ins, and what a stand-in refuses."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import pytest

from tests.kit.fix_supabase import SupabaseCluster, refused, value
from toft.engine.bootstrap import stand_ins
from toft.pg.connection import Connection

NOT_SUPPORTED = "0A000"
#: In every build that has contrib, and allowed by the platform.
CONTRIB = (
    *("autoinc", "bloom", "btree_gin", "btree_gist", "citext", "cube", "dblink", "dict_int", "dict_xsyn"),
    *(
        "earthdistance",
        "fuzzystrmatch",
        "hstore",
        "insert_username",
        "intarray",
        "isn",
        "ltree",
        "moddatetime",
    ),
    *(
        "pg_prewarm",
        "pg_stat_statements",
        "pg_trgm",
        "pg_walinspect",
        "pgcrypto",
        "pgrowlocks",
        "pgstattuple",
    ),
    *("postgres_fdw", "refint", "seg", "sslinfo", "tablefunc", "tcn", "tsm_system_rows", "tsm_system_time"),
    *("unaccent", "uuid-ossp"),
)
#: Not in the platform's list because they are not safe.
UNSAFE = (
    *("adminpack", "amcheck", "file_fdw", "old_snapshot", "pageinspect", "pg_buffercache", "pg_freespacemap"),
    *("pg_surgery", "pg_visibility", "plpython3u"),
)


async def create_all(session: Connection, names: Iterable[str]) -> dict[str, str | None]:
    """Each with IF NOT EXISTS in schema `extensions` where it lets itself be put there; failures by name."""
    failures: dict[str, str | None] = {}
    for name in names:
        sql = f'create extension if not exists "{name}" with schema extensions cascade'
        answer = await refused(session, sql)
        if answer == "0A000":  # it insists on a schema of its own
            answer = await refused(session, f'create extension if not exists "{name}" cascade')
        if answer is not None:
            failures[name] = answer
    return failures


async def test_every_contrib_extension_of_the_platform(supabase: SupabaseCluster) -> None:
    """`postgres` creates them all and drops them again."""
    session = await supabase.connect()
    failures = await create_all(session, CONTRIB)
    if supabase.engine.source == "bindir":  # its libpq is found only by LD_LIBRARY_PATH
        failures = {name: why for name, why in failures.items() if name not in ("dblink", "postgres_fdw")}
    assert failures == {}
    for name in CONTRIB:
        await session.script(f'drop extension if exists "{name}" cascade')


async def test_every_extension_that_the_engine_claims(supabase: SupabaseCluster) -> None:
    """What the engine says it has and `postgres` may have can be created; the unsafe ones are refused."""
    session = await supabase.connect()
    for name in UNSAFE:
        if name in supabase.engine.extensions:
            assert await refused(session, f'create extension "{name}"') == "42501"
    allowed = [
        name for name in supabase.engine.extensions if name not in (*UNSAFE, "plpgsql", "xml2", "intagg")
    ]
    refusals = await create_all(session, [name for name in allowed if not name.endswith("plpython3u")])
    if supabase.engine.source == "bindir":
        refusals = {name: why for name, why in refusals.items() if name not in ("dblink", "postgres_fdw")}
    assert refusals.pop("pg_logicalinspect", "42501") == "42501"
    assert refusals == {}


async def test_every_library_loads(supabase: SupabaseCluster) -> None:
    """A library that lacks another one shows here, not in a user's migration."""
    admin = await supabase.connect("supabase_admin")
    rows = await admin.query(
        "select distinct probin from pg_proc where probin is not null"
        " union select '$libdir/' || name from pg_available_extensions"
        " where name in ('dblink', 'postgres_fdw', 'pgcrypto', 'citext', 'pg_trgm', 'hstore')"
    )
    for [library] in rows:
        if supabase.engine.source != "bindir" or library not in ("$libdir/dblink", "$libdir/postgres_fdw"):
            await admin.script(f"load '{library}'")


async def test_what_a_fresh_database_has(supabase: SupabaseCluster) -> None:
    """The extensions of a fresh project, owned by postgres; their objects by the superuser."""
    session = await supabase.connect()
    rows = await session.query("select extname, extnamespace::regnamespace::text, extowner::regrole::text"
                               " from pg_extension order by 1")  # fmt: skip
    expected = [
        ["pg_stat_statements", "extensions", "postgres"],
        ["pgcrypto", "extensions", "postgres"],
        ["plpgsql", "pg_catalog", "supabase_admin"],
        ["supabase_vault", "vault", "postgres"],
        ["uuid-ossp", "extensions", "postgres"],
    ]
    if supabase.major == 15:
        expected.insert(2, ["pgjwt", "extensions", "postgres"])
    assert rows == expected
    owners = await session.query(
        "select distinct proowner::regrole::text from pg_proc where pronamespace = 'extensions'::regnamespace"
    )
    assert owners == [["supabase_admin"]]
    await session.script("create table t (id uuid default uuid_generate_v4())")
    await session.script("select count(*) from extensions.pg_stat_statements")


async def test_a_stand_in_says_so(supabase: SupabaseCluster) -> None:
    """The comment of each says that it is one, and stand_ins() tells what it does."""
    session = await supabase.connect()
    rows = await session.query(
        "select name from pg_available_extensions where comment like 'Stand-in by Toft: %' order by name"
    )
    found = {name for [name] in rows}
    assert found <= set(stand_ins())
    real_here = {"uuid-ossp"} if supabase.engine.source == "system" else set[str]()
    assert set(stand_ins()) - found <= real_here | {"hypopg", "pgaudit", "pg_repack", "pg_cron"}
    assert all(stand_ins().values())


async def test_dumps_create_extensions_their_way(supabase: SupabaseCluster) -> None:
    """The lines that pg_dump and the dashboard write."""
    session = await supabase.connect()
    for line in (
        'CREATE EXTENSION IF NOT EXISTS "pg_net" WITH SCHEMA "extensions"',
        'CREATE EXTENSION IF NOT EXISTS "pg_cron" WITH SCHEMA "pg_catalog"',
        'CREATE EXTENSION IF NOT EXISTS "pg_graphql" WITH SCHEMA "graphql"',
        'CREATE EXTENSION IF NOT EXISTS "pg_stat_statements" WITH SCHEMA "extensions"',
        'CREATE EXTENSION IF NOT EXISTS "pgcrypto" WITH SCHEMA "extensions"',
        'CREATE EXTENSION IF NOT EXISTS "pgjwt" WITH SCHEMA "extensions"',
        'CREATE EXTENSION IF NOT EXISTS "supabase_vault" WITH SCHEMA "vault"',
        'CREATE EXTENSION IF NOT EXISTS "uuid-ossp" WITH SCHEMA "extensions"',
        'CREATE EXTENSION IF NOT EXISTS "http" WITH SCHEMA "extensions"',
        'CREATE SCHEMA IF NOT EXISTS "pgmq"; CREATE EXTENSION IF NOT EXISTS "pgmq" WITH SCHEMA "pgmq"',
        'CREATE SCHEMA IF NOT EXISTS "pgsodium"; CREATE EXTENSION IF NOT EXISTS "pgsodium"',
        'CREATE EXTENSION IF NOT EXISTS "index_advisor" WITH SCHEMA "extensions" CASCADE',
        'CREATE EXTENSION IF NOT EXISTS "pg_tle"',
        'CREATE EXTENSION IF NOT EXISTS "moddatetime" WITH SCHEMA "extensions"',
    ):
        assert await refused(session, line) is None, line


async def test_uuids_are_those_of_the_rfc(supabase: SupabaseCluster) -> None:
    """v3 and v5 give what Python gives, for names of any length; v1, v1mc and v4 are of their version."""
    session = await supabase.connect()
    for name in ("", "www.example.com", "x" * 39, "x" * 40, "x" * 47, "x" * 48, "x" * 200, "Straße 日本"):
        for function, made in (("uuid_generate_v3", uuid.uuid3), ("uuid_generate_v5", uuid.uuid5)):
            [[given]] = await session.query(f"select {function}(uuid_ns_url(), $1)", name)
            assert given == str(made(uuid.NAMESPACE_URL, name))
    for kind, version in (("v1", 1), ("v1mc", 1), ("v4", 4)):
        made_here = uuid.UUID(await value(session, f"select uuid_generate_{kind}()"))
        assert (made_here.version, made_here.variant) == (version, uuid.RFC_4122)
    assert (
        await value(session, "select count(distinct uuid_generate_v4()) from generate_series(1, 100)")
        == "100"
    )
    assert await value(session, "select uuid_nil()") == str(uuid.UUID(int=0))


async def test_pg_net_queues(supabase: SupabaseCluster) -> None:
    """A request becomes a row; there is no answer; API roles may queue and not read others' requests."""
    session = await supabase.connect()
    await session.script("create extension pg_net with schema extensions")
    await session.script("select net.http_get('http://example.org/?a=1', '{\"q\": \"ä b\"}')")
    assert (
        await value(session, "select url from net.http_request_queue")
        == "http://example.org/?a=1&q=%C3%A4%20b"
    )
    assert await value(session, "select status from net.http_collect_response(1)") == "PENDING"
    assert await refused(session, "select net.http_collect_response(1, false)") == NOT_SUPPORTED
    await session.script(
        "create table public.t (id int, name text);"
        "create trigger hook after insert or update or delete on public.t for each row execute function"
        " supabase_functions.http_request('http://example.org/hook', 'POST', '{\"x\": \"y\"}', '{}', '1000')"
    )
    api = await supabase.connect("authenticator")
    await api.script(
        "set role anon; insert into public.t values (1, 'x'); select net.http_post('http://example.org')"
    )
    assert await refused(api, "select url from net.http_request_queue") == "42501"
    await session.script("update public.t set name = 'y'; delete from public.t")
    rows = await session.query(
        "select convert_from(body, 'UTF8')::jsonb ->> 'type', headers ->> 'x' from net.http_request_queue"
        " where url like '%hook' order by id"
    )
    assert rows == [["INSERT", "y"], ["UPDATE", "y"], ["DELETE", "y"]]


async def test_a_webhook_without_pg_net_says_what_is_missing(supabase: SupabaseCluster) -> None:
    """The trigger can be made, as a dump does; using it needs the extension."""
    session = await supabase.connect()
    await session.script(
        "create table public.t (id int); create trigger hook after insert on public.t for each row"
        " execute function supabase_functions.http_request('http://example.org', 'POST', '{}', '{}', '1000')"
    )
    assert await refused(session, "insert into public.t values (1)") == NOT_SUPPORTED


async def test_pg_cron_records(supabase: SupabaseCluster) -> None:
    """Jobs are kept by name and owner, changed and removed; a wrong schedule is refused."""
    session = await supabase.connect()
    await session.script("create extension pg_cron with schema extensions")
    for schedule in ("* * * * *", "*/5 0-6,22 $ jan,mar mon-fri", "30 seconds", "@daily"):
        assert await value(session, f"select cron.schedule('j', '{schedule}', 'select 1')") == "1"
    for schedule in ("* * * *", "60 seconds", "x * * * *", "", "* * * * * *"):
        assert await refused(session, f"select cron.schedule('{schedule}', 'select 1')") == "22023"
    assert await value(session, "select cron.schedule('0 0 * * *', 'select 2')") is not None
    await session.script("select cron.alter_job(1, active => false, command => 'select 3')")
    rows = await session.query(
        "select schedule, command, active, username, database from cron.job where jobid = 1"
    )
    assert rows == [["@daily", "select 3", "f", "postgres", "postgres"]]
    assert await value(session, "select cron.unschedule('j')") == "t"
    assert await refused(session, "select cron.unschedule('j')") == "XX000"
    assert (
        await refused(session, "insert into cron.job (schedule, command, username) values ('', '', 'x')")
        == "42501"
    )
    assert await refused(session, "update cron.job set username = 'supabase_admin'") == "42501"


async def test_pgmq_keeps_messages(supabase: SupabaseCluster) -> None:
    """Send, read with a visibility time, pop, archive, delete, purge, drop."""
    session = await supabase.connect()
    await session.script("create extension pgmq; select pgmq.create('jobs')")
    for number in (1, 2, 3):
        sent = await session.query(
            "select * from pgmq.send('jobs', jsonb_build_object('n', $1::int))", str(number)
        )
        assert sent == [[str(number)]]
    batch = await session.query(
        "select * from pgmq.send_batch('jobs', array['{\"n\": 4}', '{\"n\": 5}']::jsonb[])"
    )
    assert batch == [["4"], ["5"]]
    await session.query("select pgmq.send('jobs', '{\"late\": true}', 3600)")
    read = await session.query("select msg_id, read_ct, message ->> 'n' from pgmq.read('jobs', 3600, 2)")
    assert read == [["1", "1", "1"], ["2", "1", "2"]]
    assert await value(session, "select msg_id from pgmq.pop('jobs')") == "3"
    assert await value(session, "select pgmq.archive('jobs', 1)") == "t"
    assert await value(session, "select pgmq.archive('jobs', 1)") == "f"
    assert await value(session, "select pgmq.delete('jobs', 2)") == "t"
    assert await session.query("select * from pgmq.archive('jobs', array[4, 99])") == [["4"]]
    assert await value(session, "select count(*) from pgmq.a_jobs") == "2"
    assert await value(session, "select queue_length from pgmq.metrics('jobs')") == "2"
    await session.query("select pgmq.set_vt('jobs', 6, 0)")
    assert await value(session, "select count(*) from pgmq.read('jobs', 0, 9)") == "2"
    assert await value(session, "select pgmq.purge_queue('jobs')") == "2"
    assert await session.query("select queue_name from pgmq.list_queues()") == [["jobs"]]
    assert await value(session, "select pgmq.drop_queue('jobs')") == "t"
    assert await refused(session, "select pgmq.create_partitioned('p')") == NOT_SUPPORTED
    assert await refused(session, "select pgmq.create('x'';drop table t;--')") == "22023"


async def test_pgjwt_signs_as_everybody_else(supabase: SupabaseCluster) -> None:
    """A token of the well-known example, and verification of claims and signature."""
    session = await supabase.connect()
    await session.script("create extension if not exists pgjwt with schema extensions")
    payload = '{"sub":"1234567890","name":"John Doe","iat":1516239022}'
    token = await value(session, f"select extensions.sign('{payload}', 'secret')")
    assert token == (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5"
        "MDIyfQ.XbPfbIHMI6arZ3Y922BhjWgQzWXcXNrz0ogtVhfEd2o"
    )
    ask = "select valid from extensions.verify(extensions.sign($1::json, 'secret', $2), $3, $2)"
    assert await session.query(ask, payload, "HS512", "secret") == [["t"]]
    assert await session.query(ask, payload, "HS256", "other") == [["f"]]
    assert await session.query(ask, '{"exp":1}', "HS384", "secret") == [["f"]]
    assert await session.query(ask, '{"nbf":99999999999}', "HS256", "secret") == [["f"]]


async def test_json_schemas_are_checked_or_refused(supabase: SupabaseCluster) -> None:
    """Known keywords decide; an unknown one is refused instead of ignored."""
    session = await supabase.connect()
    await session.script("create extension pg_jsonschema with schema extensions")
    ask = "select extensions.jsonb_matches_schema($1::json, $2::jsonb)"
    person = ('{"type": "object", "required": ["name"], "additionalProperties": false, "properties": {"name":'
              ' {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}}}')  # fmt: skip
    for schema, instance, valid in (
        (person, '{"name": "x", "age": 3}', "t"),
        (person, '{"name": ""}', "f"),
        (person, '{"age": 3}', "f"),
        (person, '{"name": "x", "age": 1.5}', "f"),
        (person, '{"name": "x", "age": 1.0}', "t"),
        (person, '{"name": "x", "more": 1}', "f"),
        ('{"enum": [1, "a", null]}', "null", "t"),
        ('{"enum": [1, "a"]}', '"b"', "f"),
        ('{"items": {"type": ["string", "null"]}, "maxItems": 2}', '["a", null]', "t"),
        ('{"items": {"type": "string"}}', '["a", 1]', "f"),
        ('{"oneOf": [{"type": "integer"}, {"minimum": 2}]}', "3", "f"),
        ('{"anyOf": [{"type": "integer"}, {"minimum": 2}]}', "3", "t"),
        ('{"not": {"type": "string"}}', "3", "t"),
        ("true", "3", "t"),
        ("false", "3", "f"),
    ):
        assert await session.query(ask, schema, instance) == [[valid]], (schema, instance)
    assert (
        await refused(session, "select extensions.jsonb_matches_schema('{\"pattern\": \"x\"}', '1')")
        == NOT_SUPPORTED
    )


async def test_calls_that_cannot_be_served_are_refused(supabase: SupabaseCluster) -> None:
    """0A000, never a wrong answer."""
    session = await supabase.connect()
    await session.script(
        "create extension http with schema extensions;"
        "create extension index_advisor with schema extensions cascade;"
        "create extension pgsodium; create extension pg_tle; create extension pg_graphql"
    )
    for sql in (
        "select http_get('http://example.org')",
        "select http_post('http://example.org', '{\"a\": 1}'::jsonb)",
        "select status from http(('GET', 'http://example.org', null, null, null)::http_request)",
        "select pgsodium.crypto_aead_det_encrypt('x', 'y', null)",
        "select * from index_advisor('select 1')",
    ):
        assert await refused(session, sql) == NOT_SUPPORTED, sql
    assert await value(session, "select pgtle.install_extension('x', '1', 'y', 'select 1')") == "t"
    assert "not available" in str(await value(session, "select graphql_public.graphql(query => '{ a }')"))
    assert await value(session, "select id is not null from pgsodium.create_key(name => 'k')") == "t"


async def test_vector_is_real_or_absent(supabase: SupabaseCluster) -> None:
    """No stand-in: distances cannot be faked."""
    session = await supabase.connect()
    if "vector" not in supabase.engine.extensions:
        assert await refused(session, "create extension vector") in {NOT_SUPPORTED, "58P01"}
        pytest.skip("this engine has no pgvector")
    await session.script(
        "create extension vector with schema extensions; create table t (v extensions.vector(3));"
        "insert into t values ('[1,2,3]'), ('[3,2,1]');"
        "create index on t using hnsw (v extensions.vector_l2_ops)"
    )
    assert await value(session, "select v from t order by v <-> '[3,2,2]' limit 1") == "[3,2,1]"
