"""The stack that people would write by hand: FastAPI, asyncpg and uvicorn, for the bench's own subjects.

A process of its own: `python -m toft.bench.peer PORT` with PGHOST, PGPASSWORD and JWT_SECRET in its
environment. FastAPI is no dependency of Toft: without it the bench says so.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import uvicorn
from fastapi import FastAPI, Request
from joserfc import jwt
from joserfc.jwk import OctKey

from toft import settings as options

CONNECTIONS = 4
_ENVIRON = options.environment()
_KEY = OctKey.import_key(_ENVIRON.get("JWT_SECRET", ""))


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    app.state.pool = await asyncpg.create_pool(  # pyright: ignore[reportUnknownMemberType]  (asyncpg is untyped here)
        host=_ENVIRON["PGHOST"],
        user="postgres",
        database="postgres",
        password=_ENVIRON["PGPASSWORD"],
        min_size=CONNECTIONS,
        max_size=CONNECTIONS,
    )
    yield
    await app.state.pool.close()


app = FastAPI(lifespan=_lifespan)


async def _fetch(request: Request, sql: str, *params: Any) -> list[dict[str, Any]]:
    claims = jwt.decode(request.headers["authorization"].removeprefix("Bearer "), _KEY).claims
    async with app.state.pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)",
            claims["role"],
            json.dumps(claims),
        )
        return [dict(row) for row in await connection.fetch(sql, *params)]


@app.get("/rest/v1/item")
async def items(request: Request, id: str = "", limit: int = 1000) -> list[dict[str, Any]]:
    """One row by its key, or the first ones."""
    if id:
        wanted = int(id.removeprefix("eq."))
        return await _fetch(request, "select id, name, price from item where id = $1", wanted)
    return await _fetch(request, "select id, name, price from item limit $1", limit)


@app.post("/rest/v1/log", status_code=201)
async def add(request: Request, row: dict[str, str]) -> list[dict[str, Any]]:
    """A new row."""
    return await _fetch(request, "insert into log (line) values ($1) returning id, line", row["line"])


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
