"""What surrounds the migrations: settings, secrets, roles.sql, seeds, buckets, and starting in the middle."""

from __future__ import annotations

import pytest

from tests.kit.fix_supabase import SupabaseCluster, value
from tests.kit.projects import apply_to, project_of
from toft.errors.project import HistoryUnknown, MigrationFailed, MigrationsOutOfOrder
from toft.migrate.digest import chain
from toft.migrate.run import apply

SEED = "supabase/seed.sql"


async def rows(cluster: SupabaseCluster, sql: str, user: str = "postgres") -> list[list[str | None]]:
    session = await cluster.connect(user)
    return await session.query(sql)


async def test_settings_of_the_database(supabase: SupabaseCluster) -> None:
    """`[db.settings]` that a database can have meet the migrations; a bad one is said and left out."""
    config = """
        [db.settings]
        work_mem = "7MB"
        statement_timeout = "77s"
        max_parallel_workers = "many"
        session_replication_role = "replica"
        shared_buffers = "1GB"
    """
    project = project_of(
        {"1_a.sql": "create table seen as select current_setting('work_mem') as w;"}, config=config
    )
    applied = await apply_to(supabase, project)
    assert await rows(supabase, "select w, current_setting('statement_timeout') from seen") == [
        ["7MB", "77s"]
    ]
    assert await rows(supabase, "show session_replication_role") == [["replica"]]
    assert [notice.text.split(":")[0] for notice in applied.notices] == [
        "`db.settings.max_parallel_workers` is left out"
    ]


@pytest.mark.parametrize("exposed", [True, False])
async def test_exposure_of_new_tables(supabase: SupabaseCluster, exposed: bool) -> None:
    """`auto_expose_new_tables = false` takes the API roles' rights on what migrations make in `public`."""
    config = f"[api]\nauto_expose_new_tables = {str(exposed).lower()}"
    await apply_to(supabase, project_of({"1_a.sql": "create table a (x serial);"}, config=config))
    expected = [["t", "t", "t"] if exposed else ["f", "f", "f"]]
    assert (
        await rows(
            supabase,
            "select has_table_privilege('anon', 'a', 'select'),"
            " has_table_privilege('service_role', 'a', 'delete'),"
            " has_sequence_privilege('authenticated', 'a_x_seq', 'usage')",
        )
        == expected
    )


async def test_vault_secrets_are_there_for_the_first_migration(supabase: SupabaseCluster) -> None:
    """`[db.vault]` goes in by vault.create_secret before any file; an unset variable is left out with a
    word.
    """
    config = '[db.vault]\napi_key = "env(KEY)"\nplain = "it\'s"\nmissing = "env(NOT_SET)"\n'
    files = {
        "1_a.sql": "create table seen as select name, decrypted_secret as s from vault.decrypted_secrets;"
    }
    project = project_of(files, config=config, env={"KEY": "top"})
    assert [str(notice) for notice in project.notices] == [
        "supabase/config.toml:4: the environment variable NOT_SET is not set"
    ]
    await apply_to(supabase, project)
    assert await rows(supabase, "select * from seen order by 1") == [["api_key", "top"], ["plain", "it's"]]


async def test_webhooks(supabase: SupabaseCluster) -> None:
    """`[experimental.webhooks]` brings what the triggers of the dashboard call; requests are written down."""
    files = {
        "1_a.sql": """
            create table orders (id int);
            create trigger tell after insert on orders for each row execute function
              supabase_functions.http_request('https://x.example/', 'POST', '{}', '{}', '1000');
            insert into orders values (1);
        """
    }
    applied = await apply_to(supabase, project_of(files, config="[experimental.webhooks]\nenabled = true"))
    assert applied.notices == ()
    assert await rows(supabase, "select count(*) from net.http_request_queue", "supabase_admin") == [["1"]]


async def test_roles_come_before_migrations(supabase: SupabaseCluster) -> None:
    """supabase/roles.sql runs as `postgres`, first, and is not recorded."""
    await apply_to(
        supabase,
        project_of(
            {
                "supabase/roles.sql": "create role app_reader;\n"
                "create table who as select current_user::text as me;",
                "1_a.sql": "grant select on who to app_reader;",
            }
        ),
    )
    assert await rows(supabase, "select me from who") == [["postgres"]]
    assert await rows(supabase, "select version from supabase_migrations.schema_migrations") == [["1"]]
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(
            supabase, project_of({"supabase/roles.sql": "\n\ncreate role app_reader;", "1_a.sql": ""})
        )
    assert (caught.value.facts["file"], caught.value.facts["line"]) == ("supabase/roles.sql", 3)


