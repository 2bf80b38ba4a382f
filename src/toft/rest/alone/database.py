"""How a Data API that stands alone reaches its database, and what it cannot work with there."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from typing import Final

from toft.pg.connection import Connection, connect_by
from toft.pg.dial import Dialer, TcpDialer, UnixDialer
from toft.pg.sqlstate import PostgresError
from toft.pg.url import BadUrl, Target, parse_url
from toft.rest.alone.settings import BadSetting

OLDEST_MAJOR: Final = 13
#: what no further try mends: a wrong user, a wrong password, no line for us in pg_hba.conf
_REFUSALS: Final = ("28000", "28P01")
_EXISTING: Final = "select nspname from pg_catalog.pg_namespace"

_log = logging.getLogger("toft.rest")


class DatabaseRefuses(Exception):
    """The database does not let us in, or is none that can be served; the message says which."""


class Database:
    """A connection URL, ready to be dialled."""

    def __init__(self, url: str) -> None:
        """Raises `BadSetting`."""
        try:
            self._target = parse_url(url)
            self._dialer = _dialer(self._target)
        except BadUrl as error:
            raise BadSetting(f"db-uri: {error}") from None
        except OSError as error:
            raise BadSetting(f"db-uri: sslrootcert cannot be read: {error.strerror or error}") from None

    async def connect(self) -> Connection:
        """A new connection. Raises `Unreachable`, `PostgresError`, `ConnectionLost`."""
        target = self._target
        return await connect_by(self._dialer, target.user, target.password, target.database)


def _dialer(target: Target) -> Dialer:
    if target.is_unix:
        return UnixDialer(target.socket_path)
    mode = target.options.get("sslmode", "prefer")
    if mode == "disable":
        return TcpDialer(target.host, target.port)
    context = ssl.create_default_context(cafile=target.options.get("sslrootcert") or None)
    if mode not in {"verify-ca", "verify-full"}:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif mode == "verify-ca":
        context.check_hostname = False
    return TcpDialer(target.host, target.port, context, is_tls_required=mode not in {"prefer", "allow"})


async def look_at(connection: Connection, schemas: Sequence[str]) -> None:
    """Check what is known before the first request. Raises `DatabaseRefuses`."""
    version = connection.parameters.get("server_version", "")
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < OLDEST_MAJOR:
        raise DatabaseRefuses(f"this is Postgres {version}; the Data API serves {OLDEST_MAJOR} and later")
    existing = {row[0] for row in await connection.query(_EXISTING)}
    for schema in schemas:
        if schema not in existing:
            _log.warning("the schema %s, which is to be served, is not there", schema)


def check_refusal(error: BaseException) -> None:
    """Raise `DatabaseRefuses` for an error that the next try would meet again."""
    cause = error.__cause__ or error
    if isinstance(cause, PostgresError) and cause.sqlstate in _REFUSALS:
        raise DatabaseRefuses(cause.message) from None
