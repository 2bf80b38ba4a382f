"""Floors: what the bare tool does on the same machine, with nothing of ours around it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from pathlib import Path

from toft.bench.clients import SqlSession
from toft.engine.binaries import find_engines
from toft.engine.clone import clone
from toft.engine.postmaster import PostmasterSpec, start, stop
from toft.engine.template import load_template

_UID = 399_999


def starts(home: Path, rounds: int) -> list[float]:
    """Milliseconds of: start postgres on a clone of this home's base template, connect, query; no walls."""
    return asyncio.run(_starts(home, rounds))


def _place(home: Path) -> Path:
    place = Path(tempfile.mkdtemp(prefix="f-", dir=home))
    place.chmod(0o711)
    return place


async def _starts(home: Path, rounds: int) -> list[float]:
    engine = find_engines(home, None)[0]
    template = next(
        found
        for place in sorted((home / "templates").iterdir())
        if (found := load_template(home / "templates", place.name)) is not None
    )
    uid = _UID if os.geteuid() == 0 else None
    samples: list[float] = []
    for _ in range(rounds):
        place = _place(home)
        clone(template, place / "pgdata", uid)
        spec = PostmasterSpec(
            engine=engine,
            data_dir=place / "pgdata",
            socket_dir=place / "s",
            log_path=place / "log",
            uid=uid,
            confinement="none" if uid is None else "setpriv",
        )
        began = time.perf_counter()
        running = await start(spec)
        session = SqlSession(str(spec.socket_dir), 5432, "supabase_admin", template.password)
        session.query("select 1")
        samples.append((time.perf_counter() - began) * 1e3)
        session.close()
        await stop(running, "immediate")
        shutil.rmtree(place)
    return samples
