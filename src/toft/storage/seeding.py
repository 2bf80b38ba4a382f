"""Objects that a project brings along (`objects_path` of config.toml), put in when its template is made."""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator
from uuid import UUID

from toft.pg.connection import Connection
from toft.pg.sqlstate import PostgresError
from toft.storage import records
from toft.storage.blobs.store import BlobStore
from toft.storage.errors import StorageError
from toft.storage.names import DEFAULT_TYPE, check_key, check_type
from toft.storage.records import SERVICE, ObjectRow
from toft.world import Clock, Entropy

#: as the Supabase CLI uploads them
_CACHE_RULE = "max-age=3600"


async def seed_object(
    session: Connection,
    blobs: BlobStore,
    place: tuple[str, str],
    data: bytes,
    allowed_types: tuple[str, ...] | None,
    world: tuple[Clock, Entropy],
) -> str | None:
    """Put one object in, as the service would. place: bucket and key. What is wrong with it, or None.

    session: of a role that may become service_role.
    """
    clock, entropy = world
    kind = mimetypes.guess_type(place[1])[0] or DEFAULT_TYPE
    try:
        check_key(place[1])
        check_type(kind, allowed_types)
    except StorageError as error:
        return error.message
    version = str(UUID(bytes=entropy.bytes(16), version=4))
    written = await blobs.write(version, _whole(data), len(data))
    now = clock.now()
    metadata = {
        "eTag": f'"{written.md5}"',
        "size": written.size,
        "mimetype": kind,
        "cacheControl": _CACHE_RULE,
        "lastModified": now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}Z",
        "contentLength": written.size,
        "httpStatusCode": 200,
    }
    row = ObjectRow(
        bucket=place[0], key=place[1], version=version, owner_id=None, metadata=metadata, user_metadata={}
    )
    try:
        await session.pipeline(
            [records.scope(SERVICE, b"{}", "", "", "storage.object.upload"), records.save_object(row)]
        )
    except PostgresError as error:
        await blobs.delete([version])
        return error.message
    return None


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data
