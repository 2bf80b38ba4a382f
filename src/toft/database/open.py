"""A connection to a database that a command was pointed at: a lease as the control API shows it, or a URL."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from toft.errors.database import DatabaseUnreachable
from toft.pg.connection import Connection, connect_by
from toft.pg.dial import Dialer, TcpDialer, UnixDialer
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.url import BadUrl, parse_url
from toft.protocol.environment import database_url


async def open_lease(lease: Mapping[str, object]) -> Connection:
    """A session of the tenant. Raises `DatabaseUnreachable`."""
    return await open_url(database_url(lease))


async def open_url(url: str) -> Connection:
    """A session on any Postgres. Raises `DatabaseUnreachable`, whose words never hold the URL."""
    try:
        target = parse_url(url)
    except BadUrl as error:
        raise DatabaseUnreachable(place="the URL", cause=str(error)) from None
    place = f"{target.host}:{target.port}/{target.database}"
    dialer: Dialer
    if target.is_unix:
        dialer = UnixDialer(target.socket_path)
    else:
        mode = target.options.get("sslmode", "prefer")
        tls = None if mode == "disable" else ssl.create_default_context()
        if tls is not None and mode in ("allow", "prefer", "require"):
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        dialer = TcpDialer(target.host, target.port, tls, is_tls_required=mode not in ("allow", "prefer"))
    try:
        return await connect_by(dialer, target.user, target.password, target.database)
    except (Unreachable, ConnectionLost, PostgresError, OSError) as error:
        raise DatabaseUnreachable(place=place, cause=str(error)) from None
