"""The two connections of a run: the tenant's, on which all happens, and the superuser's, rarely opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from toft.migrate.elevate import TENANT
from toft.pg.connection import Connection

ADMIN = "supabase_admin"

#: a lease has no logical decoding, which a project's publications do not need
_EXPECTED = "is insufficient to publish logical changes"

type Connect = Callable[[str], Awaitable[Connection]]
type Report = Callable[[str], None]


class Sessions:
    """connect: opens a connection as the given role. report: takes a few words for whoever looks on."""

    def __init__(self, connect: Connect, report: Report) -> None:
        self._connect = connect
        self._tenant: Connection | None = None
        self._admin: Connection | None = None
        self._has_createrole: bool | None = None
        self.report = report

    async def tenant(self) -> Connection:
        """As `postgres`, always the same: what a file leaves set in the session meets the next one."""
        if self._tenant is None:
            self._tenant = await self._connect(TENANT)
            self._tenant.on_notice = self._on_notice
        return self._tenant

    async def admin(self) -> Connection:
        """As the superuser. Nothing of a file may reach it but what `elevate.py` has written."""
        if self._admin is None:
            self._admin = await self._connect(ADMIN)
        return self._admin

    async def may_create_roles(self) -> bool:
        """Whether `postgres` has CREATEROLE, asked once."""
        if self._has_createrole is None:
            tenant = await self.tenant()
            [[answer]] = await tenant.query(
                "select rolcreaterole from pg_catalog.pg_roles where rolname = $1", TENANT
            )
            self._has_createrole = answer == "t"
        return self._has_createrole

    def end_transaction(self) -> None:
        """The tenant's transaction ends, with its connection if it must, so that it holds no lock."""
        if self._tenant is not None and self._tenant.is_in_transaction:
            self._tenant.close()

    def close(self) -> None:
        for connection in (self._tenant, self._admin):
            if connection is not None:
                connection.close()

    def _on_notice(self, fields: dict[str, str]) -> None:
        """A server's NOTICE is for those who look on there; a WARNING is for everybody."""
        message = fields.get("M", "")
        if fields.get("V") == "WARNING" and _EXPECTED not in message:
            self.report(f"warning: {message}")
