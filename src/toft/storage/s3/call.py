"""One request at this door as its operations see it."""

from __future__ import annotations

from typing import Any

import msgspec

from toft.http.message import BodyTooLarge
from toft.storage.access import run_as
from toft.storage.call import Call
from toft.storage.records import Actor
from toft.storage.s3.digests import Expectations
from toft.storage.s3.errors import invalid_argument, malformed_xml
from toft.storage.s3.incoming import S3Incoming
from toft.storage.s3.who import Proven

LARGEST_XML_BYTES = 2 * 1024 * 1024


class S3Call(msgspec.Struct, frozen=True):
    """A call, who has signed it, and which bucket and key it is about (empty when it is about none)."""

    call: Call
    proven: Proven
    bucket: str
    key: str

    @property
    def actor(self) -> Actor:
        return self.call.actor

    @property
    def place(self) -> tuple[str, str]:
        return self.bucket, self.key

    def query(self, name: str) -> str | None:
        """A member of the query."""
        return self.call.query.get(name)

    def number(self, name: str, *, default: int, least: int, most: int) -> int:
        """A number in the query; more than `most` is `most`. Raises `StorageError`."""
        text = self.query(name)
        if text is None or text == "":
            return default
        if not text.isascii() or not text.isdecimal() or len(text) > 12 or int(text) < least:
            raise invalid_argument(f"{name} must be a number of at least {least}")
        return min(int(text), most)

    def header(self, name: bytes) -> str | None:
        """A field of the request's head."""
        return self.call.header(name)

    def incoming(self) -> S3Incoming:
        """What the request brings."""
        return S3Incoming(self.call, self.proven.signed, self.proven.key)

    async def read_xml_body(self) -> bytes:
        """The body, which must be what was signed."""
        try:
            raw = await self.call.request.body.read(LARGEST_XML_BYTES)
        except BodyTooLarge:
            raise malformed_xml() from None
        expectations = Expectations(self.call.request.headers, self.proven.signed.payload, ())
        expectations.update(raw)
        expectations.check({})
        return raw

    async def fetch_json(self, actor: Actor, statement: Any) -> Any:
        """The one JSON value that a statement has for this actor; None without a row."""
        [found] = await run_as(self.call, actor, statement)
        if not found.rows:
            return None
        return msgspec.json.decode(found.rows[0][0] or b"null")