async def test_seeds(supabase: SupabaseCluster) -> None:
    """Each file is one transaction block; its hash is kept; unchanged it is passed over, changed only the
    hash is new.
    """
    files = {
        "1_a.sql": "create table t (x text);",
        "supabase/seeds/b.sql": "lock table t;\nsavepoint s;\ninsert into t values ('b');",
        "supabase/seeds/a.sql": "insert into t values ('a');",
    }
    config = '[db.seed]\nsql_paths = ["./seeds/*.sql"]'
    applied = await apply_to(supabase, project_of(files, config=config))
    assert applied.seeds == ("supabase/seeds/a.sql", "supabase/seeds/b.sql")
    files["supabase/seeds/a.sql"] += "\n-- changed"
    files["supabase/seeds/c.sql"] = "insert into t values ('c');"
    project = project_of(files, config=config)
    applied = await apply_to(supabase, project)
    assert applied.seeds == ("supabase/seeds/c.sql",)
    assert len(applied.notices) == 1
    assert await rows(supabase, "select string_agg(x, '' order by ctid) from t") == [["abc"]]
    assert await rows(supabase, "select path, hash from supabase_migrations.seed_files order by 1") == [
        [seed.path, seed.sha256] for seed in project.seeds
    ]


async def test_a_failing_seed_is_rolled_back(supabase: SupabaseCluster) -> None:
    """Nothing of the file stays, the migrations do."""
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(
            supabase,
            project_of(
                {
                    "1_a.sql": "create table t (x int unique);",
                    SEED: "insert into t values (1);\n\ninsert into t values (1);",
                }
            ),
        )
    facts = caught.value.facts
    assert (facts["file"], facts["line"], facts["statement"], facts["sqlstate"]) == (SEED, 3, 1, "23505")
    assert await rows(supabase, "select count(*) from t") == [["0"]]
    assert await rows(supabase, "select count(*) from supabase_migrations.seed_files") == [["0"]]


async def test_buckets(supabase: SupabaseCluster) -> None:
    """`[storage.buckets]` become rows; a second run updates them."""
    config = """
        [storage.buckets.images]
        public = true
        file_size_limit = "5MiB"
        allowed_mime_types = ["image/png", "image/x,y"]
        [storage.buckets."my.docs"]
    """
    await apply_to(supabase, project_of({"1_a.sql": "select 1;"}, config=config))
    columns = "id, name, public::text, file_size_limit::text, allowed_mime_types::text"
    assert await rows(supabase, f"select {columns} from storage.buckets order by id") == [
        ["images", "images", "true", "5242880", '{image/png,"image/x,y"}'],
        ["my.docs", "my.docs", "false", None, None],
    ]
    await apply_to(supabase, project_of({"1_a.sql": ""}, config="[storage.buckets.images]\npublic = false"))
    assert await rows(supabase, f"select {columns} from storage.buckets where id = 'images'") == [
        ["images", "images", "false", None, None]
    ]


async def test_triggers_of_a_tenant_do_not_run_as_the_superuser(supabase: SupabaseCluster) -> None:
    """A trigger on storage.buckets meets service_role."""
    await apply_to(
        supabase,
        project_of(
            {
                "1_a.sql": "create table public.seen (who text); grant all on public.seen to service_role;\n"
                "create function public.look() returns trigger language plpgsql as $$ begin\n"
                "  insert into public.seen values (session_user || ' ' || current_user);\n"
                "  return new; end $$;\n"
                "create trigger look before insert on storage.buckets\n"
                "  for each row execute function public.look();",
            },
            config="[storage.buckets.a]",
        ),
    )
    assert await rows(supabase, "select who from seen") == [["postgres service_role"]]


