"""SQL that only this door needs: keys page by page with any delimiter, and uploads in parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toft.pg.wire import Statement
from toft.storage.records import SERVICE, Actor

_INSTANT = """'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'"""


def _named(name: str, actor: Actor, sql: str, *params: str | bytes | None) -> Statement:
    raw = tuple(param.encode() if isinstance(param, str) else param for param in params)
    return Statement(sql.encode(), raw, f"s3-{name}.{actor.role}".encode())


def list_keys(actor: Actor, bucket: str, prefix: str, delimiter: str, after: str, limit: int) -> Statement:
    """One JSON array of `{name, id, metadata, updated_at}` in key order; folders have no id.

    after: the last entry before, a folder with its delimiter at the end.
    """
    members = (
        "json_build_object('name', s.name, 'id', s.id, 'metadata', s.metadata,"
        f" 'updated_at', to_char(s.updated_at at time zone 'utc', {_INSTANT}))"
    )
    if delimiter:
        sql = (
            f"select coalesce(json_agg({members} order by s.ordinality), '[]') from"
            " storage.list_objects_with_delimiter($1, $2, $3, $4::integer, '', $5) with ordinality s"
        )
        return _named("folders", actor, sql, bucket, prefix, delimiter, str(limit), after)
    sql = (
        f"select coalesce(json_agg({members} order by s.name collate \"C\"), '[]') from ("
        ' select o.* from storage.objects o where o.bucket_id = $1 and o.name collate "C" >= $2'
        ' and o.name collate "C" < $2 || chr(1114111) and o.name collate "C" > $3'
        ' order by o.name collate "C" limit $4::integer) s'
    )
    return _named("keys", actor, sql, bucket, prefix, after, str(limit))


def existing_keys(bucket: str, keys: list[str]) -> Statement:
    """Which of these there are, whoever asks."""
    sql = (
        "select o.name from storage.objects o where o.bucket_id = $1"
        " and o.name = any(array(select jsonb_array_elements_text($2::jsonb)))"
    )
    return _named("existing", SERVICE, sql, bucket, msgspec.json.encode(keys))


def begin_upload(
    upload_id: str,
    place: tuple[str, str],
    owner_id: str | None,
    metadata: Mapping[str, Any],
    user_metadata: Mapping[str, Any] | None,
) -> Statement:
    """An upload in parts; its id is the version that the object will have."""
    sql = (
        "insert into storage.s3_multipart_uploads"
        " (id, version, upload_signature, bucket_id, key, owner_id, metadata, user_metadata)"
        " values ($1, $1, '', $2, $3, $4, $5::jsonb, $6::jsonb)"
    )
    return _named(
        "begin", SERVICE, sql, upload_id, *place, owner_id, msgspec.json.encode(metadata),
        None if user_metadata is None else msgspec.json.encode(user_metadata),
    )  # fmt: skip


def load_upload(upload_id: str, place: tuple[str, str]) -> Statement:
    """JSON `{owner_id, metadata, user_metadata}` of an upload in parts."""
    sql = (
        "select json_build_object('owner_id', u.owner_id, 'metadata', u.metadata,"
        " 'user_metadata', u.user_metadata)"
        " from storage.s3_multipart_uploads u where u.id = $1 and u.bucket_id = $2 and u.key = $3"
    )
    return _named("load", SERVICE, sql, upload_id, *place)


def sum_other_parts(upload_id: str, number: int) -> Statement:
    """How many bytes the other parts have."""
    sql = (
        "select coalesce(sum(size), 0) from storage.s3_multipart_uploads_parts"
        " where upload_id = $1 and part_number <> $2::integer"
    )
    return _named("sum", SERVICE, sql, upload_id, str(number))


def replace_part(upload_id: str, number: int) -> Statement:
    """Forget a part that is sent again; the versions of its bytes."""
    sql = (
        "delete from storage.s3_multipart_uploads_parts"
        " where upload_id = $1 and part_number = $2::integer returning version"
    )
    return _named("part-replace", SERVICE, sql, upload_id, str(number))


def add_part(
    upload_id: str, place: tuple[str, str], number: int, version: str, etag: str, size: int
) -> Statement:
    """A part that has arrived. Nothing when the upload is gone."""
    sql = (
        "with counted as (update storage.s3_multipart_uploads set in_progress_size = in_progress_size"
        " + $7::bigint where id = $1 returning id, owner_id)"
        " insert into storage.s3_multipart_uploads_parts"
        " (upload_id, bucket_id, key, part_number, version, etag, size, owner_id)"
        " select c.id, $2, $3, $4::integer, $5, $6, $7::bigint, c.owner_id from counted c returning id"
    )
    return _named("part-add", SERVICE, sql, upload_id, *place, str(number), version, etag, str(size))


def load_parts(upload_id: str) -> Statement:
    """Number, etag, size and version of each part, the newest of each number, in order."""
    sql = (
        "select distinct on (p.part_number) p.part_number, p.etag, p.size, p.version"
        " from storage.s3_multipart_uploads_parts p where p.upload_id = $1"
        " order by p.part_number, p.created_at desc"
    )
    return _named("parts", SERVICE, sql, upload_id)


def end_upload(upload_id: str) -> Statement:
    """Forget an upload and its parts; the versions of their bytes."""
    sql = (
        "with parts as (delete from storage.s3_multipart_uploads_parts where upload_id = $1"
        " returning version),"
        " gone as (delete from storage.s3_multipart_uploads where id = $1)"
        " select version from parts"
    )
    return _named("end", SERVICE, sql, upload_id)


def list_parts(actor: Actor, upload_id: str, after: int, limit: int) -> Statement:
    """One JSON array of parts as the actor sees them."""
    sql = (
        "select coalesce(json_agg(json_build_object('number', s.part_number, 'etag', s.etag, 'size', s.size,"
        f" 'at', to_char(s.created_at at time zone 'utc', {_INSTANT})) order by s.part_number), '[]') from ("
        " select distinct on (p.part_number) p.* from storage.s3_multipart_uploads_parts p"
        " where p.upload_id = $1 and p.part_number > $2::integer"
        " order by p.part_number, p.created_at desc limit $3::integer) s"
    )
    return _named("parts-list", actor, sql, upload_id, str(after), str(limit))


def list_uploads(
    actor: Actor, bucket: str, prefix: str, delimiter: str, after: tuple[str, str], limit: int
) -> Statement:
    """One JSON array of uploads in parts as the actor sees them; a folder's key ends with the delimiter."""
    sql = (
        "select coalesce(json_agg(json_build_object('key', s.key, 'id', s.id,"
        f" 'at', to_char(s.created_at at time zone 'utc', {_INSTANT})) order by s.ordinality), '[]')"
        " from storage.list_multipart_uploads_with_delimiter($1, $2, $3, $4::integer, $5, $6)"
        " with ordinality s"
    )
    return _named("uploads", actor, sql, bucket, prefix, delimiter or "\x01", str(limit), *after)
