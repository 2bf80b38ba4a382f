"""All SQL of Storage, as statements for one pipeline: who runs them is said by `scope` in front of them.

Rows that clients see are written as JSON by Postgres, with times to the millisecond and without NULL where
they expect a text, and are passed on as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toft.pg.wire import Statement


class Actor(msgspec.Struct, frozen=True):
    """As whom statements run: the caller, or the service itself (which passes row level security)."""

    role: str
    subject: str
    token: str
    claims_json: bytes


SERVICE = Actor("service_role", "", "", b'{"role":"service_role"}')


class ObjectRow(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of an object that a write decides."""

    bucket: str
    key: str
    version: str
    owner_id: str | None
    metadata: Mapping[str, Any] | None
    user_metadata: Mapping[str, Any] | None


_SCOPE = b"""select
  set_config('role', $1, true), set_config('request.jwt.claim.role', $1, true),
  set_config('request.jwt.claim.sub', $2, true), set_config('request.jwt', $3, true),
  set_config('request.jwt.claims', $4, true), set_config('request.headers', $5, true),
  set_config('request.method', $6, true), set_config('request.path', $7, true),
  set_config('storage.operation', $8, true), set_config('storage.allow_delete_query', 'true', true),
  set_config('search_path', 'storage, public, extensions', true),
  set_config('statement_timeout', '30s', true), set_config('lock_timeout', '5s', true)"""

BEGIN = Statement(b"begin")
ROLLBACK = Statement(b"rollback")
COMMIT = Statement(b"commit")


def scope(actor: Actor, headers_json: bytes, method: str, path: str, operation: str) -> Statement:
    """From here on to the end of the transaction, statements run as this actor."""
    return Statement(
        _SCOPE,
        (
            actor.role.encode(), actor.subject.encode(), actor.token.encode(), actor.claims_json,
            headers_json, method.encode(), path.encode(), operation.encode(),
        ),
        b"scope",
    )  # fmt: skip


