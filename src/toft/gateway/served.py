"""One backend as it is served here: its two ports, the way of a request to a service, what it has done."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import msgspec

from toft import __version__
from toft.errors.backend import PortTaken
from toft.gateway.absent import answer_functions, answer_realtime
from toft.gateway.caller import decide_caller, word_refusal
from toft.gateway.journal import Journal
from toft.gateway.route import (
    EXPLAIN_PREFIX,
    MAIL_PREFIX,
    Door,
    Route,
    Service,
    decide_route,
    does_own_cors,
)
from toft.gateway.services import Services, Surroundings
from toft.gateway.splice import SqlPort
from toft.gateway.upstream import Upstream
from toft.http.cors import allow_any_origin, is_preflight, preflight_headers
from toft.http.message import Headers, Request, Response
from toft.http.server import Listener, listen
from toft.http.sockets import bind_port
from toft.mailbox.box import Box
from toft.protocol.worker import BackendSpec, BackendUsage
from toft.tokens.caller import Refusal

#: Nothing listens on anything but loopback.
HOST: Final = "127.0.0.1"

_JSON: Final = (b"content-type", b"application/json; charset=utf-8")


class Served:
    """A backend that is attached to this worker."""

    def __init__(
        self, spec: BackendSpec, surroundings: Surroundings, ask_to_wake: Callable[[], None]
    ) -> None:
        self.spec = spec
        self.upstream = Upstream(spec.socket_path, is_awake=spec.is_awake, ask_to_wake=ask_to_wake)
        self._surroundings = surroundings
        self._loop = asyncio.get_running_loop()
        #: what its services have said about faults
        self.journal = Journal(spec.backend_id, surroundings.clock)
        #: outlives a reset: whoever waits for a mail waits for the lease's
        self._box = Box(surroundings.clock, surroundings.entropy)
        self._services = Services(spec, self.upstream, surroundings, self._box, self.journal)
        self._sql = SqlPort(self.upstream, spec.max_sql_connections)
        self._http: Listener | None = None
        self._active_at = self._loop.time()
        self._requests = 0
        self._warming: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen on both ports, or on neither. Raises `PortTaken`."""
        await self._listen(*_bind(self.spec.http_port, self.spec.db_port))

    def cut(self, reason: str) -> None:
        """Close ports and connections and cancel what runs, at once."""
        if self._warming is not None:
            self._warming.cancel()
        self._sql.close()
        self._sql.cut(reason)
        self._services.close()
        self.upstream.set_awake(is_awake=False, failure=reason)
        if self._http is not None:
            self._http.cut()

    async def wait_quiet(self) -> None:
        """Wait until nothing runs any more that was cut."""
        if self._http is not None:
            await self._http.wait_quiet()

    async def update(self, spec: BackendSpec) -> None:
        """Serve what a new spec says: another cluster under the same ports, or the same on other ports.

        Raises `PortTaken`, and stays as it is.
        """
        old = self.spec
        if spec == msgspec.structs.replace(old, is_awake=spec.is_awake):
            if spec.is_awake != self.upstream.is_awake:
                self.set_awake(is_awake=spec.is_awake)
            return
        if spec == _with_keys_of(old, spec):
            self.spec = spec
            self._services.rekey(spec)
            if spec.is_awake != self.upstream.is_awake:
                self.set_awake(is_awake=spec.is_awake)
            return
        sockets = _bind(
            spec.http_port if spec.http_port != old.http_port else None,
            spec.db_port if spec.db_port != old.db_port else None,
        )
        self.spec = spec
        self._services.close()
        self._services = Services(spec, self.upstream, self._surroundings, self._box, self.journal)
        self._sql.max_connections = spec.max_sql_connections
        if (spec.socket_path, spec.edition) != (old.socket_path, old.edition):
            self._sql.cut("the backend was reset", spares_waiting=True)
        self.upstream.move(spec.socket_path, is_awake=spec.is_awake)
        await self._listen(*sockets)

    def set_awake(self, *, is_awake: bool, failure: str | None = None) -> None:
        """The postmaster runs, or has stopped."""
        if not is_awake:
            self._services.drop_connections()
            self._sql.cut(failure or "the backend went to sleep", spares_waiting=True)
        self.upstream.set_awake(is_awake=is_awake, failure=failure)

    def warm(self) -> None:
        """Make ready for the first request: the Data API then has its connection, and knows the schema."""
        if self._warming is None and not self._requests and self.upstream.is_awake:
            self._warming = self._loop.create_task(self._services.warm())

    def usage(self) -> BackendUsage:
        """What it has done."""
        in_flight = self._http.in_flight if self._http is not None else 0
        idle = self._loop.time() - max(self._active_at, self._sql.active_at)
        return BackendUsage(
            idle_seconds=0.0 if in_flight else max(idle, 0.0),
            sql_connections=self._sql.connection_count,
            http_in_flight=in_flight,
            requests=self._requests,
        )

    async def handle(self, request: Request) -> Response:
        """The way of every request that arrives on the HTTP port."""
        self._requests += 1
        self._active_at = self._loop.time()
        route = decide_route(request.raw_path)
        if isinstance(route, Route) and route.service != "rest" and not self._has(route.service):
            route = Door.NOTHING
        if isinstance(route, Route) and does_own_cors(route):
            return await self._serve(request, route)
        if request.method == "OPTIONS" and is_preflight(request.method, request.headers):
            return Response(200, preflight_headers(request.headers))
        if isinstance(route, Door):
            response = await self._open(route, request)
        else:
            response = await self._serve(request, route)
        if request.headers.get(b"origin") is not None:
            allow_any_origin(response.headers)
        return response

    async def _open(self, door: Door, request: Request) -> Response:
        match door:
            case Door.MAIL:
                path = request.raw_path.removeprefix(MAIL_PREFIX)
                return await self._services.mailbox.handle(request, path)
            case Door.EXPLANATION:
                return self._explain(request.raw_path.removeprefix(EXPLAIN_PREFIX + "/"))
            case Door.REALTIME:
                return answer_realtime(request)
            case Door.FUNCTIONS:
                return answer_functions()
            case _:
                return _answer_door(door)

    def _explain(self, name: str) -> Response:
        explanation = self._services.explanation(name)
        if explanation is None:
            return _answer_door(Door.NOTHING)
        return Response(200, [_JSON, (b"cache-control", b"no-store")], explanation)

    def _has(self, service: Service) -> bool:
        """Whether the project has this service switched on."""
        settings = self.spec.settings
        return settings.auth.enabled if service == "auth" else settings.storage.enabled

    async def _serve(self, request: Request, route: Route) -> Response:
        caller = decide_caller(request, route, self._services.keys, self._surroundings.clock.unix())
        if isinstance(caller, Refusal):
            return word_refusal(caller)
        if route.profile is not None:
            profile = route.profile.encode()
            fields = ((b"content-profile", profile), (b"accept-profile", profile))
            request.headers = Headers([*fields, *request.headers.raw])
        try:
            return await self._services.handle(request, caller, route)
        finally:
            self._active_at = self._loop.time()

    async def _listen(self, http: socket.socket | None, sql: socket.socket | None) -> None:
        """Serve on new sockets; what listened before is closed, with the connections that came that way."""
        if sql is not None:
            self._sql.close()
            await self._sql.listen(sql)
        if http is not None:
            before, self._http = self._http, await listen(self.handle, sock=http)
            if before is not None:
                before.cut()


def _with_keys_of(old: BackendSpec, new: BackendSpec) -> BackendSpec:
    """The old spec with the new one's signing keys: equal to the new one, when that is all that changed."""
    secrets = msgspec.structs.replace(old.secrets, jwt_keys=new.secrets.jwt_keys)
    return msgspec.structs.replace(old, secrets=secrets, is_awake=new.is_awake)


def _answer_door(door: Door) -> Response:
    match door:
        case Door.WELCOME:
            status, told = 200, {"name": "toft", "version": __version__}
        case Door.HEALTH:
            status, told = 200, {"status": "ok"}
        case _:
            status, told = 404, {"message": "no Route matched with those values"}
    return Response(status, [_JSON], msgspec.json.encode(told))


def _bind(*ports: int | None) -> list[socket.socket | None]:
    """A listening socket for each port, or none at all. Raises `PortTaken`."""
    with ExitStack() as undo:
        sockets: list[socket.socket | None] = []
        for port in ports:
            if port is None:
                sockets.append(None)
                continue
            try:
                sock = bind_port(HOST, port)
            except OSError:
                raise PortTaken(port=port) from None
            undo.callback(sock.close)
            sockets.append(sock)
        undo.pop_all()
        return sockets
