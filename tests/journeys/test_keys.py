"""Signing keys of a lease: rotated with overlap, revoked, and brought along by a project."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from tests.kit.fix_daemon import RunningDaemon
from tests.kit.real_cli import RealCli
from toft.protocol.worker import JwtKey
from toft.tokens.apikey import make_legacy_key
from toft.tokens.jwt import KeyRing, read_header
from toft.tokens.keys import new_signing_key
from toft.world import SystemEntropy

MIGRATION = """
create table public.notes (text text);
insert into public.notes values ('hello');
alter table public.notes enable row level security;
create policy signed_in on public.notes to authenticated using (true);
insert into storage.buckets (id, name) values ('files', 'files');
create policy signed_in on storage.objects to authenticated using (true) with check (true);
"""


@pytest.fixture
def cli(toftd: RunningDaemon, folder: Path) -> RealCli:
    return RealCli(toftd, folder)


async def accepted(env: dict[str, str], token: str) -> dict[str, bool]:
    """Which service takes this user's token."""
    headers = {"apikey": env["SUPABASE_PUBLISHABLE_KEY"], "authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=env["SUPABASE_URL"], headers=headers) as http:
        rest = await http.get("/rest/v1/notes")
        auth = await http.get("/auth/v1/user")
        storage = await http.post("/storage/v1/object/list/files", json={"prefix": ""})
    return {
        "rest": rest.status_code == 200 and rest.json() == [{"text": "hello"}],
        "auth": auth.status_code == 200,
        "storage": storage.status_code == 200,
    }


async def published(env: dict[str, str]) -> dict[str, str]:
    """kid → algorithm of the public keys."""
    async with httpx.AsyncClient(base_url=env["SUPABASE_URL"]) as http:
        keys = (await http.get("/auth/v1/.well-known/jwks.json")).json()["keys"]
    assert not any("d" in key for key in keys)
    return {key["kid"]: key["alg"] for key in keys}


async def test_rotation_with_overlap(cli: RealCli) -> None:
    """Old and new tokens work in all three services, until the old key is revoked; sessions go on."""
    cli.write({"1_notes.sql": MIGRATION})
    cli.json("lease", "create")
    env = cli.json("lease", "env")
    everywhere = dict.fromkeys(("rest", "auth", "storage"), True)
    session = cli.json("user", "token", "ada@example.com")
    old = session["access_token"]
    [first] = cli.json("keys", "list")["keys"]
    assert (first["alg"], first["signs"]) == ("ES256", True)
    assert await accepted(env, old) == everywhere
    second = cli.json("keys", "rotate", "--alg", "RS256")["keys"][0]
    assert await published(env) == {second["kid"]: "RS256", first["kid"]: "ES256"}
    assert await accepted(env, old) == everywhere
    async with httpx.AsyncClient(
        base_url=env["SUPABASE_URL"], headers={"apikey": env["SUPABASE_ANON_KEY"]}
    ) as http:
        grant = {"refresh_token": session["refresh_token"]}
        new = (await http.post("/auth/v1/token?grant_type=refresh_token", json=grant)).json()["access_token"]
        keys = KeySet.import_key_set((await http.get("/auth/v1/.well-known/jwks.json")).json())
    assert read_header(new)["kid"] == second["kid"]
    assert jwt.decode(new, keys, algorithms=["RS256"]).claims["email"] == "ada@example.com"
    assert await accepted(env, new) == everywhere
    assert cli.refusal("keys", "revoke", second["kid"])["code"] == "TOFT-KEY-IN-USE"
    assert cli.refusal("keys", "revoke", "nothing")["code"] == "TOFT-KEY-NOT-FOUND"
    assert cli.refusal("keys", "rotate", "--alg", "none")["code"] == "TOFT-USAGE"
    cli.json("keys", "revoke", first["kid"])
    assert await published(env) == {second["kid"]: "RS256"}
    assert await accepted(env, old) == dict.fromkeys(everywhere, False)
    assert await accepted(env, new) == everywhere
    third = cli.json("keys", "rotate", "--alg", "HS256")["keys"][0]
    assert second["kid"] in await published(env)
    assert third["kid"] not in await published(env)
    assert await accepted(env, cli("user", "token", "ada@example.com").stdout.strip()) == everywhere
    assert "verifies" in cli("keys", "list").stdout


async def test_keys_of_a_project(cli: RealCli) -> None:
    """`signing_keys_path` and the keys in `[auth]` are the lease's; a file that holds none is said."""
    rsa = RSAKey.generate_key(2048)
    made = new_signing_key(SystemEntropy())
    keys = [{**rsa.as_dict(private=True), "kid": "r-1", "alg": "RS256"}, json.loads(made.jwk)]
    secret = "a-secret-of-forty-characters-for-testing"
    config = (
        f'[auth]\nsigning_keys_path = "./signing_keys.json"\njwt_secret = "{secret}"\n'
        'secret_key = "sb_secret_own"\n'
    )
    cli.write(
        {"supabase/config.toml": config, "supabase/signing_keys.json": json.dumps(keys), "1_n.sql": MIGRATION}
    )
    lease = cli.json("lease", "create", "--label", "own")
    env = cli.json("lease", "env")
    assert (lease["jwt_secret"], env["SUPABASE_SECRET_KEY"]) == (secret, "sb_secret_own")
    assert await published(env) == {"r-1": "RS256", made.kid: "ES256"}
    token = cli("user", "token", "ada@example.com").stdout.strip()
    assert read_header(token)["kid"] == "r-1"
    assert all((await accepted(env, token)).values())
    claims = KeyRing(secret, [JwtKey("r-1", "RS256", json.dumps(keys[0]))]).read(token).claims
    elsewhere = KeyRing(secret, [JwtKey(made.kid, "ES256", made.jwk, signs=True)]).sign(claims)
    assert all((await accepted(env, elsewhere)).values())
    async with httpx.AsyncClient(base_url=env["SUPABASE_URL"]) as http:
        admin = make_legacy_key("service_role", secret, claims["iat"])
        users = await http.get(
            "/auth/v1/admin/users", headers={"apikey": admin, "authorization": f"Bearer {admin}"}
        )
        assert users.status_code == 200
    cli.write({"supabase/signing_keys.json": "[]x"})
    told = cli.json("lease", "create", "--label", "bad")["notices"]
    assert any("no JSON array of private keys" in notice for notice in told)