def _instant(column: str) -> str:
    return f"""to_char({column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""


_OBJECT_MEMBERS = (
    "'name', o.name, 'bucket_id', o.bucket_id, 'owner', coalesce(o.owner::text, ''),"
    " 'owner_id', coalesce(o.owner_id, ''), 'version', coalesce(o.version, ''), 'id', o.id,"
    f" 'updated_at', {_instant('o.updated_at')}, 'created_at', {_instant('o.created_at')},"
    f" 'last_accessed_at', {_instant('o.last_accessed_at')}, 'metadata', o.metadata,"
    " 'user_metadata', o.user_metadata"
)
_OBJECT_JSON = f"json_build_object({_OBJECT_MEMBERS})"
_BUCKET_MEMBERS = (
    "'id', b.id, 'name', b.name, 'owner', coalesce(b.owner::text, ''), 'public', coalesce(b.public, false),"
    " 'file_size_limit', b.file_size_limit, 'allowed_mime_types', b.allowed_mime_types,"
    f" 'created_at', {_instant('b.created_at')}, 'updated_at', {_instant('b.updated_at')}"
)
_BUCKET_FACTS = (
    "json_build_object('id', b.id, 'public', coalesce(b.public, false), 'file_size_limit', b.file_size_limit,"
    " 'allowed_mime_types', b.allowed_mime_types)"
)


def _named(name: str, actor: Actor, sql: str, *params: str | bytes | None) -> Statement:
    """A statement that the connection keeps prepared, once per role: row security is part of its plan."""
    raw = tuple(param.encode() if isinstance(param, str) else param for param in params)
    return Statement(sql.encode(), raw, f"{name}.{actor.role}".encode())


# Buckets -----------------------------------------------------------------------------------------------


def load_bucket_facts(bucket: str) -> Statement:
    """What the service has to know of a bucket: `{id, public, file_size_limit, allowed_mime_types}`."""
    return _named(
        "bucket-facts", SERVICE, f"select {_BUCKET_FACTS} from storage.buckets b where b.id = $1", bucket
    )


def load_bucket(actor: Actor, bucket: str) -> Statement:
    """A bucket for its reader, without its type."""
    sql = f"select json_build_object({_BUCKET_MEMBERS}) from storage.buckets b where b.id = $1"
    return _named("bucket", actor, sql, bucket)


class BucketPage(msgspec.Struct, frozen=True):
    """Which buckets to list, in which order. limit None: all."""

    sort_column: str = "id"
    descends: bool = False
    limit: int | None = None
    offset: int = 0
    search: str = ""
    shows_type: bool = True


BUCKET_SORT_COLUMNS = ("id", "name", "created_at", "updated_at")


def list_buckets(actor: Actor, page: BucketPage) -> Statement:
    """One JSON array of buckets."""
    if page.sort_column not in BUCKET_SORT_COLUMNS:
        raise ValueError(page.sort_column)
    members = _BUCKET_MEMBERS + (", 'type', b.type" if page.shows_type else "")
    order = f"{page.sort_column} {'desc' if page.descends else 'asc'}"
    sql = (
        f"select coalesce(json_agg(json_build_object({members}) order by b.{order}), '[]') from ("
        "select * from storage.buckets where $1 = '' or name ilike '%' || regexp_replace($1, '([\\\\%_])',"
        f" '\\\\\\1', 'g') || '%' order by {order} limit $2::bigint offset $3::bigint) b"
    )
    limit = None if page.limit is None else str(page.limit)
    return Statement(sql.encode(), (page.search.encode(), _raw(limit), str(page.offset).encode()))


def insert_bucket(actor: Actor, values: Mapping[str, Any]) -> Statement:
    """A new bucket: members id, name, owner_id, public, file_size_limit, allowed_mime_types."""
    sql = (
        "insert into storage.buckets (id, name, owner, owner_id, public, file_size_limit, allowed_mime_types)"
        " select v ->> 'id', v ->> 'name', (v ->> 'owner')::uuid, v ->> 'owner_id',"
        " (v ->> 'public')::boolean, (v ->> 'file_size_limit')::bigint,"
        " case when jsonb_typeof(v -> 'allowed_mime_types') = 'array'"
        " then array(select jsonb_array_elements_text(v -> 'allowed_mime_types')) end"
        " from (select $1::jsonb as v) as given"
    )
    return _named("bucket-insert", actor, sql, msgspec.json.encode(values))


def update_bucket(actor: Actor, bucket: str, changes: Mapping[str, Any]) -> Statement:
    """Set what is given of public, file_size_limit, allowed_mime_types; null clears. One row or none."""
    sql = (
        "update storage.buckets set"
        " public = case when v ? 'public' then (v ->> 'public')::boolean else public end,"
        " file_size_limit = case when v ? 'file_size_limit' then (v ->> 'file_size_limit')::bigint"
        " else file_size_limit end,"
        " allowed_mime_types = case when not v ? 'allowed_mime_types' then allowed_mime_types"
        " when jsonb_typeof(v -> 'allowed_mime_types') = 'array'"
        " then array(select jsonb_array_elements_text(v -> 'allowed_mime_types')) end"
        " from (select $2::jsonb as v) as given where id = $1 returning id"
    )
    return _named("bucket-update", actor, sql, bucket, msgspec.json.encode(changes))


def lock_bucket(bucket: str) -> Statement:
    """The bucket's id and whether it has objects; nobody can add one until the transaction ends."""
    sql = (
        "select b.id, exists (select from storage.objects o where o.bucket_id = b.id)"
        " from storage.buckets b where b.id = $1 for update"
    )
    return _named("bucket-lock", SERVICE, sql, bucket)


def delete_bucket(actor: Actor, bucket: str) -> Statement:
    """One row or none."""
    return _named("bucket-delete", actor, "delete from storage.buckets where id = $1 returning id", bucket)


def count_objects(bucket: str, up_to: int) -> Statement:
    """How many objects there are, counted no further than needed."""
    sql = "select count(*) from (select from storage.objects where bucket_id = $1 limit $2::bigint) counted"
    return _named("bucket-count", SERVICE, sql, bucket, str(up_to))


def delete_all_objects(bucket: str) -> Statement:
    """Empty a bucket of what was there before; the versions."""
    sql = "delete from storage.objects where bucket_id = $1 and created_at <= now() returning version"
    return _named("bucket-empty", SERVICE, sql, bucket)


# Objects -----------------------------------------------------------------------------------------------


def load_object(actor: Actor, bucket: str, key: str) -> Statement:
    """An object as JSON, with everything that is shown or served."""
    sql = f"select {_OBJECT_JSON} from storage.objects o where o.bucket_id = $1 and o.name = $2"
    return _named("object", actor, sql, bucket, key)


