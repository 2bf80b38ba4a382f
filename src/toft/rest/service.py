"""The spine of the Data API: a request walks through the rooms, once, and nobody turns round.

The one loop: a plan whose schema is not the database's any more is made again with the schema as it is now.
"""

from __future__ import annotations

from typing import Final

from toft.http.message import BodyTooLarge, Request, Response
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.wire import Statement
from toft.rest.context import RestContext
from toft.rest.errors import (
    NotInSchema,
    RestError,
    anonymous_disabled,
    bad_token,
    body_too_large,
    cannot_connect,
    connection_lost,
    internal,
)
from toft.rest.execute import Executor, Stale
from toft.rest.explain.explainer import Case, Explainer
from toft.rest.inspect import allow_relation, allow_routine
from toft.rest.parse.skim import Asked, finish, meaning, read_head, skim
from toft.rest.pg_faults import from_postgres
from toft.rest.plan.plan import Allowance, find_table, make_plan, route_call
from toft.rest.prepared import Prepared, prepare
from toft.rest.render.settings import Settings
from toft.rest.request import Act
from toft.rest.respond import read_answer, respond, respond_allow, respond_error, respond_refusal
from toft.rest.root import read_rights, respond_root
from toft.rest.schema.freshness import SchemaKeeper
from toft.rest.schema.model import Name, SchemaCache
from toft.rest.schema.store import Known
from toft.rest.timing import Stopwatch
from toft.rest.work import Sender, Work, call_work, root_work
from toft.tokens.caller import Caller, Refusal

#: So long a connection that was made ready waits for its first request.
WARM_SECONDS: Final = 900.0
#: Whether the schema is checked, try by try. It may change under a request; the last time it is let be.
_TRIES: Final = (True, True, False)
_UNTIMED: Final = Stopwatch()
_ALLOW_ROOT: Final = "OPTIONS,GET,HEAD"


