"""What the Data API sends to Postgres for a subject: rendered by its own rooms, without a version check."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toft.bench.subjects import Subject
from toft.http.message import HeaderList
from toft.pg.connection import Connection
from toft.pg.wire import Statement
from toft.protocol.worker import RestSettings
from toft.rest.options import from_settings
from toft.rest.parse.skim import finish, meaning, read_head, skim
from toft.rest.plan.plan import Allowance, make_plan
from toft.rest.prepared import prepare
from toft.rest.render.settings import settings_statement
from toft.rest.schema.build import build
from toft.rest.schema.load import load_facts
from toft.rest.schema.model import SchemaCache
from toft.rest.work import Sender, call_work
from toft.tokens.caller import Caller

OPTIONS = from_settings(RestSettings())
ALLOWANCE = Allowance(OPTIONS.max_rows, OPTIONS.aggregates, OPTIONS.plans, OPTIONS.requires_filter)
_SERVER_VERSION = 18


async def load_schema(connection: Connection) -> SchemaCache:
    """The schema cache of a database, as a gateway worker loads it."""
    facts = await load_facts(
        connection,
        schemas=OPTIONS.schemas,
        extra_search_path=OPTIONS.extra_search_path,
        hoisted_settings=OPTIONS.hoisted_settings,
        is_versioned=False,
        server_version=_SERVER_VERSION,
    )
    return build(facts, OPTIONS.schemas)


def header_fields(subject: Subject) -> HeaderList:
    """The header fields that the Data API looks at."""
    fields: HeaderList = [(b"accept", b"application/json")]
    if subject.body:
        fields.append((b"content-type", b"application/json"))
    if subject.prefer:
        fields.append((b"prefer", subject.prefer.encode()))
    return fields


def statements_of(subject: Subject, schema: SchemaCache, claims: dict[str, str]) -> Sequence[Statement]:
    """Settings and statement, all values as parameters."""
    fields = header_fields(subject)
    head = read_head(subject.method, fields)
    query = subject.query.replace("{n}", "77")
    asked = skim(subject.method, subject.path, query, head, OPTIONS, None)
    finish(asked, head, subject.body, OPTIONS.max_rows)
    prepared = prepare(make_plan(schema, meaning(asked)[0], ALLOWANCE))
    caller = Caller(
        role="authenticated", claims=claims, claims_json=msgspec.json.encode(claims), token="token"
    )
    sender = Sender(caller, subject.method, subject.path, fields)
    work = call_work(sender, asked, prepared, schema, OPTIONS, None)
    settings = settings_statement(work.settings, version=None, seen=None, is_read_only=work.is_read_only)
    # pgbench needs to see the values that are encoded already.
    plain = msgspec.structs.replace(settings, params=work.settings.values, more=None)
    return [plain, *work.statements]