def find_objects(actor: Actor, bucket: str, keys: Sequence[str]) -> Statement:
    """Which of these keys there are."""
    sql = (
        "select o.name from storage.objects o where o.bucket_id = $1"
        " and o.name = any(array(select jsonb_array_elements_text($2::jsonb)))"
    )
    return _named("objects-find", actor, sql, bucket, msgspec.json.encode(keys))


_INSERT = (
    "insert into storage.objects (bucket_id, name, version, owner_id, owner, metadata, user_metadata)"
    " values ($1, $2, $3, $4, $5::uuid, $6::jsonb, $7::jsonb)"
)
_REPLACE = (
    " on conflict (name, bucket_id) do update set version = excluded.version,"
    " owner_id = coalesce(excluded.owner_id, objects.owner_id),"
    " owner = coalesce(excluded.owner, objects.owner),"
    " metadata = excluded.metadata, user_metadata = excluded.user_metadata"
)


def probe_insert(actor: Actor, row: ObjectRow) -> Statement:
    """May this actor create the object? No RETURNING, so that policies for INSERT alone are enough."""
    return _named("object-probe", actor, _INSERT, *_values(row))


def probe_upsert(actor: Actor, row: ObjectRow) -> Statement:
    """May this actor create or replace the object?"""
    return _named("object-probe-upsert", actor, f"{_INSERT}{_REPLACE} returning *", *_values(row))


def lock_key(bucket: str, key: str) -> Statement:
    """Wait for other writers of this key, up to the lock timeout."""
    sql = "select pg_advisory_xact_lock(hashtextextended($1, 0))"
    return _named("key-lock", SERVICE, sql, f"storage:{bucket}/{key}")


def load_version(bucket: str, key: str) -> Statement:
    """The version that a write is about to replace."""
    sql = "select version from storage.objects where bucket_id = $1 and name = $2 for update"
    return _named("object-version", SERVICE, sql, bucket, key)


def save_object(row: ObjectRow) -> Statement:
    """Make the object visible, in place of an older one. Its JSON."""
    sql = f"{_INSERT}{_REPLACE} returning (select {_OBJECT_JSON} from (select objects.*) o)"
    return _named("object-save", SERVICE, sql, *_values(row))


def move_object(
    actor: Actor, source: tuple[str, str], target: tuple[str, str], owner_id: str | None, owner: str | None
) -> Statement:
    """Another bucket and key for a row, and its mover as owner. One row or none."""
    sql = (
        "update storage.objects set bucket_id = $3, name = $4, owner_id = $5, owner = $6::uuid"
        " where bucket_id = $1 and name = $2 returning *"
    )
    return _named("object-move", actor, sql, *source, *target, owner_id, owner)


def delete_object(actor: Actor, bucket: str, key: str) -> Statement:
    """The version, when the actor could see and delete it."""
    sql = "delete from storage.objects where bucket_id = $1 and name = $2 returning version"
    return _named("object-delete", actor, sql, bucket, key)


def delete_objects(actor: Actor, bucket: str, keys: Sequence[str]) -> Statement:
    """All of these that the actor can see and delete: JSON and version each."""
    sql = (
        "delete from storage.objects o where o.bucket_id = $1"
        " and o.name = any(array(select jsonb_array_elements_text($2::jsonb)))"
        f" returning {_OBJECT_JSON}, o.version"
    )
    return _named("objects-delete", actor, sql, bucket, msgspec.json.encode(keys))


def find_orphans(versions: Sequence[str]) -> Statement:
    """Which of these versions belong to no object and to no part of one."""
    sql = (
        "select g.version from jsonb_array_elements_text($1::jsonb) as g (version)"
        " where not exists (select from storage.objects o where o.version = g.version)"
        " and not exists (select from storage.s3_multipart_uploads_parts p where p.version = g.version)"
    )
    return _named("orphans", SERVICE, sql, msgspec.json.encode(versions))


def end_old_uploads(seconds: float) -> Statement:
    """Forget uploads in parts that were begun so long ago; their ids."""
    sql = (
        "delete from storage.s3_multipart_uploads"
        " where created_at < now() - make_interval(secs => $1::double precision) returning id"
    )
    return _named("uploads-old", SERVICE, sql, str(seconds))


class Listing(msgspec.Struct, frozen=True):
    """One level of a bucket to list."""

    bucket: str
    prefix: str
    limit: int
    offset: int
    search: str
    sort_column: str
    sort_order: str


