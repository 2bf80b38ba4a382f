"""The render endpoints: an object as for a download, and what a painter makes of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from toft.http.message import Response
from toft.storage.blobs.store import Missing
from toft.storage.call import Call
from toft.storage.errors import StorageError, bytes_are_gone, feature_not_enabled
from toft.storage.images.studio import LARGEST_SOURCE_BYTES, NotRendered, Rendered
from toft.storage.images.transformation import (
    Transformation,
    choose_format,
    read_claim,
    read_transformation,
    write_header,
)
from toft.storage.links import find_signed, open_download
from toft.storage.objects import MOST_TRIES, find_public, find_readable
from toft.storage.serve import Served, describe, is_unchanged, read_served, serve

type Json = dict[str, Any]

_SVG: Final = re.compile(
    rb"\s*(?:\xef\xbb\xbf)?\s*(?:<\?xml.*?>\s*)?(?:<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<svg[\s>]", re.S
)
_NO_IMAGE: Final = "The source image is invalid or unsupported for rendering"


async def render_authenticated(call: Call) -> Response:
    """GET /render/image/authenticated/{bucket}/{key}"""
    call.require_token()
    return await _render(call, find_readable, read_transformation(call.query, "querystring"))


async def render_public(call: Call) -> Response:
    """GET /render/image/public/{bucket}/{key}"""
    return await _render(call, find_public, read_transformation(call.query, "querystring"))


async def render_signed(call: Call) -> Response:
    """GET /render/image/sign/{bucket}/{key}?token=…: only what was signed is done."""
    grant = open_download(call)
    wanted = read_claim(grant.transformations)
    return await _render(call, find_signed, wanted, expires_at=grant.expires_at)


async def _render(
    call: Call,
    find: Callable[[Call], Awaitable[Json]],
    wanted: Transformation,
    *,
    expires_at: int | None = None,
) -> Response:
    if not call.context.settings.renders_images:
        raise feature_not_enabled("imageTransformation")
    row = await find(call)
    for _ in range(MOST_TRIES):
        try:
            return await _paint(call, read_served(row), wanted, expires_at)
        except Missing:
            known, row = row["version"], await find(call)
            if row["version"] == known:
                break
    raise bytes_are_gone()


async def _paint(call: Call, served: Served, wanted: Transformation, expires_at: int | None) -> Response:
    if is_unchanged(call, served):
        return await serve(call, served, expires_at=expires_at)
    target = choose_format(wanted, call.header(b"accept"))
    studio = call.context.studio
    rendered = studio.find(served.version, wanted, target)
    if rendered is None:
        if served.size > LARGEST_SOURCE_BYTES:
            raise _refused("The source image file is too large to process")
        data = await _read_all(await call.context.blobs.read(served.version, 0, served.size))
        if _SVG.match(data[:4096]):
            rendered = Rendered("image/svg+xml", data)
        else:
            try:
                rendered = await studio.render(served.version, data, wanted, target)
            except NotRendered as error:
                raise _refused(str(error) or _NO_IMAGE) from None
    headers = describe(call, served, expires_at, content_type=rendered.kind)
    headers.append((b"content-length", str(len(rendered.data)).encode()))
    if not wanted.format:
        headers.append((b"vary", b"Accept"))
    if rendered.kind == "image/svg+xml":
        # what is passed through unchanged must not run as a page of ours
        headers.append((b"content-security-policy", b"script-src 'none'; sandbox"))
    if told := write_header(wanted):
        headers.append((b"x-transformations", told.encode()))
    return Response(200, headers, b"" if call.request.method == "HEAD" else rendered.data)


async def _read_all(body: bytes | AsyncIterator[bytes]) -> bytes:
    return body if isinstance(body, bytes) else b"".join([piece async for piece in body])


def _refused(message: str) -> StorageError:
    return StorageError("InvalidRequest", 400, "InvalidRequest", message)
