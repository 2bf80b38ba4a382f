"""The spine of the Data API: a request walks through the rooms, once, and nobody turns round.

The one loop: a plan whose schema is not the database's any more is made again with the schema as it is now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toft.http.message import Request, Response
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.wire import Statement
from toft.rest.context import RestContext
from toft.rest.errors import (
    NotInSchema,
    RestError,
    anonymous_disabled,
    bad_token,
    cannot_connect,
    connection_lost,
    internal,
)
from toft.rest.execute import Executor, Stale, Work, fill
from toft.rest.inspect import allow_relation, allow_routine
from toft.rest.parse.skim import Asked, finish, meaning, read_head, skim
from toft.rest.pg_faults import from_postgres
from toft.rest.plan.plan import Allowance, find_table, make_plan, route_call
from toft.rest.prepared import Prepared, known_isolation, prepare
from toft.rest.render.settings import Settings, pre_request, transaction_settings
from toft.rest.request import Act, Preferences
from toft.rest.respond import read_answer, respond, respond_allow, respond_error, respond_refusal
from toft.rest.root import ask_rights, read_rights, respond_root
from toft.rest.schema.freshness import SchemaKeeper
from toft.rest.schema.model import Name, SchemaCache
from toft.rest.schema.store import Known
from toft.rest.timing import Stopwatch
from toft.tokens.caller import Caller, Refusal

#: How often a request is planned when the schema changes under it. The last time nothing is checked.
_TRIES: Final = 3
_ALLOW_ROOT: Final = "OPTIONS,GET,HEAD"


class RestService:
    """The Data API of one database."""

    def __init__(self, context: RestContext) -> None:
        options = self._options = context.options
        self._clock = context.clock
        self._app_settings = tuple((name, value.encode()) for name, value in options.app_settings)
        self._allowance = Allowance(
            options.max_rows, options.aggregates, options.plans, options.requires_filter
        )
        self._executor = Executor(context.pool, options.acquire_seconds)
        self.schema = SchemaKeeper(
            context.pool,
            context.schemas,
            context.clock,
            schemas=options.schemas,
            extra_search_path=options.extra_search_path,
            hoisted_settings=options.hoisted_settings,
        )

    async def handle(
        self, request: Request, caller: Caller | Refusal, path: str, token_seconds: float = 0.0
    ) -> Response:
        """Answer a request for `path`, which is what follows `/rest/v1`.

        token_seconds: how long the caller's token took to check, for Server-Timing.
        """
        if isinstance(caller, Refusal):
            return respond_refusal(caller)
        try:
            watch = Stopwatch(self._clock, token_seconds) if self._options.timing else None
            response = await self._answer(request, caller, path, watch)
            if watch is not None:
                response.headers.append(watch.header())
            return response
        except RestError as error:
            return respond_error(error)
        except PostgresError as error:
            is_anonymous = caller.role == self._options.anon_role
            return respond_error(from_postgres(error, is_anonymous=is_anonymous))
        except Unreachable as error:
            return respond_error(cannot_connect(str(error)))
        except ConnectionLost as error:
            return respond_error(connection_lost(str(error)))
        except RecursionError:
            return respond_error(internal())

    async def ping(self) -> None:
        """Ask the database for a sign of life. Raises `RestError`."""
        try:
            await self._executor.run(Work(Settings(), (Statement(b"select 1"),), None))
        except PostgresError as error:
            raise from_postgres(error, is_anonymous=False) from None

    async def _answer(self, request: Request, caller: Caller, path: str, watch: Stopwatch | None) -> Response:
        if caller.error is not None:
            raise bad_token(caller.error)
        if not caller.role:
            raise anonymous_disabled()
        known = await self.schema.current()
        head = read_head(request.method, request.headers.raw)
        timezones = await self.schema.timezones() if "timezone=" in head.prefer else None
        asked = skim(request.method, path, request.query, head, self._options, timezones)
        body = await request.body.read(self._options.max_body_bytes) if asked.has_body else b""
        finish(asked, head, body, self._options.max_rows)
        for attempt in range(_TRIES):
            is_checked = attempt < _TRIES - 1
            try:
                return await self._try(request, caller, path, asked, known, is_checked, watch)
            except Stale as stale:
                known = await self.schema.renew(stale.version)
            except NotInSchema:
                fresher = await self.schema.fresher(known)
                if fresher is known:
                    raise
                known = fresher
        raise AssertionError("the last try returns or raises")

    async def _try(
        self,
        request: Request,
        caller: Caller,
        path: str,
        asked: Asked,
        known: Known[Prepared],
        is_checked: bool,
        watch: Stopwatch | None,
    ) -> Response:
        """The five steps: plan and render (or find), settle what goes before, execute, respond."""
        if watch is not None:
            watch.lap("parse")
        if asked.act in _DESCRIBING:
            response = self._describe(asked, known.schema)
            if watch is not None:
                watch.lap("response")
            return response
        prepared = None if asked.act is Act.INSPECT_ROOT else self._prepare(asked, known)
        work = self._work(request, caller, path, asked, known.schema, prepared, is_checked)
        if watch is not None:
            watch.lap("plan")
        results = await self._executor.run(work)
        if watch is not None:
            watch.lap("transaction")
        if prepared is None:
            response = respond_root(
                read_rights(results), asked, known.schema, self._options, request.scheme, request.host
            )
        else:
            answer = read_answer(results[0], results[1] if len(results) > 1 else None, prepared.plan)
            canonical = asked.canonical if asked.act is Act.READ else ""
            response = respond(prepared.plan, answer, offset=asked.page.offset, canonical=canonical)
        if watch is not None:
            watch.lap("response")
        return response

    def _prepare(self, asked: Asked, known: Known[Prepared]) -> Prepared:
        """The plan of this shape with its statements, made now if it is the first."""
        prepared = known.find(asked.shape)
        if prepared is None:
            meant, is_shared = meaning(asked)
            prepared = prepare(make_plan(known.schema, meant, self._allowance))
            if is_shared:
                known.keep(asked.shape, prepared)
        return prepared

    def _work(
        self,
        request: Request,
        caller: Caller,
        path: str,
        asked: Asked,
        schema: SchemaCache,
        prepared: Prepared | None,
        is_checked: bool,
    ) -> Work:
        """The transaction that this caller's request is."""
        options, role = self._options, caller.role
        settings = transaction_settings(
            schema=asked.schema,
            extra_search_path=options.extra_search_path,
            role=role,
            role_settings=schema.role_settings.get(role, ()),
            claims_json=caller.claims_json,
            method=request.method,
            path=path,
            headers=request.headers.raw if schema.reads_headers or options.pre_request else None,
            more=self._more_settings(asked.preferences, prepared),
        )
        isolation = known_isolation(schema.role_isolation.get(role))
        if prepared is not None and prepared.isolation is not None:
            isolation = prepared.isolation
        return Work(
            settings,
            self._statements(asked, prepared, role),
            schema.version if is_checked and self.schema.is_versioned else None,
            before=(pre_request(options.pre_request),) if options.pre_request is not None else (),
            is_read_only=prepared.is_read_only if prepared is not None else True,
            isolation=isolation or "read committed",
            rolls_back=_rolls_back(asked.preferences, by_default=options.rolls_back),
        )

    def _more_settings(
        self, preferences: Preferences, prepared: Prepared | None
    ) -> Sequence[tuple[str, bytes]]:
        """The time zone that is preferred, what a function insists on, what the configuration adds."""
        zone, own = preferences.timezone, prepared.settings if prepared is not None else ()
        if zone is None and not own:
            return self._app_settings
        zoned = () if zone is None else (("timezone", zone.encode()),)
        return (*zoned, *own, *self._app_settings)

    def _statements(self, asked: Asked, prepared: Prepared | None, role: str) -> list[Statement]:
        if prepared is None:
            return ask_rights(asked.schema)
        # Row security makes a plan good for one role only.
        key = None
        if self._options.prepares_statements:
            key = b"%b\0%b" % (role.encode(), prepared.name)
        statements = [fill(prepared.main, asked.values, asked.body, key)]
        if prepared.planned_count is not None:
            statements.append(fill(prepared.planned_count, asked.values, asked.body, None))
        return statements

    def _describe(self, asked: Asked, schema: SchemaCache) -> Response:
        """OPTIONS: what a resource allows, whoever asks."""
        if asked.act is Act.DESCRIBE_ROOT:
            return respond_allow(_ALLOW_ROOT)
        if asked.act is Act.DESCRIBE_RELATION:
            return respond_allow(allow_relation(find_table(schema, Name(asked.schema, asked.name))))
        meant, _ = meaning(asked)
        routine, _ = route_call(schema, meant)
        return respond_allow(allow_routine(routine))


_DESCRIBING: Final = {Act.DESCRIBE_RELATION, Act.DESCRIBE_ROUTINE, Act.DESCRIBE_ROOT}


def _rolls_back(preferences: Preferences, *, by_default: bool) -> bool:
    if preferences.transaction is None:
        return by_default
    return preferences.transaction == "rollback"
