"""`protocol/environment.py`: the variables that a command finds, and what must never be among them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from toft.protocol import dotenv, environment

LEASE: dict[str, object] = {
    "id": "l_0123456789abcdef",
    "url": "http://127.0.0.1:21000",
    "host": "127.0.0.1",
    "http_port": 21000,
    "db_port": 22000,
    "user": "postgres",
    "password": "p'w$ \"d\\é@/",
    "database": "postgres",
    "anon_key": "anon.jwt.x",
    "service_role_key": "service.jwt.y",
    "publishable_key": "sb_publishable_a",
    "secret_key": "sb_secret_b",
    "jwt_secret": "jwt-secret-c",
    "s3_access_key_id": "s3-id-d",
    "s3_secret_access_key": "s3-secret-e",
}
SECRETS = [
    str(LEASE[name])
    for name in (
        "service_role_key",
        "secret_key",
        "jwt_secret",
        "password",
        "s3_secret_access_key",
        "s3_access_key_id",
    )
]
PROMISED = """
SUPABASE_URL SUPABASE_ANON_KEY SUPABASE_SERVICE_ROLE_KEY SUPABASE_PUBLISHABLE_KEY SUPABASE_SECRET_KEY
SUPABASE_JWT_SECRET DATABASE_URL DIRECT_URL POSTGRES_URL POSTGRES_PRISMA_URL POSTGRES_URL_NON_POOLING
PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE S3_ACCESS_KEY_ID S3_SECRET_ACCESS_KEY S3_ENDPOINT S3_REGION
TOFT_INSTANCE_ID SUPAPOOL_INSTANCE_ID TOFT_MAIL_URL
NEXT_PUBLIC_SUPABASE_URL VITE_SUPABASE_ANON_KEY PUBLIC_SUPABASE_PUBLISHABLE_KEY SVELTE_PUBLIC_SUPABASE_URL
EXPO_PUBLIC_SUPABASE_URL GATSBY_SUPABASE_URL NUXT_PUBLIC_SUPABASE_KEY REACT_APP_SUPABASE_ANON_KEY
"""


def is_browser_name(name: str) -> bool:
    """Whether some bundler puts a variable of this name into browser code."""
    return "PUBLIC" in name.replace("PUBLISHABLE", "") or name.startswith(
        ("VITE_", "SVELTE_", "GATSBY_", "REACT_APP_", "VUE_APP_", "NG_APP_", "EXPO_", "NUXT_", "NEXT_")
    )


def test_every_promised_name_is_set() -> None:
    """A command finds every promised name."""
    assert set(PROMISED.split()) <= set(environment.variables(LEASE))


@pytest.mark.parametrize("name", sorted(environment.NAMES))
def test_no_secret_lands_in_a_browser(name: str) -> None:
    """A name that a bundler copies into browser code holds no secret, nor anything made of one."""
    value = environment.variables(LEASE)[name]
    if is_browser_name(name):
        assert not environment.is_secret(name)
        assert not [secret for secret in (*SECRETS, environment.database_url(LEASE)) if secret in value]
    if not environment.is_secret(name):
        assert not [secret for secret in SECRETS if secret in value]


def test_every_browser_name_is_recognised() -> None:
    """Each prefix of the table is one that the test above takes for a browser's."""
    assert all(is_browser_name(prefix + "SUPABASE_URL") for prefix in environment.BROWSER_PREFIXES)


def test_database_url_carries_password_and_no_tls() -> None:
    """The connection URL escapes the password and declines TLS."""
    url = environment.variables(LEASE)["DATABASE_URL"]
    assert url == (
        "postgresql://postgres:p%27w%24%20%22d%5C%C3%A9%40%2F@127.0.0.1:22000/postgres?sslmode=disable"
    )


def test_what_leads_libpq_elsewhere_is_removed() -> None:
    """An inherited PGHOSTADDR or PGSERVICE does not reach the command; everything else does."""
    inherited = {"PGHOSTADDR": "10.0.0.1", "PGSERVICE": "production", "PGHOST": "db", "KEPT": "yes"}
    result = environment.apply(inherited, LEASE)
    assert "PGHOSTADDR" not in result
    assert "PGSERVICE" not in result
    assert result["PGHOST"] == "127.0.0.1"
    assert result["KEPT"] == "yes"


def test_shell_lines_survive_a_shell(tmp_path: Path) -> None:
    """What `--format shell` prints gives back every value when a POSIX shell evaluates it."""
    values = environment.variables(LEASE)
    script = environment.as_shell(values) + "env -0"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, env={"PATH": os.defpath})
    seen = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)
    assert {name: seen[name] for name in values} == values


def test_dotenv_lines_are_read_back() -> None:
    """What `--format dotenv` prints is read back by a dotenv reader."""
    values = environment.variables({**LEASE, "password": 'with $HOME, "quotes" and # too'})
    read, bad_lines = dotenv.parse(environment.as_dotenv(values))
    assert (read, bad_lines) == (values, [])
