"""Uploads that come in several requests: begun, added to, asked about, given up, in the end made an object.

A draft's name is the version that the object will have. So when the process ends between the last byte and
the row, the next request of the client finds all bytes there and completes the object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from toft.http.message import HeaderList, Response
from toft.storage import records
from toft.storage.access import probe, run_as
from toft.storage.blobs.store import Missing, NoRoom, TooLarge
from toft.storage.call import Call
from toft.storage.content import NO_CACHE, parse_user_metadata
from toft.storage.context import StorageContext
from toft.storage.errors import StorageError, disk_full, invalid_request
from toft.storage.names import DEFAULT_TYPE, check_bucket_name, check_key, read_content_type
from toft.storage.records import SERVICE, Actor, ObjectRow
from toft.storage.tus.headers import (
    Address,
    missing_offset,
    no_upload,
    parse_length,
    parse_metadata,
    parse_number,
    too_many_bytes,
    upload_is_gone,
    write_address,
    write_instant,
    wrong_offset,
)
from toft.storage.tus.turns import Turn, Turns
from toft.storage.uploads import (
    check_rules,
    describe_bytes,
    load_bucket_facts,
    probed_metadata,
    publish,
    wants_upsert,
)

#: how long an upload may take
LIFE_SECONDS: Final = 24 * 3600
_BYTES: Final = "application/offset+octet-stream"


class Who(msgspec.Struct, frozen=True):
    """Who uploads. actor: None when rights were asked before; is_upsert: None when the request decides."""

    actor: Actor | None
    owner_id: str | None
    is_upsert: bool | None


class Notes(msgspec.Struct, frozen=True):
    """What is remembered of an upload until it is complete. length: None while it is not known.

    limit: largest size by the rules of the bucket when it was begun. metadata_header: as it came.
    """

    is_upsert: bool
    length: int | None
    limit: int
    content_type: str
    cache_control: str
    user_metadata: dict[str, Any] | None
    metadata_header: str
    expires_at: float


class Uploads:
    """The resumable uploads of one backend."""

    def __init__(self, context: StorageContext) -> None:
        self._context = context
        self._turns = Turns()

    async def create(self, call: Call, find_who: Callable[[str, str], Who], base_url: str) -> Response:
        """POST: names, size, bucket, right and type are judged in this order; then bytes are taken."""
        header = call.header(b"upload-metadata") or ""
        metadata = parse_metadata(header)
        length = parse_length(call.header(b"upload-length"), call.header(b"upload-defer-length"))
        bucket, key = metadata.get("bucketName") or "", metadata.get("objectName") or ""
        check_bucket_name(bucket)
        check_key(key)
        who = find_who(bucket, key)
        if length is not None and length > self._context.settings.file_size_limit_bytes:
            raise too_many_bytes()
        facts = await load_bucket_facts(call, bucket)
        notes = Notes(
            is_upsert=wants_upsert(call) if who.is_upsert is None else who.is_upsert,
            length=length,
            limit=_limit(call, facts, key, length),
            content_type=metadata.get("contentType") or DEFAULT_TYPE,
            cache_control=_cache_rule(metadata.get("cacheControl")),
            user_metadata=parse_user_metadata(metadata.get("metadata")),
            metadata_header=header,
            expires_at=int(self._context.clock.unix()) + LIFE_SECONDS,
        )
        address = Address(bucket, key, self._context.new_version())
        await _ask(call, who, address, notes)
        if metadata.get("contentType"):
            check_rules(call, facts, key, read_content_type(notes.content_type), None)
        is_first = call.header(b"content-type") == _BYTES
        if is_first:
            _check_announced(call, notes, 0)
        async with self._turns.take(address.name) as turn:
            await self._note(address.name, notes)
            headers: HeaderList = [(b"location", f"{base_url}/{write_address(address)}".encode())]
            size = 0
            if is_first:
                size = await self._take(call, turn, address, notes, 0)
                headers.append((b"upload-offset", str(size).encode()))
            headers += await self._settle(call, who, address, notes, size)
        return Response(201, headers)

    async def append(self, call: Call, who: Who, address: Address) -> Response:
        """PATCH: the next bytes, at the offset that the client believes in."""
        if call.header(b"content-type") != _BYTES:
            raise invalid_request("Content-Type header must be application/offset+octet-stream")
        offset = call.header(b"upload-offset")
        if offset is None:
            raise missing_offset()
        at = parse_number(offset, "Upload-Offset")
        async with self._turns.take(address.name) as turn:
            notes, size = await self._load(address.name)
            await _ask(call, who, address, notes)
            if at != size:
                raise wrong_offset()
            _check_announced(call, notes, size)
            notes = await self._learn_length(call, address, notes, size)
            size = await self._take(call, turn, address, notes, size)
            headers: HeaderList = [(b"upload-offset", str(size).encode())]
            headers += await self._settle(call, who, address, notes, size)
        return Response(204, headers)

    async def tell(self, call: Call, who: Who, address: Address) -> Response:
        """HEAD: how far it has come. Completes what lacks nothing but the row."""
        async with self._turns.take(address.name):
            try:
                notes, size = await self._load(address.name)
            except StorageError as error:
                if error.status != 404:
                    raise
                return await self._tell_finished(call, address)
            headers: HeaderList = [
                (b"upload-offset", str(size).encode()),
                (b"cache-control", b"no-store"),
                (b"content-length", b"0"),
            ]
            if notes.length is None:
                headers.append((b"upload-defer-length", b"1"))
            else:
                headers.append((b"upload-length", str(notes.length).encode()))
            if notes.metadata_header:
                headers.append((b"upload-metadata", notes.metadata_header.encode("latin-1")))
            if size == notes.length:
                await _ask(call, who, address, notes)
            headers += await self._settle(call, who, address, notes, size)
        return Response(200, headers)

    async def terminate(self, call: Call, who: Who, address: Address) -> Response:
        """DELETE: forget what has come."""
        async with self._turns.take(address.name):
            notes, _ = await self._load(address.name)
            await _ask(call, who, address, notes)
            await self._context.blobs.delete_drafts([address.name])
        return Response(204)

    async def _tell_finished(self, call: Call, address: Address) -> Response:
        """Of an upload that is complete, to a client that did not hear it."""
        [found] = await run_as(call, SERVICE, records.load_object(SERVICE, address.bucket, address.key))
        row: dict[str, Any] = msgspec.json.decode(found.rows[0][0] or b"{}") if found.rows else {}
        if row.get("version") != address.name:
            raise no_upload()
        size = str(row["metadata"]["size"]).encode()
        return Response(
            200,
            [
                (b"upload-offset", size),
                (b"upload-length", size),
                (b"cache-control", b"no-store"),
                (b"content-length", b"0"),
            ],
        )

    async def _load(self, name: str) -> tuple[Notes, int]:
        try:
            draft = await self._context.blobs.read_draft(name)
            notes = msgspec.json.decode(draft.notes, type=Notes)
        except (Missing, msgspec.DecodeError):
            raise no_upload() from None
        if self._context.clock.unix() >= notes.expires_at:
            await self._context.blobs.delete_drafts([name])
            raise upload_is_gone()
        return notes, draft.size

    async def _note(self, name: str, notes: Notes) -> None:
        try:
            await self._context.blobs.note_draft(name, msgspec.json.encode(notes))
        except NoRoom:
            raise disk_full() from None

    async def _learn_length(self, call: Call, address: Address, notes: Notes, size: int) -> Notes:
        given = call.header(b"upload-length")
        if given is None:
            return notes
        length = parse_number(given, "Upload-Length")
        if notes.length is not None and notes.length != length:
            raise invalid_request("Upload-Length cannot be changed")
        if length > notes.limit or length < size:
            raise too_many_bytes()
        notes = msgspec.structs.replace(notes, length=length)
        _check_announced(call, notes, size)
        await self._note(address.name, notes)
        return notes

    async def _take(self, call: Call, turn: Turn, address: Address, notes: Notes, size: int) -> int:
        """Add the request's body; the new size. What came stays, whatever happens to the rest."""
        adding = self._context.blobs.append(address.name, aiter(call.request.body), _most(notes))
        try:
            return await turn.run(adding)
        except Missing:
            raise no_upload() from None
        except TooLarge:
            raise too_many_bytes() from None
        except NoRoom:
            raise disk_full() from None

    async def _settle(self, call: Call, who: Who, address: Address, notes: Notes, size: int) -> HeaderList:
        """Make the object visible when nothing lacks; what is then to be said."""
        if size != notes.length:
            return [(b"upload-expires", write_instant(notes.expires_at))]
        try:
            written = await self._context.blobs.finish_draft(address.name, address.name)
        except NoRoom:
            raise disk_full() from None
        metadata = describe_bytes(call, f'"{written.md5}"', written.size)
        metadata |= {"mimetype": notes.content_type, "cacheControl": notes.cache_control}
        await publish(call, _row(who, address, notes, metadata, version=address.name))
        await self._context.blobs.delete_drafts([address.name])
        return [(b"tus-complete", b"1")]