def list_level(actor: Actor, listing: Listing) -> Statement:
    """One JSON array of files and folders, in order."""
    sql = (
        "select coalesce(json_agg(json_build_object('name', s.name, 'id', s.id,"
        f" 'updated_at', {_instant('s.updated_at')}, 'created_at', {_instant('s.created_at')},"
        f" 'last_accessed_at', {_instant('s.last_accessed_at')}, 'metadata', s.metadata)"
        " order by s.ordinality), '[]')"
        " from storage.search($1, $2, $3::integer, 1, $4::integer, $5, $6, $7) with ordinality s"
    )
    return _named(
        "list", actor, sql, listing.prefix, listing.bucket, str(listing.limit), str(listing.offset),
        listing.search, listing.sort_column, listing.sort_order,
    )  # fmt: skip


class FlatListing(msgspec.Struct, frozen=True):
    """A page of a bucket with whole keys. delimiter: folders are told once. after: the last entry before."""

    bucket: str
    prefix: str
    has_folders: bool
    limit: int
    column: str
    order: str
    after: str = ""
    after_time: str = ""


_ENTRY_JSON = (
    "coalesce(json_agg(json_build_object('key', s.key, 'name', s.name, 'id', s.id,"
    f" 'updated_at', {_instant('s.updated_at')}, 'created_at', {_instant('s.created_at')},"
    f" 'last_accessed_at', {_instant('s.last_accessed_at')}, 'metadata', s.metadata)"
    " order by s.ordinality), '[]')"
)


def list_flat(actor: Actor, page: FlatListing) -> Statement:
    """One JSON array of entries in order; folders have no id."""
    if page.column not in ("name", "created_at", "updated_at"):
        raise ValueError(page.column)
    level = str(page.prefix.count("/") + 1)
    if page.has_folders and page.column == "name":
        sql = (
            f"select {_ENTRY_JSON} from (select split_part(name, '/', $5::integer) as key, * from"
            " storage.list_objects_with_delimiter($1, $2, '/', $3::integer, '', $4, $6) with ordinality) s"
        )
        return _named(
            "list-folders", actor, sql, page.bucket, page.prefix, str(page.limit), page.after, level,
            page.order,
        )  # fmt: skip
    if page.has_folders:
        sql = (
            f"select {_ENTRY_JSON} from storage.search_by_timestamp($2, $1, $3::integer, $5::integer, $4, $6,"
            " $7, $8) with ordinality s"
        )
        return _named(
            "list-folders-by-time", actor, sql, page.bucket, page.prefix, str(page.limit),
            page.after.removesuffix("/"), level, page.order, page.column, page.after_time,
        )  # fmt: skip
    sign, direction = (">", "asc") if page.order == "asc" else ("<", "desc")
    at = f"date_trunc('milliseconds', o.{page.column})" if page.column != "name" else "'epoch'::timestamptz"
    sql = (
        f"select {_ENTRY_JSON} from (select split_part(o.name, '/', -1) as key, o.*,"
        f' row_number() over (order by {at} {direction}, o.name collate "C" {direction}) as ordinality'
        ' from storage.objects o where o.bucket_id = $1 and o.name collate "C" >= $2'
        ' and o.name collate "C" < $2 || chr(1114111)'
        f" and ($3 = '' or ({at}, o.name collate \"C\") {sign}"
        " (coalesce(nullif($4, '')::timestamptz, 'epoch'), $3))"
        f' order by {at} {direction}, o.name collate "C" {direction} limit $5::integer) s'
    )
    return _named(
        f"list-flat-{page.column}-{direction}", actor, sql, page.bucket, page.prefix, page.after,
        page.after_time, str(page.limit),
    )  # fmt: skip


def _values(row: ObjectRow) -> tuple[str | bytes | None, ...]:
    return (
        row.bucket, row.key, row.version, row.owner_id, as_uuid(row.owner_id),
        None if row.metadata is None else msgspec.json.encode(row.metadata),
        None if row.user_metadata is None else msgspec.json.encode(row.user_metadata),
    )  # fmt: skip


def as_uuid(subject: str | None) -> str | None:
    """The older owner column takes UUIDs only."""
    if subject is None or len(subject) != 36:
        return None
    parts = subject.split("-")
    is_hex = all(character in "0123456789abcdefABCDEF" for part in parts for character in part)
    return subject if is_hex and [len(part) for part in parts] == [8, 4, 4, 4, 12] else None


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
