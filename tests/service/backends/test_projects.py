"""Projects: built once, cached along their chain, shared by those who ask at once; failures say where."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import asyncpg
import httpx

from tests.kit.fix_daemon import RunningDaemon
from tests.kit.projects import bundle_of
from toft import __version__

TODOS = "create table todos (id int primary key, title text);"
TAGS = "create table tags (id int primary key);"
BUILT = re.compile(r"template\.built key=\S+ kind=project")
SEED = "insert into todos values (1, 'seeded');"


async def fetch(lease: dict[str, Any], sql: str) -> Any:
    session = await asyncpg.connect(
        host="127.0.0.1",
        port=lease["db_port"],
        user="postgres",
        password=lease["password"],
        database="postgres",
        ssl=False,
    )
    try:
        return await session.fetchval(sql)
    finally:
        await session.close()


async def test_an_unknown_project_is_asked_for(toftd: RunningDaemon) -> None:
    """A digest that the daemon has not seen is refused so that the client sends the files, held or not."""
    digest = bundle_of({"1_unknown.sql": "select 1;"}).digest()
    for hold in (False, True):
        message = {"version": __version__, "project": digest, "hold": hold}
        answer = await toftd.ask("POST", "/v1/leases", message)
        assert (answer.status, answer.json["code"]) == (404, "TOFT-PROJECT-UNKNOWN")


async def test_a_bundle_must_be_what_it_says(toftd: RunningDaemon) -> None:
    """Bytes that are no bundle, or another one, are not kept."""
    bundle = bundle_of({"1_a.sql": TODOS})
    wrong = bundle_of({"1_a.sql": TAGS}).digest()
    for digest, body in ((wrong, bundle.encode()), (bundle.digest(), b"nonsense"), ("x" * 64, b"")):
        answer = await toftd.ask("PUT", f"/v1/projects/{digest}", body=body)
        assert (answer.status, answer.json["code"]) == (400, "TOFT-REQUEST-INVALID")
    assert list((toftd.home / "projects").glob(".receiving*")) == []


async def test_the_first_lease_applies_and_the_next_clones(toftd: RunningDaemon) -> None:
    """The first lease of a project runs its files and says so step by step; the next applies nothing."""
    own = TODOS + "-- that nobody has applied before\n"
    digest = await toftd.put(bundle_of({"1_todos.sql": own, "supabase/seed.sql": SEED}))
    first, stream = await toftd.hold(project=digest)
    assert first["template"] | {"key": ""} == {"key": "", "was_cached": False, "applied": 2}
    assert "applying supabase/migrations/1_todos.sql" in stream.progress
    assert "seeding from supabase/seed.sql" in stream.progress
    assert await fetch(first, "select title from todos") == "seeded"
    second = await toftd.take(project=digest)
    assert second["template"] == {"key": first["template"]["key"], "was_cached": True, "applied": 0}
    assert await fetch(second, "select title from todos") == "seeded"
    await fetch(second, "delete from todos")
    assert await fetch(first, "select title from todos") == "seeded"
    stream.close()


async def test_one_migration_more_starts_from_the_longest_part(toftd: RunningDaemon) -> None:
    """With a file added at the end only that one, and the seed, is applied."""
    files = {"1_chain.sql": "create table chain (id int);", "2_chain.sql": "alter table chain add x int;"}
    seed = {"supabase/seed.sql": "insert into chain values (1);"}
    await toftd.take(project=await toftd.put(bundle_of({**files, **seed})))
    more = {**files, "3_chain.sql": "alter table chain add y int;"}
    lease = await toftd.take(project=await toftd.put(bundle_of({**more, **seed})))
    assert (lease["template"]["was_cached"], lease["template"]["applied"]) == (False, 2)
    assert await fetch(lease, "select count(*) from supabase_migrations.schema_migrations") == 3
    changed = {**more, "supabase/seed.sql": "insert into chain values (2);"}
    lease = await toftd.take(project=await toftd.put(bundle_of(changed)))
    assert lease["template"]["applied"] == 1
    assert await fetch(lease, "select id from chain") == 2


async def test_leases_at_once_share_one_build(toftd: RunningDaemon) -> None:
    """Several leases of a new project at the same time build its template once, and all hear of it."""
    digest = await toftd.put(
        bundle_of({"1_shared.sql": "create table shared as select 1 as x from pg_sleep(0.3);"})
    )
    built = len(BUILT.findall(toftd.said()))
    held = await asyncio.gather(*(toftd.hold(project=digest) for _ in range(4)))
    assert len(BUILT.findall(toftd.said())) == built + 1
    assert len({lease["backend_id"] for lease, _ in held}) == 4
    for lease, stream in held:
        assert await fetch(lease, "select count(*) from shared") == 1
        assert any("1_shared.sql" in text for text in stream.progress)


async def test_options_make_other_templates(toftd: RunningDaemon) -> None:
    """Without migrations, without seed: each is a database of its own kind."""
    digest = await toftd.put(bundle_of({"1_opt.sql": TODOS, "supabase/seed.sql": SEED}))
    unseeded = await toftd.take(project=digest, no_seed=True)
    assert await fetch(unseeded, "select count(*) from todos") == 0
    empty = await toftd.take(project=digest, no_migrations=True, no_seed=True)
    assert await fetch(empty, "select to_regclass('todos')::text") is None


def of_projects(toftd: RunningDaemon) -> set[str]:
    """The templates there are beside the bases, which whoever comes first has made."""
    return {path.name for path in (toftd.home / "templates").iterdir() if not path.name.startswith("base-")}


async def test_a_failing_migration_says_where(toftd: RunningDaemon) -> None:
    """File, line, statement, SQLSTATE; no lease, no template and no process is left of it."""
    sql = "create table broken (id int);\n\ninsert into nowhere values (1);\n"
    digest = await toftd.put(bundle_of({"1_broken.sql": sql}))
    templates = of_projects(toftd)
    answer = await toftd.ask("POST", "/v1/leases", {"version": __version__, "project": digest})
    assert (answer.status, answer.json["code"]) == (422, "TOFT-PROJECT-MIGRATION")
    facts = answer.json["facts"]
    assert (facts["file"], facts["line"], facts["sqlstate"]) == (
        "supabase/migrations/1_broken.sql",
        3,
        "42P01",
    )
    stream = await toftd.open("/v1/leases", {"version": __version__, "project": digest, "hold": True})
    while "error" not in (line := await stream.line() or {}):
        assert line
    assert line["error"]["facts"] == facts
    assert await toftd.leases() == []
    assert of_projects(toftd) == templates
    assert not [line for line in toftd.processes() if "postgres -D" in line and "templates" in line]


async def test_a_client_that_leaves_does_not_stop_the_build(toftd: RunningDaemon) -> None:
    """The template is made though nobody waits any more, and the next lease finds it."""
    digest = await toftd.put(
        bundle_of({"1_left.sql": "create table left_alone as select 1 as x from pg_sleep(0.5);"})
    )
    built = len(BUILT.findall(toftd.said()))
    stream = await toftd.open("/v1/leases", {"version": __version__, "project": digest, "hold": True})
    while "1_left.sql" not in str(await stream.line()):
        pass
    stream.close()
    await toftd.event(BUILT.pattern, count=built + 1)
    assert await toftd.leases() == []
    assert (await toftd.take(project=digest))["template"]["was_cached"]


async def test_the_wanted_version_is_the_nearest(toftd: RunningDaemon) -> None:
    """`major_version` picks the nearest engine, and another one is said."""
    engines = (await toftd.ask("GET", "/v1/engines")).json["engines"]
    majors = sorted(engine["major"] for engine in engines)
    digest = await toftd.put(bundle_of({"supabase/config.toml": f"[db]\nmajor_version = {majors[0]}\n"}))
    lease = await toftd.take(project=digest)
    assert await fetch(lease, "select current_setting('server_version_num')::int / 10000") == majors[0]
    digest = await toftd.put(bundle_of({"supabase/config.toml": "[db]\nmajor_version = 12\n"}))
    lease = await toftd.take(project=digest)
    assert any("no Postgres 12" in notice for notice in lease["notices"])


async def test_templates_are_collected(own_toftd: RunningDaemon) -> None:
    """Beyond the bound the project used longest ago goes; gc leaves none that nothing uses."""
    await own_toftd.start(TOFT_TEMPLATES_KEPT="2", TOFT_POOL_SIZE="0")
    for number in range(3):
        digest = await own_toftd.put(bundle_of({f"{number}_t.sql": f"create table t{number} (id int);"}))
        lease = await own_toftd.take(project=digest)
        await own_toftd.ask("DELETE", f"/v1/leases/{lease['id']}")
        await own_toftd.until_gone(lease)
    usable = own_toftd.rows("SELECT key FROM template WHERE recipe IS NOT NULL AND kind = 'project'")
    assert len(usable) == 2
    collected = (await own_toftd.ask("POST", "/v1/gc", {"templates": True})).json
    assert collected["templates"] >= 2
    assert collected["bytes"] > 0
    assert list((own_toftd.home / "templates").iterdir()) == []
    assert own_toftd.rows("SELECT 1 FROM template") == []


async def test_the_template_of_a_living_lease_is_kept(own_toftd: RunningDaemon) -> None:
    """gc throws no template away that a live backend came from."""
    await own_toftd.start(TOFT_POOL_SIZE="1")
    lease = await own_toftd.take()
    collected = (await own_toftd.ask("POST", "/v1/gc", {"templates": True})).json
    assert collected["templates"] == 0
    assert [path.name for path in (own_toftd.home / "templates").iterdir()] == [lease["template"]["key"]]


async def test_killed_in_the_middle_of_a_build(own_toftd: RunningDaemon) -> None:
    """kill -9 while migrations run: nothing half-made is left, no process, and the next daemon builds it."""
    await own_toftd.start(TOFT_POOL_SIZE="0")
    digest = await own_toftd.put(
        bundle_of({"1_slow.sql": "create table slow as select 1 as x from pg_sleep(0.6);"})
    )
    stream = await own_toftd.open("/v1/leases", {"version": __version__, "project": digest, "hold": True})
    while "1_slow.sql" not in str(await stream.line()):
        pass
    await own_toftd.kill()
    await own_toftd.start()
    lease = await own_toftd.take(project=digest)
    assert await fetch(lease, "select count(*) from slow") == 1
    assert not [path for path in (own_toftd.home / "templates").iterdir() if path.name.startswith(".")]


async def test_files_of_buckets(toftd: RunningDaemon) -> None:
    """`objects_path` fills a bucket once; every lease has the files, and what one changes is its own."""
    config = (
        "[storage.buckets.pictures]\npublic = true\nobjects_path = './pictures'\n"
        "allowed_mime_types = ['image/png']\n"
    )
    files = {
        "supabase/config.toml": config,
        "supabase/pictures/a.png": "a picture",
        "supabase/pictures/deep/b.png": "another",
        "supabase/pictures/c.txt": "of another type",
        "supabase/pictures/.DS_Store": "hidden",
    }
    digest = await toftd.put(bundle_of({"1_todos.sql": TODOS, **files}))
    first = await toftd.take(project=digest)
    second = await toftd.take(project=digest)
    count = "select count(*) from storage.objects where bucket_id = 'pictures'"
    assert [await fetch(lease, count) for lease in (first, second)] == [2, 2]
    headers = {"authorization": f"Bearer {first['service_role_key']}"}
    async with httpx.AsyncClient(timeout=60) as http:
        place = "/storage/v1/object/public/pictures/deep/b.png"
        for lease in (first, second):
            found = await http.get(lease["url"] + place)
            assert (found.text, found.headers["content-type"]) == ("another", "image/png")
        gone = await http.delete(first["url"] + "/storage/v1/object/pictures/deep/b.png", headers=headers)
        assert gone.status_code == 200
        assert (await http.get(first["url"] + place)).status_code == 400
        assert (await http.get(second["url"] + place)).text == "another"
