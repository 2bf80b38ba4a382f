"""What the bench does on a lease's database past the gateway: on the postmaster's own Unix socket."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import msgspec

from toft import settings as options
from toft.bench import driver, pgbench, sent
from toft.bench.subjects import Subject
from toft.pg.connection import Connection, connect
from toft.pg.wire import Statement

_USER = "postgres"


class Place(msgspec.Struct, frozen=True):
    """A folder with a postmaster's socket, and the password of `postgres`."""

    folder: str
    password: str

    @property
    def socket_path(self) -> str:
        return f"{self.folder}/.s.PGSQL.5432"

    @property
    def environ(self) -> dict[str, str]:
        """For programs that use libpq or its names."""
        return {"PGHOST": self.folder, "PGUSER": _USER, "PGDATABASE": _USER, "PGPASSWORD": self.password}

    async def connect(self) -> Connection:
        return await connect(self.socket_path, _USER, self.password)


async def statements_of(place: Place, subject: Subject, claims: dict[str, str]) -> Sequence[Statement]:
    """What the Data API sends for this subject."""
    connection = await place.connect()
    try:
        return sent.statements_of(subject, await sent.load_schema(connection), claims)
    finally:
        connection.close()


def drive(place: Place, statements: Sequence[Statement], seconds: float) -> float:
    """Transactions a second by our driver, as many connections as pgbench has."""
    task = driver.Task(
        place.socket_path, _USER, place.password, list(statements), pgbench.CONNECTIONS, seconds
    )
    line = [options.python(), "-m", "toft.bench.driver"]
    done = subprocess.run(line, input=msgspec.json.encode(task), capture_output=True, check=True)
    return float(done.stdout)