def _most(notes: Notes) -> int:
    return notes.limit if notes.length is None else notes.length


def _check_announced(call: Call, notes: Notes, size: int) -> None:
    """Refuse more bytes than fit before any of them is read."""
    announced = call.header(b"content-length") or ""
    if announced.isascii() and announced.isdecimal() and size + int(announced) > _most(notes):
        raise too_many_bytes()


async def _ask(call: Call, who: Who, address: Address, notes: Notes) -> None:
    """Raise unless who uploads may write this object."""
    metadata = probed_metadata(notes.content_type, notes.length)
    row = _row(who, address, notes, metadata, version="1")
    await probe(call, who.actor or SERVICE, row, is_upsert=notes.is_upsert)


def _row(who: Who, address: Address, notes: Notes, metadata: dict[str, Any], *, version: str) -> ObjectRow:
    return ObjectRow(
        bucket=address.bucket,
        key=address.key,
        version=version,
        owner_id=who.owner_id,
        metadata=metadata,
        user_metadata=notes.user_metadata or {},
    )


def _limit(call: Call, facts: dict[str, Any], key: str, length: int | None) -> int:
    try:
        return check_rules(call, {**facts, "allowed_mime_types": None}, key, "", length)
    except StorageError:
        raise too_many_bytes() from None


def _cache_rule(seconds: str | None) -> str:
    """A number of seconds; anything else is no rule."""
    is_number = seconds is not None and seconds.isascii() and seconds.isdecimal() and len(seconds) < 12
    return f"max-age={int(seconds)}" if is_number and seconds else NO_CACHE
