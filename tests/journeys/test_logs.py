"""The true cause of what fails in a project's own SQL: in the lease's log, and for the secret key."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon
from tests.kit.real_cli import RealCli
from toft.daemon.logs import parse_postgres

MIGRATION = """
create table public.profiles (id uuid primary key);
create function public.handle_new_user() returns trigger language plpgsql as $$
begin
  insert into public.profiles (id) values (new.id);
  return new;
end $$;
create trigger on_auth_user_created after insert on auth.users
  for each row execute function public.handle_new_user();
create function public.token_hook(event jsonb) returns jsonb language plpgsql as $$
begin
  return event -> 'claims' -> (1 / 0);
end $$;
grant execute on function public.token_hook to supabase_auth_admin;
"""
CONFIG = """
[auth.hook.custom_access_token]
enabled = true
uri = "pg-functions://postgres/public/token_hook"
"""
BODY = {"email": "ada@example.com", "password": "a-long-enough-one"}


@pytest.fixture
def cli(toftd: RunningDaemon, folder: Path) -> RealCli:
    cli = RealCli(toftd, folder)
    cli.write({"supabase/config.toml": CONFIG, "1_users.sql": MIGRATION})
    return cli


def entries(cli: RealCli, *words: str) -> list[dict[str, str]]:
    done = cli("logs", "--json", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


async def test_a_failing_trigger_and_a_failing_hook(cli: RealCli) -> None:
    """The client gets upstream's words; the log has function, line, SQLSTATE and message of what failed."""
    cli.json("lease", "create")
    env = cli.json("lease", "env")
    assert entries(cli) == []
    async with httpx.AsyncClient(base_url=env["SUPABASE_URL"] + "/auth/v1") as http:

        async def sign_up(key: str) -> httpx.Response:
            headers = {"apikey": env[key], "x-supabase-api-version": "2024-01-01"}
            return await http.post("/signup", json=BODY, headers=headers)

        refused = await sign_up("SUPABASE_PUBLISHABLE_KEY")
        assert refused.json() == {"code": "unexpected_failure", "message": "Database error saving new user"}
        assert "x-toft-cause" not in refused.headers
        told = (await sign_up("SUPABASE_SECRET_KEY")).headers["x-toft-cause"]
        for words in ("permission denied for table profiles", "42501", "handle_new_user() line 3"):
            assert words in told
        [*_, line] = [entry for entry in entries(cli) if entry["source"] == "auth"]
        assert line["text"].endswith(told)
        assert "Database error saving new user" in line["text"]
        assert any(
            "permission denied" in entry["text"] for entry in entries(cli) if entry["source"] == "postgres"
        )

        cli(
            "psql",
            "--",
            "-c",
            "alter function public.handle_new_user() security definer set search_path = public",
        )
        refused = await sign_up("SUPABASE_PUBLISHABLE_KEY")
        assert "pg-functions://postgres/public/token_hook" in refused.json()["message"]
        last = [entry for entry in entries(cli) if entry["source"] == "auth"][-1]["text"]
        for words in ("division by zero", "22012", "token_hook(jsonb) line 3"):
            assert words in last
    assert cli("logs", "-n", "1").stdout.count("\n") == 1
    assert "auth: auth /signup" in cli("logs").stdout


async def test_following(cli: RealCli) -> None:
    """With --follow lines come as they happen, and the command ends with the lease."""
    lease = cli.json("lease", "create")
    env = cli.json("lease", "env")
    with cli.started("logs", lease["id"], "--follow") as process:
        async with httpx.AsyncClient(base_url=env["SUPABASE_URL"] + "/auth/v1") as http:
            await http.post("/signup", json=BODY, headers={"apikey": env["SUPABASE_PUBLISHABLE_KEY"]})
        assert process.stdout is not None
        assert any("handle_new_user() line 3" in process.stdout.readline() for _ in range(2))
        cli("lease", "release", lease["id"])
        assert process.wait(PATIENCE_SECONDS) == 0


def test_postgres_lines() -> None:
    """What Postgres says when all is well is left out; continued lines stay together."""
    text = (
        (
            "2026-11-30 16:28:57.123 UTC [7] LOG:  database system is ready\\n"
            "\\tand goes on\\n"
            "2026-11-30 16:28:58.000 UTC [8] ERROR:  no\\n"
            "\\tsuch thing\\n"
            "not a line of ours\\n"
            "2026-11-30 16:28:58.001 UTC [8] STATEMENT:  select secret\\n"
        )
        .replace("\\n", "\n")
        .replace("\\t", "\t")
    )
    [line] = parse_postgres(text)
    assert (line.at, line.text) == ("2026-11-30T16:28:58.000Z", "ERROR: no such thing")
