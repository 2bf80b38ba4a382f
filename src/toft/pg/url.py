"""Pure: connection URLs, as libpq reads them: `postgresql://user:password@host:port/database?option=value`."""

from __future__ import annotations

from typing import Final, override
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

DEFAULT_PORT: Final = 5432


class BadUrl(ValueError):
    """The text is not a connection URL. Its message never holds the URL, which may hold a password."""


class Target(msgspec.Struct, frozen=True):
    """Where to connect and as whom. host: a name, an address, or the folder of a Unix socket.

    options: the query part, such as `sslmode`.
    """

    user: str
    password: str
    host: str
    port: int
    database: str
    options: dict[str, str] = {}

    @override
    def __repr__(self) -> str:
        return f"Target({self.user!r} at {self.host!r}:{self.port}/{self.database!r})"

    @property
    def is_unix(self) -> bool:
        return self.host.startswith("/")

    @property
    def socket_path(self) -> str:
        """The Unix socket file, when `is_unix`."""
        return f"{self.host}/.s.PGSQL.{self.port}"


def parse_url(text: str) -> Target:
    """Raises `BadUrl`.

    >>> parse_url("postgres://me:p%40ss@localhost/app?sslmode=disable")
    Target('me' at 'localhost':5432/'app')
    >>> parse_url("postgresql://me@/app?host=/run/pg&port=5433").socket_path
    '/run/pg/.s.PGSQL.5433'
    """
    try:
        parts = urlsplit(text)
        if parts.scheme not in ("postgres", "postgresql"):
            raise BadUrl("a connection URL begins with `postgresql://`")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        port = int(options.pop("port", "") or parts.port or DEFAULT_PORT)
        host = options.pop("host", "") or unquote(parts.hostname or "") or "localhost"
    except BadUrl:
        raise
    except ValueError:
        raise BadUrl("the connection URL cannot be read: is a character in it not percent-encoded?") from None
    user = options.pop("user", "") or unquote(parts.username or "") or "postgres"
    return Target(
        user=user,
        password=options.pop("password", "") or unquote(parts.password or ""),
        host=host,
        port=port,
        database=options.pop("dbname", "") or unquote(parts.path.removeprefix("/")) or user,
        options=options,
    )


def make_url(target: Target) -> str:
    """The URL of `target`, its password included.

    >>> make_url(Target("me", "p@ss", "127.0.0.1", 5433, "app", {"sslmode": "disable"}))
    'postgresql://me:p%40ss@127.0.0.1:5433/app?sslmode=disable'
    """
    login = quote(target.user, safe="") + (":" + quote(target.password, safe="") if target.password else "")
    host = f"[{target.host}]" if ":" in target.host else quote(target.host, safe="")
    query = "&".join(
        f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in target.options.items()
    )
    place = f"{host}:{target.port}/{quote(target.database, safe='')}"
    return f"postgresql://{login}@{place}" + (f"?{query}" if query else "")
