"""The process of a Data API that stands alone: from its settings to SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import uvloop

from toft.http.server import Listener, listen
from toft.rest.alone.admin import admin_handle
from toft.rest.alone.api import DataApi
from toft.rest.alone.settings import BadSetting, from_environment, from_file
from toft.world import SystemClock

_GRACE_SECONDS: Final = 30.0
_MAY_BE_FILES: Final = ("db_uri", "jwt_secret")

#: told once it listens: the URL or socket, and the admin port's URL
type Told = Callable[[str, str | None], None]


class CannotListen(Exception):
    """A port or socket cannot be had; `place` is which."""

    def __init__(self, place: str, cause: str) -> None:
        super().__init__(cause)
        self.place = place
        self.cause = cause


def collect_values(
    config: str | None, environ: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """The settings by name: those that are given win over `PGRST_*`, those over the file.

    A URL or secret that begins with `@` is read from the file that it names. Raises `BadSetting`.
    """
    text = "" if config is None else _read("the configuration file", config)
    values = {**from_file(text), **from_environment(environ), **given}
    for name in _MAY_BE_FILES:
        if values.get(name, "").startswith("@"):
            values[name] = _read(name.replace("_", "-"), values[name][1:]).strip()
    return values


def _read(what: str, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadSetting(f"{what} {path} cannot be read: {cause}") from None


def run(values: Mapping[str, str], tell: Told) -> None:
    """Serve until SIGTERM or SIGINT: then requests that run are answered, and it returns.

    A second signal does not wait for them. SIGUSR1 reads the schema again, SIGUSR2 the configuration, as
    NOTIFY does. Raises `BadSetting`, `CannotListen`, `DatabaseRefuses`.
    """
    # What was imported stays; a request leaves few cycles behind.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    uvloop.run(_serve(values, tell))


async def _serve(values: Mapping[str, str], tell: Told) -> None:
    api = DataApi(values, SystemClock())
    logging.getLogger("toft").setLevel(api.settings.log_level)
    loop = asyncio.get_running_loop()
    signals: asyncio.Queue[int] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number)
    loop.add_signal_handler(signal.SIGUSR1, api.reload_schema)
    loop.add_signal_handler(signal.SIGUSR2, lambda: api.later(loop.create_task(api.reload_config())))
    listeners: list[Listener] = []
    ended = loop.create_task(signals.get())
    try:
        listeners += await _listen(api, tell)
        starting = loop.create_task(api.start())
        api.later(starting)
        api.later(loop.create_task(api.listen_for_changes()))
        await asyncio.wait([ended, starting], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        await ended
        await _wind_down(listeners, loop.create_task(signals.get()))
    finally:
        ended.cancel()
        for listener in listeners:
            await listener.close()
        await api.close()


async def _wind_down(listeners: list[Listener], hurry: asyncio.Task[int]) -> None:
    closing = [asyncio.ensure_future(listener.close(_GRACE_SECONDS)) for listener in listeners]
    done = asyncio.gather(*closing)
    await asyncio.wait([done, hurry], return_when=asyncio.FIRST_COMPLETED)
    for task in (done, hurry):
        task.cancel()
    await asyncio.gather(done, hurry, return_exceptions=True)


async def _listen(api: DataApi, tell: Told) -> list[Listener]:
    settings = api.settings
    if settings.unix_socket is not None:
        path = Path(settings.unix_socket)
        main = await _or_refuse(str(path), listen(api.handle, path=path, mode=settings.unix_socket_mode))
        place = str(path)
    else:
        host, port = settings.host, settings.port
        main = await _or_refuse(_url(host, port), listen(api.handle, host=host, port=port))
        place = _url(host, main.port)
    if settings.admin_port is None:
        tell(place, None)
        return [main]
    host, port = settings.admin_host, settings.admin_port
    try:
        admin = await _or_refuse(_url(host, port), listen(admin_handle(api), host=host, port=port))
    except CannotListen:
        await main.close()
        raise
    tell(place, _url(host, admin.port))
    return [main, admin]


async def _or_refuse(place: str, listening: Awaitable[Listener]) -> Listener:
    try:
        return await listening
    except OSError as error:
        raise CannotListen(place, error.strerror or str(error)) from None


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