class RestService:
    """The Data API of one database."""

    def __init__(self, context: RestContext) -> None:
        options = self._options = context.options
        self._clock = context.clock
        self._pool = context.pool
        self._allowance = Allowance(
            options.max_rows, options.aggregates, options.plans, options.requires_filter
        )
        self._executor = Executor(context.pool, options.acquire_seconds)
        self._explainer: Explainer | None = None
        if options.explains:
            self._explainer = Explainer(
                self._executor.run, options, context.entropy, context.explanations_url
            )
        self.schema = SchemaKeeper(
            context.pool,
            context.schemas,
            context.clock,
            schemas=options.schemas,
            extra_search_path=options.extra_search_path,
            hoisted_settings=options.hoisted_settings,
        )

    async def handle(
        self,
        request: Request,
        caller: Caller | Refusal,
        path: str,
        token_seconds: float = 0.0,
        *,
        is_trial: bool = False,
    ) -> Response:
        """Answer a request for `path`, which is what follows `/rest/v1`.

        token_seconds: how long the caller's token took to check, for Server-Timing. is_trial: nothing that it
        does stays, and the answer links to what decided it.
        """
        if isinstance(caller, Refusal):
            return respond_refusal(caller)
        is_timed = self._options.timing
        watch = Stopwatch(self._clock, token_seconds) if is_timed else _UNTIMED
        try:
            response = await self._answer(
                request, Sender(caller, request.method, path, request.headers.raw, is_trial), watch
            )
        except RestError as error:
            return respond_error(error)
        except PostgresError as error:
            is_anonymous = caller.role == self._options.anon_role
            return respond_error(from_postgres(error, is_anonymous=is_anonymous))
        except Unreachable as error:
            return respond_error(cannot_connect(str(error)))
        except ConnectionLost as error:
            return respond_error(connection_lost(str(error)))
        except BodyTooLarge:
            return respond_error(body_too_large(self._options.max_body_bytes))
        except RecursionError:
            return respond_error(internal())
        if is_timed:
            response.headers.append(watch.header())
        return response

    async def _answer(self, request: Request, sender: Sender, watch: Stopwatch) -> Response:
        if sender.caller.error is not None:
            raise bad_token(sender.caller.error)
        if not sender.caller.role:
            raise anonymous_disabled()
        known = self.schema.known or await self.schema.current()
        asked = await self._read(request, sender)
        watch.lap("parse")
        try:
            for is_checked in _TRIES:
                try:
                    response = await self._walk(request, sender, asked, known, watch, is_checked=is_checked)
                except Stale as stale:
                    known = await self.schema.renew(stale.version)
                except NotInSchema:
                    fresher = await self.schema.fresher(known)
                    if fresher is known or not is_checked:
                        raise
                    known = fresher
                else:
                    watch.lap("response")
                    if sender.is_trial and self._explainer is not None:
                        await self._explainer.tell(Case(sender, asked, known.schema), response)
                    return response
        except (NotInSchema, PostgresError) as error:
            if self._explainer is None:
                raise
            raise await self._explained(error, Case(sender, asked, known.schema)) from error
        raise AssertionError("the last try returns or raises")

    async def _explained(self, error: NotInSchema | PostgresError, case: Case) -> RestError:
        """The answer to a failure, with all that can be found out about it."""
        cause = error if isinstance(error, PostgresError) else None
        told: RestError = (
            from_postgres(error, is_anonymous=case.role == self._options.anon_role)
            if isinstance(error, PostgresError)
            else error
        )
        if self._explainer is not None:
            await self._explainer.explain(case, told, cause)
        return told

    def explanation(self, name: str) -> bytes | None:
        """What a link in `Toft-Explain` leads to, as JSON; the latest are kept."""
        return self._explainer.find(name) if self._explainer is not None else None

    async def _walk(
        self,
        request: Request,
        sender: Sender,
        asked: Asked,
        known: Known[Prepared],
        watch: Stopwatch,
        *,
        is_checked: bool,
    ) -> Response:
        """Plan and render, or find what was; execute; respond."""
        schema, options = known.schema, self._options
        version = schema.version if is_checked and self.schema.is_versioned else None
        if asked.target.act in _DESCRIBING:
            return _describe(asked, schema)
        if asked.target.act is Act.INSPECT_ROOT:
            work = root_work(sender, asked, schema, options, version)
            watch.lap("plan")
            results = await self._executor.run(work)
            watch.lap("transaction")
            return respond_root(read_rights(results), asked, schema, options, request.scheme, request.host)
        prepared = self._prepare(asked, known)
        work = call_work(sender, asked, prepared, schema, options, version)
        watch.lap("plan")
        results = await self._executor.run(work)
        watch.lap("transaction")
        return respond(
            prepared.plan, read_answer(results, prepared.plan), asked.page.offset, asked.shown_back
        )

    async def _read(self, request: Request, sender: Sender) -> Asked:
        """The request, skimmed."""
        options = self._options
        head = read_head(sender.method, sender.headers)
        timezones = await self.schema.timezones() if "timezone=" in head.prefer else None
        asked = skim(sender.method, sender.path, request.query, head, options, timezones)
        body = await request.body.read(options.max_body_bytes) if asked.target.has_body else b""
        finish(asked, head, body, options.max_rows)
        return asked

    def _prepare(self, asked: Asked, known: Known[Prepared]) -> Prepared:
        """The plan of this shape with its statements, made now if it is the first."""
        prepared = known.find(asked.shape)
        if prepared is None:
            meant, is_shared = meaning(asked)
            prepared = prepare(make_plan(known.schema, meant, self._allowance))
            if is_shared:
                known.keep(asked.shape, prepared)
        return prepared

    async def warm(self) -> None:
        """Do as a first request would, so that the next one finds everything at hand.

        Its connection stays until that one comes, for a while. Raises `RestError` and what Postgres says.
        """
        options, role = self._options, self._options.anon_role
        if role is None:
            return
        known = await self.schema.current()
        head = read_head("GET", [])
        asked = skim("GET", "/", "", head, options, None)
        finish(asked, head, b"", options.max_rows)
        sender = Sender(Caller(role=role, claims={}, claims_json=b"{}", token=None), "GET", "/", [])
        version = known.schema.version if self.schema.is_versioned else None
        try:
            await self._executor.run(root_work(sender, asked, known.schema, options, version))
        except Stale as stale:
            await self.schema.renew(stale.version)
        self._pool.keep_free(WARM_SECONDS)

    async def ping(self) -> None:
        """Ask the database for a sign of life. Raises `RestError`."""
        try:
            await self._executor.run(Work(Settings(), (Statement(b"select 1"),)))
        except PostgresError as error:
            raise from_postgres(error, is_anonymous=False) from None


_DESCRIBING: Final = {Act.DESCRIBE_RELATION, Act.DESCRIBE_ROUTINE, Act.DESCRIBE_ROOT}


def _describe(asked: Asked, schema: SchemaCache) -> Response:
    """OPTIONS: what a resource allows, whoever asks."""
    if asked.target.act is Act.DESCRIBE_ROOT:
        return respond_allow(_ALLOW_ROOT)
    if asked.target.act is Act.DESCRIBE_RELATION:
        return respond_allow(allow_relation(find_table(schema, Name(asked.target.schema, asked.target.name))))
    meant, _ = meaning(asked)
    routine, _ = route_call(schema, meant)
    return respond_allow(allow_routine(routine))
