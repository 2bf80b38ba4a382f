"""What config.toml asks for around the files: settings, grants and secrets before them, buckets after.

What cannot be done is said and left out: the files may well do without.
"""

from __future__ import annotations

from collections.abc import Sequence

from toft.migrate.config import Bucket, ProjectConfig, Secret
from toft.migrate.history import array
from toft.migrate.notice import Notice, warning
from toft.migrate.sessions import Sessions
from toft.pg.connection import Connection
from toft.pg.quote import identifier, literal
from toft.pg.sqlstate import PostgresError
from toft.pg.wire import Statement

_KEEP_TO_OURSELVES = """\
alter default privileges for role postgres in schema public
  revoke select, insert, update, delete on tables from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke usage, select on sequences from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke execute on functions from anon, authenticated, service_role;
"""
_PUT_BUCKET = b"""\
insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
values ($1, $1, $2, $3, $4::text[])
on conflict (id) do update set public = excluded.public, file_size_limit = excluded.file_size_limit,
  allowed_mime_types = excluded.allowed_mime_types
"""


async def set_up(sessions: Sessions, config: ProjectConfig) -> list[Notice]:
    """Before any file. Settings of the database come first: sessions that are opened later have them."""
    notices: list[Notice] = []
    for name, value in config.db_settings:
        try:  # the names come from a list of ours
            admin = await sessions.admin()
            await admin.script(f"alter database postgres set {identifier(name)} to {literal(value)}")
        except PostgresError as error:
            notices.append(warning(f"`db.settings.{name}` is left out: {error.message}"))
    if not config.auto_expose_new_tables:
        await (await sessions.tenant()).script(_KEEP_TO_OURSELVES)
    if config.webhooks_enabled:
        notices += await _bring_pg_net(await sessions.tenant())
    if config.vault:
        notices += await _fill_vault(await sessions.tenant(), config.vault)
    return notices


async def _bring_pg_net(tenant: Connection) -> list[Notice]:
    try:
        await tenant.script("create extension if not exists pg_net with schema extensions")
    except PostgresError as error:
        return [warning(f"`[experimental.webhooks]` is left out: {error.message}")]
    return []


async def _fill_vault(tenant: Connection, secrets: Sequence[Secret]) -> list[Notice]:
    if await tenant.query("select to_regclass('vault.secrets') is null") == [["t"]]:
        return [warning("`[db.vault]` is left out: this database has no vault")]
    notices: list[Notice] = []
    for secret in secrets:
        try:
            known = await tenant.query("select id from vault.secrets where name = $1", secret.name)
            if known:
                await tenant.query("select vault.update_secret($1::uuid, $2)", known[0][0], secret.value)
            else:
                await tenant.query("select vault.create_secret($1, $2)", secret.value, secret.name)
        except PostgresError as error:
            notices.append(warning(f"`db.vault.{secret.name}` is left out: {error.message}"))
    return notices


async def make_buckets(tenant: Connection, buckets: Sequence[Bucket]) -> list[Notice]:
    """As the API would make them, by service_role: the superuser must not meet a tenant's triggers."""
    notices: list[Notice] = []
    for bucket in buckets:
        types, limit = bucket.allowed_mime_types, bucket.file_size_limit_bytes
        values = (
            bucket.id.encode(),
            str(bucket.public).lower().encode(),
            None if limit is None else str(limit).encode(),
            None if types is None else array(types),
        )
        try:
            await tenant.pipeline([Statement(b"set local role service_role"), Statement(_PUT_BUCKET, values)])
        except PostgresError as error:
            notices.append(warning(f"bucket `{bucket.id}` is not made: {error.message}"))
    return notices
