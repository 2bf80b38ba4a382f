"""Everything that Storage needs of its surroundings, given by the gateway when a backend is attached."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import msgspec

from toft.pg.connection import Connection
from toft.pg.pool import Pool
from toft.protocol.worker import StorageSettings
from toft.storage.blobs.store import BlobStore
from toft.storage.images.studio import Studio
from toft.tokens.jwt import KeyRing
from toft.world import Clock, Entropy

DATABASE_ROLE = "supabase_storage_admin"


class S3Keys(msgspec.Struct, frozen=True):
    """What requests at the S3 door are signed with.

    The access key stands for the service. anonymous_keys: the project's public keys, by which a request is
    signed that carries a user's token. service_token: the token of the service's role.
    """

    access_key_id: str
    secret_access_key: str
    anonymous_keys: tuple[str, ...]
    service_token: str

    def __repr__(self) -> str:
        return "S3Keys(…)"


class StorageContext(msgspec.Struct, frozen=True, kw_only=True):
    """The world of one backend's Storage.

    pool: connections as `supabase_storage_admin`. external_url: the public base, with `/storage/v1`. report:
    takes a line for the lease's log.
    """

    pool: Pool[Connection]
    ring: KeyRing
    clock: Clock
    entropy: Entropy
    settings: StorageSettings
    blobs: BlobStore
    external_url: str
    studio: Studio
    s3_keys: S3Keys
    report: Callable[[str], None]

    def new_version(self) -> str:
        """A random name for bytes that are about to be written."""
        return str(UUID(bytes=self.entropy.bytes(16), version=4))
