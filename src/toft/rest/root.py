"""Pure: the root of the Data API: a description of all that the caller may use."""

from __future__ import annotations

from typing import Final

import msgspec

from toft.http.message import HeaderList, Response
from toft.pg.wire import Result, Statement
from toft.rest.openapi import Place, describe
from toft.rest.options import RestOptions
from toft.rest.parse.headers import content_type, parse_accept
from toft.rest.parse.skim import Asked
from toft.rest.plan.negotiate import negotiate_root
from toft.rest.schema.model import SchemaCache

_RELATIONS: Final = b"""
select coalesce(pg_catalog.json_agg(c.relname), '[]')
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relkind in ('r', 'p', 'v', 'm', 'f') and (
  pg_catalog.pg_has_role(c.relowner, 'usage')
  or pg_catalog.has_table_privilege(c.oid, 'select, insert, update, delete, truncate, references, trigger')
  or pg_catalog.has_any_column_privilege(c.oid, 'select, insert, update, references'))
"""
_ROUTINES: Final = b"""
select coalesce(pg_catalog.json_agg(p.oid::bigint), '[]')
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname = $1 and pg_catalog.has_function_privilege(p.oid, 'execute')
"""
_COMMENT: Final = b"""
select pg_catalog.obj_description(n.oid, 'pg_namespace') from pg_catalog.pg_namespace n where n.nspname = $1
"""
_names = msgspec.json.Decoder(frozenset[str])
_oids = msgspec.json.Decoder(frozenset[int])


class Rights(msgspec.Struct, frozen=True):
    """What the caller may use in a schema, and the schema's comment."""

    relations: frozenset[str]
    routines: frozenset[int]
    comment: str | None


def ask_rights(schema: str) -> list[Statement]:
    """The questions, to be asked as the caller."""
    name = schema.encode()
    return [Statement(sql, (name,), sql) for sql in (_RELATIONS, _ROUTINES, _COMMENT)]


def read_rights(results: list[Result]) -> Rights:
    """The answers to `ask_rights`."""
    relations, routines, comments = (result.rows for result in results)
    comment = comments[0][0] if comments else None
    return Rights(
        _names.decode(relations[0][0] or b"[]"),
        _oids.decode(routines[0][0] or b"[]"),
        None if comment is None else comment.decode(),
    )


def respond_root(
    rights: Rights, asked: Asked, schema: SchemaCache, options: RestOptions, scheme: str, host: str
) -> Response:
    """The description as a response. Raises PGRST107."""
    media = negotiate_root(parse_accept(asked.target.accept))
    sees_all = options.openapi_mode == "ignore-privileges"
    tables = [
        table
        for table in schema.tables.values()
        if table.schema == asked.target.schema and (sees_all or table.name in rights.relations)
    ]
    routines = [
        routine
        for overloads in schema.routines.values()
        for routine in overloads
        if routine.schema == asked.target.schema and (sees_all or routine.oid in rights.routines)
    ]
    place = Place.of_url(options.openapi_server_url) if options.openapi_server_url else Place(scheme, host)
    body = b""
    if not asked.target.is_head:
        described = describe(
            schema, tables, routines, rights.comment, place, has_security=options.openapi_security
        )
        body = msgspec.json.encode(described)
    headers: HeaderList = [(b"content-type", content_type(media).encode())]
    if not asked.target.is_head:
        headers.append((b"content-length", b"%d" % len(body)))
    if asked.target.has_profile:
        headers.append((b"content-profile", asked.target.schema.encode()))
    return Response(200, headers, body)
