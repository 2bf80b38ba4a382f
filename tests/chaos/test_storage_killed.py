"""kill -9 of the gateway while many upload: what was acknowledged is there, whole; nothing else is seen."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
from pathlib import Path

import httpx

from tests.chaos.test_killed import listener_of
from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon

UPLOADS = 200
SIZES = (0, 900, 70_000, 1_500_000)


async def test_killed_gateway_in_the_middle_of_uploads(toftd: RunningDaemon) -> None:
    """Every acknowledged object comes back byte for byte, also replaced ones; no other key is listed."""
    lease = await toftd.take()
    headers = {"authorization": f"Bearer {lease['service_role_key']}"}
    limits = httpx.Limits(max_connections=32)
    base = f"{lease['url']}/storage/v1"
    contents = {
        f"{number // 20}/{number:03}": random.randbytes(SIZES[number % 4]) for number in range(UPLOADS)
    }
    #: key → every content that it may have now, the last acknowledged one first
    allowed: dict[str, list[bytes]] = {}
    acknowledged = itertools.count(1)
    reached = asyncio.Event()
    async with httpx.AsyncClient(
        base_url=base, headers=headers, timeout=PATIENCE_SECONDS, limits=limits
    ) as http:
        assert (await http.post("/bucket", json={"name": "things"})).status_code == 200
        for key in list(contents)[:20]:
            await http.post(f"/object/things/{key}", content=b"before")
            allowed[key] = [b"before"]

        async def upload(key: str, content: bytes) -> None:
            if key in allowed:
                allowed[key].append(content)
            try:
                answer = await http.put(f"/object/things/{key}", content=content)
            except httpx.TransportError:
                return
            if answer.status_code == 200:
                allowed[key] = [content]
                if next(acknowledged) == UPLOADS // 3:
                    reached.set()

        uploads = [asyncio.ensure_future(upload(key, content)) for key, content in contents.items()]
        await reached.wait()
        os.kill(listener_of(int(lease["url"].rpartition(":")[2])), signal.SIGKILL)
        await asyncio.gather(*uploads)
        assert len(allowed) >= UPLOADS // 3
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    if (await http.get("/status")).status_code == 200:
                        break
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
        listed: list[str] = []
        for folder in range(UPLOADS // 20):
            found = await http.post("/object/list/things", json={"prefix": str(folder), "limit": 100})
            listed += [f"{folder}/{item['name']}" for item in found.json()]
        #: committed in the last moment, unheard by the client: whole as well, or a key that was there before
        for key in listed:
            content = (await http.get(f"/object/authenticated/things/{key}")).content
            assert content in allowed.get(key, [contents[key]]), key
        assert set(allowed) <= set(listed)
        objects = Path(toftd.home / "backends" / lease["backend_id"] / "objects")
        await http.post("/object/things/after", content=b"x")
        assert not [path for path in (objects / "tmp").iterdir() if path.is_file()]
