"""The Data API by itself: its pool, its service, its keys, and what makes them anew when told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from toft.http.message import Request, Response
from toft.pg.connection import Connection
from toft.pg.pool import Pool
from toft.pg.quote import identifier
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.rest.alone.bearer import Bearers
from toft.rest.alone.cors import allow_origin, answer_preflight, is_preflight
from toft.rest.alone.database import Database, check_refusal, look_at
from toft.rest.alone.settings import BadSetting, from_database, read_settings
from toft.rest.context import RestContext
from toft.rest.errors import RestError
from toft.rest.respond import respond_error
from toft.rest.service import RestService
from toft.world import Clock

_LONGEST_WAIT_SECONDS: Final = 32
_SETTINGS: Final = """
select split_part(s, '=', 1), substr(s, strpos(s, '=') + 1)
from pg_catalog.pg_db_role_setting d, unnest(d.setconfig) s
where d.setrole = pg_catalog.to_regrole(pg_catalog.quote_ident(session_user))
  and d.setdatabase in (
    0, (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database()))
  and s like 'pgrst.%'
order by d.setdatabase
"""
_PRE_CONFIG_SETTINGS: Final = "select name, setting from pg_catalog.pg_settings where name like 'pgrst.%'"
_GATEWAY_TIMEOUT: Final = 504
_FAILURES: Final = 500

_log = logging.getLogger("toft.rest")


class DataApi:
    """A running Data API. Making one raises `BadSetting`; it connects when it is asked for something."""

    def __init__(self, values: Mapping[str, str], clock: Clock) -> None:
        self._values = dict(values)
        self._clock = clock
        settings = self.settings = read_settings(self._values)
        self._database = Database(settings.db_uri)
        self.pool: Pool[Connection] = Pool(
            self._database.connect, settings.pool_size, settings.pool_idle_seconds
        )
        self.service = self._make_service()
        self.bearers = self._make_bearers()
        #: requests that waited in vain for a connection
        self.timeouts = 0
        self._reading: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener_connection: Connection | None = None
        self._is_closing = False

    # Making.

    def _make_service(self) -> RestService:
        return RestService(RestContext(self.pool, self._clock, self.settings.options))

    def _make_bearers(self) -> Bearers:
        settings = self.settings
        return Bearers(
            settings.keys,
            anon_role=settings.options.anon_role,
            audience=settings.audience,
            role_path=settings.role_path,
            kept=settings.tokens_kept,
        )

    # Answering.

    async def handle(self, request: Request) -> Response:
        """Answer one request of the main port."""
        response = await self._answer(request)
        status = response.status
        self.timeouts += status == _GATEWAY_TIMEOUT
        if status >= self.settings.logs_from_status:
            query = f"?{request.query}" if request.query else ""
            _log.log(
                logging.ERROR if status >= _FAILURES else logging.INFO,
                *("%s %s%s %d", request.method, request.raw_path, query, status),
            )
        trace = self.settings.options.trace_header
        if trace is not None:
            name = trace.lower().encode()
            response.headers.append((name, (request.headers.get(name) or "").encode("latin-1")))
        return response

    async def _answer(self, request: Request) -> Response:
        origins = self.settings.allowed_origins
        if is_preflight(request):
            return answer_preflight(request, origins)
        began = self._clock.mono()
        try:
            caller = self.bearers.identify(request.headers.get(b"authorization"), self._clock.unix())
            seconds = self._clock.mono() - began
            response = await self.service.handle(request, caller, request.raw_path, seconds)
        except RestError as error:
            response = respond_error(error)
        if request.method != "OPTIONS":
            response.headers += allow_origin(request, origins)
        return response

    # Keeping up with the database.

    async def start(self) -> None:
        """Read what the database says about the configuration, and the schema; try until it is there.

        Raises `DatabaseRefuses` when trying again would not help.
        """
        wait = 1
        while not self._is_closing:
            try:
                async with self.pool.lend() as connection:
                    await look_at(connection, self.settings.options.schemas)
                await self.reload_config()
            except (PostgresError, ConnectionLost, Unreachable) as error:
                check_refusal(error)
                _log.warning("the database is not available: %s; next try in %d s", error, wait)
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
            else:
                break
        await self._read_schema()

    async def reload_config(self) -> None:
        """Read the settings that the database holds; what they change takes effect at once."""
        if not self.settings.reads_database_config:
            return
        async with self.pool.lend() as connection:
            rows = await connection.query(_SETTINGS)
            found = {name: value or "" for name, value in rows if name is not None}
            if self.settings.pre_config is not None:
                found |= await self._pre_config(connection, self.settings.pre_config)
        try:
            settings = read_settings({**self._values, **from_database(found)})
        except BadSetting as error:
            _log.error("the configuration in the database is not used: %s", error)
            return
        if msgspec.structs.asdict(settings) != msgspec.structs.asdict(self.settings):
            self.settings = settings
            self.service = self._make_service()
            self.bearers = self._make_bearers()

    async def _pre_config(self, connection: Connection, function: str) -> dict[str, str]:
        """What a function of the user's sets, as long as its transaction lasts."""
        name = ".".join(identifier(part) for part in function.split("."))
        await connection.script("begin")
        try:
            await connection.script(f"select {name}()")
            rows = await connection.query(_PRE_CONFIG_SETTINGS)
        finally:
            await connection.script("rollback")
        return {name: value or "" for name, value in rows if name is not None}

    def reload_schema(self) -> None:
        """Read the schema again, now; requests wait for it."""
        self.service.schema.forget()
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_schema())
            self.later(self._reading)

    async def _read_schema(self) -> None:
        wait = 1
        while not self._is_closing:
            try:
                await self.service.schema.current()
            except RestError as error:
                _log.warning("the schema cannot be read: %s; next try in %d s", error, wait)
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
            else:
                return

    def later(self, work: asyncio.Task[None]) -> None:
        """Keep a task until it is done."""
        self._tasks.add(work)
        work.add_done_callback(self._tasks.discard)

    async def listen_for_changes(self) -> None:
        """Hear NOTIFY on the channel, on a connection of its own, for as long as this lives."""
        channel = self.settings.channel
        wait = 1
        while channel is not None and not self._is_closing:
            lost = asyncio.Event()
            try:
                connection = await self._database.connect()
                self._listener_connection = connection
                connection.on_lost = lost.set
                connection.on_notification = self._notified
                await connection.script(f"listen {identifier(channel)}")
                # What was said while nobody listened is not known.
                self.reload_schema()
                wait = 1
                await lost.wait()
            except (PostgresError, ConnectionLost, Unreachable):
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT_SECONDS)

    def _notified(self, _channel: str, payload: str) -> None:
        if payload in {"", "reload schema"}:
            self.reload_schema()
        elif payload == "reload config":
            self.later(asyncio.get_running_loop().create_task(self.reload_config()))

    async def close(self) -> None:
        """End everything."""
        self._is_closing = True
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._listener_connection is not None:
            self._listener_connection.close()
        self.pool.close()