async def test_a_migration_may_change_its_own_password(supabase: SupabaseCluster) -> None:
    """As old tutorials have it; what follows goes on by the connection that there is.

    Before 16, a role with REPLICATION may not, there as here.
    """
    if supabase.major < 16:
        pytest.skip("Postgres 16 and later")
    await apply_to(
        supabase,
        project_of(
            {"1_a.sql": "alter user postgres with password 'postgres';"}, config="[storage.buckets.a]"
        ),
    )
    assert await rows(supabase, "select id from storage.buckets", "supabase_admin") == [["a"]]


async def test_progress_is_reported(supabase: SupabaseCluster) -> None:
    """A few words for each file, and the server's warnings."""
    said: list[str] = []
    project = project_of(
        {
            "supabase/roles.sql": "",
            "1_a.sql": "do $$ begin raise warning 'careful'; raise notice 'aside'; end $$;"
            "create publication p for all tables;",
            SEED: "",
        }
    )
    await apply(project, supabase.connect, report=said.append)
    assert said == [
        "applying supabase/roles.sql",
        "applying supabase/migrations/1_a.sql",
        "warning: careful",
        "seeding from supabase/seed.sql",
    ]


async def test_steps_that_a_template_has_are_not_repeated(supabase: SupabaseCluster) -> None:
    """Starting at any step of the chain ends in the same state."""
    files = {
        "supabase/roles.sql": "create role r;",
        "10_a.sql": "create table a ();",
        "1_b.sql": "create table b ();",
    }
    first = project_of(files)
    await apply_to(supabase, first)
    more = project_of(
        {**files, "2_c.sql": "create table c ();", SEED: "create table seeded ();"},
        config="[storage.buckets.late]",
    )
    shared = [
        before.key == after.key
        for before, after in zip(chain("base", first), chain("base", more), strict=False)
    ]
    assert shared == [True, True, True, True, False]
    applied = await apply_to(supabase, more, start_at=4)
    assert applied.migrations == ("supabase/migrations/2_c.sql",)
    assert applied.seeds == (SEED,)
    assert await rows(supabase, "select id from storage.buckets") == [["late"]]
    steps = len(chain("base", more))
    assert (await apply_to(supabase, more, start_at=steps)).migrations == ()
    assert (
        await value(await supabase.connect(), "select count(*) from supabase_migrations.schema_migrations")
        == "3"
    )


async def test_seeds_meet_the_last_migrations_settings_from_a_template_too(supabase: SupabaseCluster) -> None:
    """A search path that the last migration leaves empty fails the seed, wherever the run starts."""
    files = {
        "1_a.sql": "create table public.t (x int);\nselect set_config('search_path', '', false);",
        SEED: "insert into t values (1);",
    }
    await apply_to(supabase, project_of(files, no_seed=True))
    project = project_of(files)
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(supabase, project, start_at=2)
    assert (caught.value.facts["file"], caught.value.facts["sqlstate"]) == (SEED, "42P01")
    assert "search_path" in caught.value.hint


async def test_pending_migrations(supabase: SupabaseCluster) -> None:
    """Only what is not recorded runs; what would be inserted is refused unless asked for; so is a lost
    file.
    """
    await apply_to(supabase, project_of({"2_b.sql": "create table b ();"}))
    with pytest.raises(MigrationsOutOfOrder, match=r"1_a[.]sql would be inserted"):
        await apply_to(supabase, project_of({"1_a.sql": "create table a ();", "2_b.sql": ""}))
    applied = await apply_to(
        supabase,
        project_of({"1_a.sql": "create table a ();", "2_b.sql": "", "3_c.sql": ""}, include_all=True),
    )
    assert applied.migrations == ("supabase/migrations/1_a.sql", "supabase/migrations/3_c.sql")
    with pytest.raises(HistoryUnknown, match="applied 1 2, and there is no such file"):
        await apply_to(supabase, project_of({"3_c.sql": ""}, include_all=True))


async def test_options(supabase: SupabaseCluster) -> None:
    """Migrations, seeds, or both can be left out, and another folder taken."""
    files = {"1_a.sql": "create table a ();", SEED: "create table s ();", "db/1_x.sql": "create table x ();"}
    await apply_to(supabase, project_of(files, no_migrations=True, no_seed=True))
    assert await rows(supabase, "select count(*) from pg_tables where schemaname = 'public'") == [["0"]]
    await apply_to(supabase, project_of(files, migrations_dir="db", no_seed=True))
    assert await rows(supabase, "select tablename from pg_tables where schemaname = 'public'") == [["x"]]
