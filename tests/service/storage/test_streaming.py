"""However large an object is, it passes through in small pieces."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.kit.fix_gateway import Daemon, Worker, make_spec
from tests.kit.fix_supabase import PASSWORD, SupabaseTemplates
from toft.protocol.worker import Attach, ServiceSettings, StorageSettings

MB = 1024 * 1024
SIZE = 400 * MB
#: what the worker may hold more than before, buffers of sockets and of the allocator included
ROOM = 24 * MB


def peak(pid: int) -> int:
    """The most memory that a process ever had of its own, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


async def chunks(digest: object) -> AsyncIterator[bytes]:
    piece = os.urandom(MB)
    for _ in range(SIZE // MB):
        digest.update(piece)  # type: ignore[attr-defined]
        yield piece


@pytest.mark.slow
async def test_large_objects_need_little_memory(
    supabase_templates: SupabaseTemplates, shared_worker: Worker, daemon: Daemon, tmp_path: Path
):
    """Up by POST, down again, up by tus: the worker's memory hardly grows."""
    cluster = await supabase_templates.start(18)
    try:
        settings = ServiceSettings(storage=StorageSettings(file_size_limit_bytes=2 * SIZE))
        spec = make_spec(
            cluster.socket_path, password=PASSWORD, objects_path=str(tmp_path), settings=settings
        )
        await daemon.do(Attach, spec)
        url = f"http://127.0.0.1:{spec.http_port}/storage/v1"
        headers = {"authorization": f"Bearer {spec.secrets.service_role_key}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as http:
            assert (await http.post("/bucket", json={"name": "things"})).status_code == 200
            await http.post("/object/things/warm", content=b"x" * 3 * MB)
            await http.get("/object/things/warm")
            before = peak(shared_worker.process.pid)
            sent = hashlib.md5()
            answer = await http.post("/object/things/big", content=chunks(sent))
            assert answer.status_code == 200, answer.text
            got = hashlib.md5()
            async with http.stream("GET", "/object/things/big") as stream:
                async for piece in stream.aiter_bytes():
                    got.update(piece)
            assert got.digest() == sent.digest()
            made = await http.post(
                "/upload/resumable",
                headers={
                    "tus-resumable": "1.0.0",
                    "upload-length": str(SIZE),
                    "upload-metadata": "bucketName dGhpbmdz,objectName dHVz",
                },
            )
            sent = hashlib.md5()
            done = await http.patch(
                made.headers["location"],
                content=chunks(sent),
                headers={
                    "tus-resumable": "1.0.0",
                    "upload-offset": "0",
                    "content-type": "application/offset+octet-stream",
                },
            )
            assert done.headers["tus-complete"] == "1"
            head = await http.head("/object/things/tus")
            assert head.headers["etag"] == f'"{sent.hexdigest()}"'
            grown = peak(shared_worker.process.pid) - before
            assert grown < ROOM, f"{grown / MB:.1f} MB more for an object of {SIZE / MB:.0f} MB"
    finally:
        await supabase_templates.stop(cluster)
