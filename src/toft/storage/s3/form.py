"""Uploads by a form in a browser: a signed policy says what its fields may be.

Contract: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTConstructPolicy.html
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec

from toft.http.message import Response
from toft.storage.call import Call
from toft.storage.content import LARGEST_OVERHEAD_BYTES, NO_CACHE
from toft.storage.context import StorageContext
from toft.storage.errors import access_denied, invalid_request, too_large, word_token_error
from toft.storage.form import Form
from toft.storage.names import DEFAULT_TYPE, read_content_type
from toft.storage.s3.errors import expired, invalid_argument, missing_signature, s3_error, wrong_signature
from toft.storage.s3.sigv4 import ALGORITHM, derive_key, is_same, parse_credential, sign_text
from toft.storage.s3.who import find_secrets
from toft.storage.s3.xml import xml_response
from toft.storage.uploads import put_object
from toft.tokens.caller import Caller

_MOST_FIELDS: Final = 60
_META: Final = "x-amz-meta-"
#: fields that no condition has to cover
_UNCOVERED: Final = frozenset({"policy", "x-amz-signature", "file"})


class _Posted:
    """A form's file as an upload. See `uploads.Incoming`."""

    robots: str | None = None
    overhead_bytes = LARGEST_OVERHEAD_BYTES

    def __init__(
        self, form: Form, fields: Mapping[str, str], declared: int | None, span: tuple[int, int]
    ) -> None:
        self._form = form
        self._span = span
        self._count = 0
        self.declared_bytes = declared
        self.content_type = read_content_type(fields.get("content-type") or form.file_type or DEFAULT_TYPE)
        self.cache_control = fields.get("cache-control") or NO_CACHE
        self.user_metadata: dict[str, Any] | None = {
            name.removeprefix(_META): value for name, value in fields.items() if name.startswith(_META)
        } or None

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        return self._count_all()

    async def open(self) -> None:
        """The form was opened to see who asks."""

    async def finish(self) -> None:
        """What comes behind the file does not count."""
        await self._form.finish()
        if self._count < self._span[0]:
            raise s3_error("EntityTooSmall", 400, "Your proposed upload is smaller than the policy allows.")

    async def _count_all(self) -> AsyncIterator[bytes]:
        async for piece in self._form.file_chunks():
            self._count += len(piece)
            if self._count > self._span[1]:
                raise too_large()
            yield piece


async def post_form(call: Call, bucket: str) -> Response:
    """POST /{bucket} with a form."""
    form = Form(call.header(b"content-type") or "", aiter(call.request.body), most_fields=_MOST_FIELDS)
    if not await form.open_file():
        raise invalid_request("No content provided", "InvalidRequest")
    fields = {name.lower(): value for name, value in form.fields.items()}
    call.caller = _prove(call.context, fields)
    span = check_policy(fields, bucket, call.context.clock.unix())
    key = fields.get("key", "").replace("${filename}", form.file_name)
    announced = call.header(b"content-length") or ""
    declared = int(announced) if announced.isascii() and announced.isdecimal() else None
    saved = await put_object(
        call,
        call.actor,
        (bucket, key),
        call.owner_id,
        _Posted(form, fields, declared, span),
        is_upsert=True,
    )
    etag = saved["metadata"]["eTag"]
    location = f"{call.context.external_url}/s3/{bucket}/{key}"
    headers = [(b"etag", etag.encode()), (b"location", location.encode("ascii", "replace"))]
    match fields.get("success_action_status"):
        case "201":
            members = {"Location": location, "Bucket": bucket, "Key": key, "ETag": etag}
            response = xml_response("PostResponse", members, 201)
            response.headers += headers
            return response
        case "204":
            return Response(204, headers)
        case _:
            return Response(200, headers)


def check_policy(fields: Mapping[str, str], bucket: str, now: float) -> tuple[int, int]:
    """How large the file may be. Raises `StorageError` unless the policy lives and covers every field."""
    try:
        policy = msgspec.json.decode(base64.b64decode(fields.get("policy", ""), validate=True))
        until = datetime.fromisoformat(policy["expiration"])
        conditions = list(_conditions(policy["conditions"]))
    except (ValueError, KeyError, TypeError, RecursionError, msgspec.DecodeError):
        raise s3_error("InvalidPolicyDocument", 400, "The policy document is invalid.") from None
    if now >= until.replace(tzinfo=until.tzinfo or UTC).timestamp():
        raise expired()
    span = (0, 2**63)
    covered: set[str] = set()
    given = {**fields, "bucket": bucket}
    for kind, name, value in conditions:
        if kind == "content-length-range":
            span = int(name), int(value)
            continue
        covered.add(name)
        actual = given.get(name, "")
        if not (actual == value if kind == "eq" else actual.startswith(value)):
            raise access_denied(f"Invalid according to Policy: Policy Condition failed: {name}")
    for name in fields:
        if name not in covered | _UNCOVERED and not name.startswith("x-ignore-"):
            raise access_denied(f"Invalid according to Policy: Extra input fields: {name}")
    return span


def _conditions(given: object) -> list[tuple[str, str, str]]:
    """Each condition as (kind, field in lower case, value). Raises TypeError or ValueError."""
    found: list[tuple[str, str, str]] = []
    for condition in cast("list[object]", given):
        if isinstance(condition, dict):
            members = cast("dict[str, object]", condition)
            found += [("eq", name.lower(), str(value)) for name, value in members.items()]
            continue
        kind, name, value = cast("list[object]", condition)
        kind = str(kind).lower()
        if kind == "content-length-range":
            found.append((kind, str(int(str(name))), str(int(str(value)))))
        elif kind in ("eq", "starts-with"):
            found.append((kind, str(name).removeprefix("$").lower(), str(value)))
        else:
            raise ValueError(kind)
    return found


def _prove(context: StorageContext, fields: Mapping[str, str]) -> Caller:
    """Who has signed the policy. Raises `StorageError`."""
    if fields.get("x-amz-algorithm") != ALGORITHM:
        raise missing_signature()
    if "policy" not in fields:
        raise invalid_argument("the form has no policy")
    key_id, scope = parse_credential(fields.get("x-amz-credential", ""))
    for caller, secret in find_secrets(context, key_id, fields.get("x-amz-security-token")):
        expected = sign_text(derive_key(secret, scope), fields["policy"])
        if is_same(expected, fields.get("x-amz-signature", "")):
            if caller.error is not None:
                raise access_denied(word_token_error(caller.error))
            return caller
    raise wrong_signature()
