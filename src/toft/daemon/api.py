"""The control API: the table of `protocol/routes.py`, each route answered by one method.

A held lease is a stream. Its life is one generator: take, tell, wait, and whatever ends the generator (the
client's end, the lease's, the daemon's) goes through the same `finally`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import msgspec

from toft import __version__
from toft.backends import keep, take
from toft.backends.acts.create import secrets_of
from toft.backends.backend import Backend
from toft.backends.context import Context
from toft.backends.fault import explain
from toft.backends.recipe import question_of
from toft.backends.supply import Supply
from toft.daemon.forks import ForkApi
from toft.daemon.keys import KeysApi
from toft.daemon.logs import LogsApi
from toft.daemon.problem import problem, refused
from toft.daemon.pushes import PushApi
from toft.errors.daemon import BadRequest, DaemonStopping, VersionMismatch
from toft.errors.project import ProjectUnknown
from toft.errors.shape import ToftError
from toft.http.message import BodyTooLarge, Request, Response
from toft.leases import lifecycle
from toft.leases.lease import Lease
from toft.protocol import lease as wire
from toft.protocol.routes import (
    ROUTES,
    Collected,
    EngineCard,
    Engines,
    Gc,
    Greeting,
    Leases,
    Metrics,
    NoRoute,
    Route,
    Stop,
    Stopped,
    find_route,
)
from toft.telemetry.events import LeaseRefused
from toft.telemetry.metrics import Metrics as Counters

_JSON = (b"content-type", b"application/json")
_LINES = (b"content-type", b"application/x-ndjson")
_encoder = msgspec.json.Encoder()
#: A stream on which nothing happens while its lease is being made says so (an empty line) this often.
HEARTBEAT_SECONDS = 15.0

type Method = Callable[[Request, dict[str, str], Any], Awaitable[Response]]


class Api:
    """Answers requests. `ready` is set when everything an earlier daemon left was taken over."""

    def __init__(
        self,
        context: Context,
        supply: Supply,
        counters: Counters,
        *,
        collect: Callable[[bool], Awaitable[Collected]],
        stop: Callable[[bool], Awaitable[Stopped]],
    ) -> None:
        self._context = context
        self._supply = supply
        self._counters = counters
        self._collect = collect
        self._stop = stop
        self._started_at = context.clock.now().isoformat(timespec="milliseconds")
        self.ready = asyncio.Event()
        #: why the daemon does not come up
        self.fault: ToftError | None = None
        self.is_stopping = False
        forks = ForkApi(context, lambda taken: self._describe(taken.lease, taken.backend, taken.credential))
        others = {**forks.methods(), **PushApi(context).methods()}
        self._methods: dict[str, Method] = {
            "hello": self._hello,
            "put_project": self._put_project,
            "create_lease": self._create_lease,
            "list_leases": self._list_leases,
            "show_lease": self._show_lease,
            "hold_lease": self._hold_lease,
            "renew_lease": self._renew_lease,
            "release_lease": self._release_lease,
            **{name: _answering(name, method) for name, method in others.items()},
            **{name: _answering(name, method) for name, method in KeysApi(context).methods().items()},
            **{name: _answering(name, method) for name, method in LogsApi(context).methods().items()},
            "list_engines": self._list_engines,
            "collect": self._collect_rubbish,
            "stop": self._stop_daemon,
            "show_metrics": self._show_metrics,
        }

    async def handle(self, request: Request) -> Response:
        """One request in, one response out."""
        try:
            route, names = find_route(request.method, request.raw_path)
        except NoRoute as error:
            if not error.allowed:
                return refused(404, "there is no such resource")
            response = refused(405, "this resource does not have that method")
            response.headers.append((b"allow", ", ".join(error.allowed).encode()))
            return response
        try:
            message = await _read(route, request)
            if route.name != "hello":
                if self.is_stopping:
                    raise DaemonStopping()
                await self.ready.wait()
                if self.fault is not None:
                    raise self.fault
            return await self._methods[route.name](request, names, message)
        except ToftError as error:
            return problem(self._refuse(error) if route.name == "create_lease" else error)
        except BodyTooLarge:
            return refused(413, f"the body is larger than {route.max_body_bytes} bytes")
        except OSError as error:
            self._context.tell.fault(route.name, error)
            return problem(explain(error, self._context.places.home, route.name))

    # Leases.

    async def _create_lease(
        self, request: Request, names: dict[str, str], message: wire.CreateLease
    ) -> Response:
        if message.version != __version__:
            raise VersionMismatch(client=message.version, daemon=__version__)
        lifecycle.check_ttl(message.ttl_seconds)
        _check_ports(message)
        question = question_of(message)
        if question.project is not None:
            recipe = self._context.projects.known(question)
            is_cached = recipe is not None and self._context.templates.has(recipe.key)
            if not is_cached and not self._context.projects.has_bundle(question.project):
                raise ProjectUnknown(digest=question.project)
        if message.hold:
            return Response(200, [_LINES], self._new_stream(message))
        taken = await take.take(self._context, message, _say_nothing)
        return _answer(201, self._describe(taken.lease, taken.backend, taken.credential))

    async def _new_stream(self, message: wire.CreateLease) -> AsyncGenerator[bytes]:
        """Progress while one waits, then the lease, then its life."""
        progress: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        taking = loop.create_task(take.take(self._context, message, progress.put_nowait))
        try:
            async with aclosing(_heed(progress, taking)) as lines:
                async for line in lines:
                    yield line
        except BaseException:
            await _abandon(taking)
            if not taking.cancelled() and taking.exception() is None:
                keep.end(self._context, taking.result().lease, lifecycle.HOLDER_GONE)
            raise
        error = taking.exception()
        if error is not None:
            yield _line(wire.StreamLine(error=self._refuse(error).to_json()))
            return
        taken = taking.result()
        card = self._describe(taken.lease, taken.backend, taken.credential)
        async with aclosing(self._life(taken.lease, card)) as lines:
            async for line in lines:
                yield line

    def _refuse(self, error: BaseException) -> ToftError:
        """A lease that did not come to be: told in the log, and to whoever asked."""
        if isinstance(error, ToftError):
            self._context.tell(LeaseRefused(code=error.code, cause=str(error)))
            return error
        self._context.tell.fault("create_lease", error)
        return explain(error, self._context.places.home, "create_lease")

    async def _life(self, lease: Lease, card: wire.Lease) -> AsyncGenerator[bytes]:
        """The lease while its stream is open. When the stream closes, a held lease ends."""
        leases = self._context.leases
        stream = leases.open_stream(lease.id)
        try:
            yield _line(wire.StreamLine(lease=card))
            while not stream.ended.done():
                notice = asyncio.ensure_future(stream.notices.get())
                await asyncio.wait((notice, stream.ended), return_when=asyncio.FIRST_COMPLETED)
                if notice.done():
                    yield _line(wire.StreamLine(notice=notice.result()))
                notice.cancel()
            reason = stream.ended.result()
            if reason is not None:
                yield _line(wire.StreamLine(ended=reason))
        finally:
            left = leases.close_stream(lease.id, stream)
            if left is not None and not self.is_stopping:
                keep.end(self._context, left, lifecycle.HOLDER_GONE)

    async def _hold_lease(self, request: Request, names: dict[str, str], message: wire.HoldLease) -> Response:
        lease = keep.hold(self._context, names["id"], message.credential)
        card = self._describe(lease, keep.backend_of(self._context, lease))
        return Response(200, [_LINES], self._life(lease, card))

    async def _renew_lease(
        self, request: Request, names: dict[str, str], message: wire.RenewLease
    ) -> Response:
        lease = keep.renew(self._context, names["id"], message)
        return _answer(200, self._describe(lease, keep.backend_of(self._context, lease)))

    async def _release_lease(self, request: Request, names: dict[str, str], message: None) -> Response:
        keep.end(self._context, self._context.leases.get(names["id"]), lifecycle.RELEASED)
        return Response(204)

    async def _list_leases(self, request: Request, names: dict[str, str], message: None) -> Response:
        cards = [
            self._summarise(lease, backend)
            for lease in self._context.leases.live()
            if (backend := self._context.estate.get(lease.backend_id)) is not None
        ]
        return _answer(200, Leases(leases=cards))

    async def _show_lease(self, request: Request, names: dict[str, str], message: None) -> Response:
        lease = self._context.leases.get(names["id"])
        return _answer(200, self._describe(lease, keep.backend_of(self._context, lease)))

    # Projects, engines, the daemon itself.

    async def _hello(self, request: Request, names: dict[str, str], message: None) -> Response:
        home = str(self._context.places.home)
        return _answer(200, Greeting(__version__, os.getpid(), home, self._started_at))

    async def _put_project(self, request: Request, names: dict[str, str], message: None) -> Response:
        projects = self._context.projects
        digest = names["digest"]
        received = projects.place_to_receive(digest, self._context.entropy.bytes(6).hex())
        size = 0
        try:
            with received.open("wb") as file:
                async for chunk in request.body:
                    size += len(chunk)
                    if size > _PUT_PROJECT.max_body_bytes:
                        raise BodyTooLarge
                    file.write(chunk)
            await projects.admit(received, digest)
        finally:
            received.unlink(missing_ok=True)
        return Response(204)

    async def _list_engines(self, request: Request, names: dict[str, str], message: None) -> Response:
        found = await self._context.engines.all()
        cards = [
            EngineCard(
                id=engine.id,
                major=engine.major,
                version=engine.version,
                source=engine.source,
                bin_dir=str(engine.bin_dir),
                extensions=list(engine.extensions),
                notes=list(engine.notes),
            )
            for engine in found
        ]
        return _answer(200, Engines(engines=cards))

    async def _collect_rubbish(self, request: Request, names: dict[str, str], message: Gc) -> Response:
        return _answer(200, await self._collect(message.templates))

    async def _stop_daemon(self, request: Request, names: dict[str, str], message: Stop) -> Response:
        return _answer(200, await self._stop(message.purge))

    async def _show_metrics(self, request: Request, names: dict[str, str], message: None) -> Response:
        shelves = self._supply.shelves()
        gauges: dict[str, float] = {
            "leases": len(self._context.leases.live()),
            "backends": self._context.estate.count(),
            "templates": len(self._context.templates.usable()),
        }
        pools = {
            shelf.kind: {
                "ready": shelf.ready,
                "starting": shelf.starting,
                "cloned": shelf.cloned,
                "cloning": shelf.cloning,
                "waiting": shelf.waiting,
            }
            for shelf in shelves
        }
        return _answer(200, Metrics(counters=self._counters.read(), gauges=gauges, pools=pools))

    # What is told about a lease.

    def _summarise(self, lease: Lease, backend: Backend) -> wire.LeaseSummary:
        return wire.LeaseSummary(**self._facts(lease, backend))

    def _describe(self, lease: Lease, backend: Backend, credential: str | None = None) -> wire.Lease:
        secrets = secrets_of(backend)
        return wire.Lease(
            **self._facts(lease, backend),
            user="postgres",
            password=secrets.passwords["postgres"],
            database="postgres",
            anon_key=secrets.anon_key,
            service_role_key=secrets.service_role_key,
            publishable_key=secrets.publishable_key,
            secret_key=secrets.secret_key,
            jwt_secret=secrets.jwt_secret,
            s3_access_key_id=secrets.s3_access_key_id,
            s3_secret_access_key=secrets.s3_secret_access_key,
            credential=credential,
        )

    def _facts(self, lease: Lease, backend: Backend) -> dict[str, Any]:
        clock = self._context.clock
        due = lifecycle.deadline(lease, is_connected=self._context.leases.is_connected(lease.id))
        left = lease.ttl_seconds if due is None else max(0.0, due - clock.mono())
        expires_at = clock.now() + timedelta(seconds=left)
        return {
            "id": lease.id,
            "backend_id": lease.backend_id,
            "label": lease.label,
            "state": "active" if backend.failure is None else "failed",
            "created_at": lease.created_at,
            "expires_at": expires_at.isoformat(timespec="milliseconds"),
            "ttl_seconds": lease.ttl_seconds,
            "held": lease.is_held,
            "host": "127.0.0.1",
            "http_port": backend.http_port,
            "db_port": backend.db_port,
            "url": f"http://127.0.0.1:{backend.http_port}",
            "notices": [*lease.notices, *([backend.failure] if backend.failure else [])],
            "template": lease.template,
        }


_PUT_PROJECT, _ = find_route("PUT", "/v1/projects/0")


async def _read(route: Route, request: Request) -> Any:
    """The message of a request, of the type that the route asks for; None where it asks for none."""
    if route.request is None:
        return None
    raw = await request.body.read(route.max_body_bytes)
    try:
        return msgspec.json.decode(raw or b"{}", type=route.request)
    except msgspec.MsgspecError as error:
        raise BadRequest(cause=str(error)) from None


async def _heed(progress: asyncio.Queue[str], work: asyncio.Task[Any]) -> AsyncGenerator[bytes]:
    """Lines of progress until the work is done, whatever came of it."""
    while not work.done():
        news = asyncio.ensure_future(progress.get())
        try:
            await asyncio.wait((news, work), timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if news.done():
                yield _line(wire.StreamLine(progress=news.result()))
            elif not work.done():
                yield b"\n"
        finally:
            news.cancel()


async def _abandon(work: asyncio.Task[Any]) -> None:
    work.cancel()
    await asyncio.wait([work])


def _check_ports(message: wire.CreateLease) -> None:
    for port in (message.http_port, message.db_port):
        if port is not None and not 0 < port < 65536:
            raise BadRequest(cause=f"{port} is no port")
    if message.http_port is not None and message.http_port == message.db_port:
        raise BadRequest(cause="the two ports of a backend must differ")


def _answering(name: str, work: Callable[[Request, dict[str, str], Any], Awaitable[Any]]) -> Method:
    """A method that answers with a message, by the status that its route names."""
    [status] = [route.status for route in ROUTES if route.name == name]

    async def answer(request: Request, names: dict[str, str], message: Any) -> Response:
        made = await work(request, names, message)
        return Response(status) if made is None else _answer(status, made)

    return answer


def _answer(status: int, message: Any) -> Response:
    return Response(status, [_JSON], _encoder.encode(message))


def _line(message: wire.StreamLine) -> bytes:
    return _encoder.encode(message) + b"\n"


def _say_nothing(text: str) -> None:
    pass
