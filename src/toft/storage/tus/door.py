"""The spine of resumable uploads: which request it is, who asks, and what a refusal looks like.

Statuses are real here, and refusals are plain text: that is what tus clients read.
"""

from __future__ import annotations

import re
from typing import Final

from toft.http.message import Request, Response
from toft.storage.call import Call
from toft.storage.context import StorageContext
from toft.storage.errors import StorageError, invalid_signature, no_route
from toft.storage.signing import open_grant
from toft.storage.tus.headers import VERSION, capability_headers, read_address, usual_headers, wrong_version
from toft.storage.tus.uploads import Uploads, Who
from toft.tokens.caller import Caller

PREFIX: Final = "/upload/resumable"
_SIGNED: Final = "/upload/resumable/sign"
_OPERATIONS: Final = {"POST": "create", "PATCH": "part", "HEAD": "get", "DELETE": "delete"}
_HOST: Final = re.compile(r"[A-Za-z0-9.\-\[\]:]+")


class TusDoor:
    """Resumable uploads of one backend."""

    def __init__(self, context: StorageContext) -> None:
        self._context = context
        self._uploads = Uploads(context)

    async def handle(self, request: Request, caller: Caller, path: str) -> Response:
        """Answer a request whose path begins with `PREFIX`."""
        try:
            response = await self._answer(request, caller, path)
        except StorageError as error:
            body = b"" if request.method == "HEAD" else f"{error.message}\n".encode()
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            if request.method == "HEAD":
                headers.append((b"content-length", b"0"))
            response = Response(error.status, headers, body)
        response.headers += usual_headers()
        return response

    async def _answer(self, request: Request, caller: Caller, path: str) -> Response:
        method = request.method
        if method == "POST":
            method = (request.headers.get(b"x-http-method-override") or method).upper()
        if method == "OPTIONS":
            return Response(204, capability_headers(self._context.settings.file_size_limit_bytes))
        is_signed = path == _SIGNED or path.startswith(_SIGNED + "/")
        segment = path.removeprefix(_SIGNED if is_signed else PREFIX).strip("/")
        if method not in _OPERATIONS or bool(segment) == (method == "POST") or "/" in segment:
            raise no_route(method, path)
        if request.headers.get(b"tus-resumable") != VERSION.decode():
            raise wrong_version()
        operation = f"storage.tus.upload.{_OPERATIONS[method]}{'_signed' if is_signed else ''}"
        call = Call(self._context, request, caller, path, {}, operation)
        if method == "POST":
            return await self._uploads.create(
                call, lambda b, k: _who(call, b, k, is_signed=is_signed), _base(call, path)
            )
        address = read_address(segment)
        who = _who(call, address.bucket, address.key, is_signed=is_signed)
        match method:
            case "HEAD":
                return await self._uploads.tell(call, who, address)
            case "PATCH":
                return await self._uploads.append(call, who, address)
            case _:
                return await self._uploads.terminate(call, who, address)


def _who(call: Call, bucket: str, key: str, *, is_signed: bool) -> Who:
    """Whose rights count: the caller's, or those of whoever signed the upload's token."""
    if not is_signed:
        actor = call.require_token()
        return Who(actor=actor, owner_id=call.owner_id, is_upsert=None)
    token = call.header(b"x-signature")
    if not token:
        raise invalid_signature("Missing x-signature header")
    grant = open_grant(call.context.ring, token, bucket, key, "upload", call.context.clock.unix())
    return Who(actor=None, owner_id=grant.owner, is_upsert=grant.is_upsert)


def _base(call: Call, path: str) -> str:
    """The public address of the collection that an upload was made in, as the client addressed us."""
    host = call.request.host
    if _HOST.fullmatch(host):
        root = f"{call.request.scheme}://{host}/storage/v1"
    else:
        root = call.context.external_url
    return root + path.rstrip("/")
