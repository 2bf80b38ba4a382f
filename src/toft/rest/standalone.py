"""The Data API by itself, over any Postgres from 13 on: `python -m toft.rest.standalone --db-uri URL`.

It reads upstream's `PGRST_*` variables, stays in the foreground and ends on SIGTERM when the requests that
run have been answered. SIGUSR1 reads the schema again, SIGUSR2 the configuration, as does NOTIFY on the
channel.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import ssl
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from toft.http.message import Request, Response
from toft.http.server import Listener, listen
from toft.pg.connection import Connection, connect_by
from toft.pg.dial import Dialer, TcpDialer, UnixDialer
from toft.pg.pool import Pool
from toft.pg.quote import identifier
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.url import BadUrl, Target, parse_url
from toft.rest.admin import admin_handle
from toft.rest.bearer import Bearers
from toft.rest.context import RestContext
from toft.rest.cors import allow_origin, answer_preflight, is_preflight
from toft.rest.errors import RestError
from toft.rest.pgrst_settings import BadSetting, from_database, from_environment, read_settings
from toft.rest.respond import respond_error
from toft.rest.service import RestService
from toft.world import Clock, SystemClock

_GRACE_SECONDS: Final = 30.0
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

_log = logging.getLogger("toft.rest")


class DataApi:
    """A running Data API: its pool, its service, and the way to make both anew when told."""

    def __init__(self, values: Mapping[str, str], clock: Clock) -> None:
        self._values = dict(values)
        self._clock = clock
        self.settings = read_settings(self._values)
        self.pool = self._make_pool()
        self.service = self._make_service()
        self._bearers = self._make_bearers()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener_connection: Connection | None = None
        self._is_closing = False

    # Making.

    def _make_pool(self) -> Pool[Connection]:
        settings = self.settings
        target = parse_url(settings.db_uri)

        async def dial() -> Connection:
            return await connect_by(_dialer(target), target.user, target.password, target.database)

        return Pool(dial, settings.pool_size, settings.pool_idle_seconds)

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
            caller = self._bearers.identify(request.headers.get(b"authorization"), self._clock.unix())
            seconds = self._clock.mono() - began
            response = await self.service.handle(request, caller, request.raw_path, seconds)
        except RestError as error:
            response = respond_error(error)
        if request.method != "OPTIONS":
            response.headers += allow_origin(request, origins)
        return response

    # Keeping up with the database.

    async def start(self) -> None:
        """Read what the database says about the configuration, and the schema; try until it is there."""
        wait = 1
        while not self._is_closing:
            try:
                await self.reload_config()
                await self.service.schema.current()
            except (RestError, PostgresError, ConnectionLost, Unreachable) as error:
                _log.warning("the database is not available: %s; next try in %d s", error, wait)
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
            else:
                return

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
            self._bearers = self._make_bearers()

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
        """The next request reads the schema again."""
        self.service.schema.forget()

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
                target = parse_url(self.settings.db_uri)
                connection = await connect_by(_dialer(target), target.user, target.password, target.database)
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


def _dialer(target: Target) -> Dialer:
    if target.is_unix:
        return UnixDialer(target.socket_path)
    mode = target.options.get("sslmode", "prefer")
    if mode == "disable":
        return TcpDialer(target.host, target.port)
    context = ssl.create_default_context()
    if mode not in {"verify-ca", "verify-full"}:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif mode == "verify-ca":
        context.check_hostname = False
    return TcpDialer(target.host, target.port, context, is_tls_required=mode not in {"prefer", "allow"})


async def serve(values: Mapping[str, str]) -> None:
    """Serve until SIGTERM or SIGINT. Raises `BadSetting`, OSError."""
    clock = SystemClock()
    api = DataApi(values, clock)
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    loop.add_signal_handler(signal.SIGUSR1, api.reload_schema)
    loop.add_signal_handler(signal.SIGUSR2, lambda: api.later(loop.create_task(api.reload_config())))
    listeners: list[Listener] = []
    try:
        listeners.append(await _listen_main(api))
        place = api.settings.unix_socket or f"http://{api.settings.host}:{listeners[0].port}"
        sys.stderr.write(f"listening on {place}\n")
        sys.stderr.flush()
        if api.settings.admin_port is not None:
            handle = admin_handle(api)
            listeners.append(await listen(handle, host=api.settings.admin_host, port=api.settings.admin_port))
        api.later(loop.create_task(api.start()))
        api.later(loop.create_task(api.listen_for_changes()))
        await ending.wait()
    finally:
        for listener in listeners:
            await listener.close(_GRACE_SECONDS)
        await api.close()


async def _listen_main(api: DataApi) -> Listener:
    settings = api.settings
    if settings.unix_socket is not None:
        return await listen(api.handle, path=Path(settings.unix_socket), mode=settings.unix_socket_mode)
    return await listen(api.handle, host=settings.host, port=settings.port)


def main(arguments: Sequence[str] | None = None) -> int:
    """The process."""
    parser = argparse.ArgumentParser(prog="toft data-api", description="Serve the Data API over a Postgres.")
    parser.add_argument("--db-uri", help="connection URL of the database; else PGRST_DB_URI")
    given = parser.parse_args(arguments)
    values = from_environment(os.environ)
    if given.db_uri:
        values["db_uri"] = given.db_uri
    # What was imported stays; a request leaves few cycles behind.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    try:
        uvloop.run(serve(values))
    except (BadSetting, BadUrl, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
