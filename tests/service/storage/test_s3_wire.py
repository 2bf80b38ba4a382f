"""The S3 door byte by byte: framed bodies, digests, XML, and what is made to look like a signature."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import zlib
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.kit.fix_storage import ACCESS_KEY_ID, SECRET_ACCESS_KEY, StorageBackend

SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
TODAY = datetime.now(UTC).strftime("%Y%m%d")
NOTHING = hashlib.sha256(b"").hexdigest()


class Signer:
    """Signs as the field's clients do, and lets a test meddle with what comes of it."""

    def __init__(self, store: StorageBackend) -> None:
        self.store = store
        self.date = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        self.scope = f"{self.date[:8]}/local/s3/aws4_request"
        self.key = f"AWS4{SECRET_ACCESS_KEY}".encode()
        for part in self.scope.split("/"):
            self.key = hmac.digest(self.key, part.encode(), "sha256")
        self.previous = ""

    def sign(self, *lines: str) -> str:
        return hmac.digest(self.key, "\n".join(lines).encode(), "sha256").hex()

    def headers(self, method: str, path: str, payload: str, **more: str) -> dict[str, str]:
        assert self.store.listener is not None
        fields = {
            "host": f"127.0.0.1:{self.store.listener.port}",
            "x-amz-content-sha256": payload,
            "x-amz-date": self.date,
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        names = ";".join(sorted(fields))
        lines = [f"{name}:{fields[name]}" for name in sorted(fields)]
        request = "\n".join([method, f"/storage/v1{path}", "", *lines, "", names, payload])
        digest = hashlib.sha256(request.encode()).hexdigest()
        self.previous = self.sign("AWS4-HMAC-SHA256", self.date, self.scope, digest)
        fields["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/{self.scope},"
            f"SignedHeaders={names},Signature={self.previous}"
        )
        return fields

    def chunk(self, data: bytes) -> bytes:
        digest = hashlib.sha256(data).hexdigest()
        self.previous = self.sign(
            "AWS4-HMAC-SHA256-PAYLOAD", self.date, self.scope, self.previous, NOTHING, digest
        )
        return f"{len(data):x};chunk-signature={self.previous}\r\n".encode() + data + b"\r\n"

    def trailer(self, line: str) -> bytes:
        digest = hashlib.sha256(f"{line}\n".encode()).hexdigest()
        signature = self.sign("AWS4-HMAC-SHA256-TRAILER", self.date, self.scope, self.previous, digest)
        return f"{line}\r\nx-amz-trailer-signature:{signature}\r\n\r\n".encode()

    async def put(self, payload: str, body: bytes, **more: str) -> httpx.Response:
        assert self.store.http is not None
        fields = self.headers("PUT", "/s3/things/x", payload, **more)
        return await self.store.http.put(f"{self.store.url}/s3/things/x", content=body, headers=fields)

    async def put_chunks(self, *chunks: bytes, spoil: Any = None, **more: str) -> httpx.Response:
        assert self.store.http is not None
        size = str(sum(map(len, chunks)))
        fields = self.headers("PUT", "/s3/things/x", SIGNED, **{"x_amz_decoded_content_length": size, **more})
        body = b"".join(self.chunk(chunk) for chunk in (*chunks, b""))
        body = spoil(body) if spoil else body
        return await self.store.http.put(f"{self.store.url}/s3/things/x", content=body, headers=fields)


def code(answer: httpx.Response) -> tuple[int, str]:
    found = re.search("<Code>(.*)</Code>", answer.text)
    return answer.status_code, found[1] if found else ""


def crc32(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


async def nothing_is_there(store: StorageBackend) -> bool:
    found = await store.call("GET /object/things/x")
    return found.status_code == 400 and store.files() == []


async def test_signed_chunks(store: StorageBackend):
    """The framing goes, what was framed stays."""
    await store.bucket()
    chunks = [bytes([65 + n]) * 70_000 for n in range(5)]
    answer = await Signer(store).put_chunks(*chunks, content_encoding="aws-chunked")
    assert answer.status_code == 200, answer.text
    assert (await store.call("GET /object/things/x")).content == b"".join(chunks)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda body: body.replace(b"B" * 99, b"C" * 99, 1), (403, "SignatureDoesNotMatch")),
        (lambda body: body[: len(body) // 2], (400, "IncompleteBody")),
        (lambda body: body[: -len("0;chunk-signature=") - 68], (400, "IncompleteBody")),
        (
            lambda body: body.replace(b"chunk-signature=", b"chunk-signature=0", 1),
            (403, "SignatureDoesNotMatch"),
        ),
        (lambda body: b"zz" + body, (400, "IncompleteBody")),
        (lambda body: b"-" + body, (400, "IncompleteBody")),
        (lambda body: b"f" * 5000, (400, "IncompleteBody")),
        (lambda body: b"", (400, "IncompleteBody")),
        (lambda body: body + b"x-amz-more: 1\r\n\r\n", (400, "MalformedTrailerError")),
    ],
)
async def test_chunks_that_were_meddled_with(store: StorageBackend, spoil: Any, expected: tuple[int, str]):
    """Refused, and nothing of them is kept."""
    await store.bucket()
    answer = await Signer(store).put_chunks(b"A" * 70_000, b"B" * 70_000, spoil=spoil)
    assert code(answer) == expected
    assert await nothing_is_there(store)


async def test_length_that_lies(store: StorageBackend):
    """More or fewer bytes than announced are no object."""
    await store.bucket()
    for size in ("4", "6"):
        answer = await Signer(store).put_chunks(b"12345", x_amz_decoded_content_length=size)
        assert code(answer) == (400, "IncompleteBody")
    assert await nothing_is_there(store)


async def test_trailers(store: StorageBackend):
    """A digest behind the body, signed or not: it has to come, and to be right."""
    await store.bucket()
    for payload in (f"{SIGNED}-TRAILER", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"):
        for told, expected in (
            (crc32(b"hello"), (200, "")),
            (crc32(b"other"), (400, "BadDigest")),
            (None, (400, "MalformedTrailerError")),
        ):
            signer = Signer(store)
            fields = signer.headers(
                "PUT", "/s3/things/x", payload,
                x_amz_decoded_content_length="5", x_amz_trailer="x-amz-checksum-crc32",
            )  # fmt: skip
            line = f"x-amz-checksum-crc32:{told}"
            if payload.startswith(SIGNED):
                chunks = signer.chunk(b"hello") + signer.chunk(b"").removesuffix(b"\r\n")
                body = chunks + (signer.trailer(line) if told else b"\r\n")
            else:
                body = b"5\r\nhello\r\n0\r\n" + (f"{line}\r\n\r\n".encode() if told else b"\r\n")
            assert store.http is not None
            answer = await store.http.put(f"{store.url}/s3/things/x", content=body, headers=fields)
            assert code(answer) == expected, (payload, told, answer.text)
            if told == crc32(b"hello"):
                await store.call("DELETE /object/things/x")
            assert await nothing_is_there(store)


async def test_digests_of_the_body(store: StorageBackend):
    """The signed digest, Content-MD5 and checksums are compared with what arrived."""
    await store.bucket()
    right = hashlib.sha256(b"hello").hexdigest()
    md5 = base64.b64encode(hashlib.md5(b"hello").digest()).decode()
    assert code(await Signer(store).put(right, b"jello")) == (400, "BadDigest")
    assert code(await Signer(store).put("UNSIGNED-PAYLOAD", b"jello", content_md5=md5)) == (400, "BadDigest")
    spoiled = {"x_amz_checksum_crc32": crc32(b"other")}
    assert code(await Signer(store).put("UNSIGNED-PAYLOAD", b"hello", **spoiled)) == (400, "BadDigest")
    assert code(await Signer(store).put("STREAMING-NONSENSE", b"hello")) == (400, "InvalidArgument")
    assert await nothing_is_there(store)
    assert (await Signer(store).put(right, b"hello", content_md5=md5)).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        "AWS4-HMAC-SHA256",
        "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=b",
        "AWS4-HMAC-SHA256 Credential=a/b/c/s3/aws4_request, SignedHeaders=host, Signature=b",
        "AWS4-HMAC-SHA256 Credential=a/20260101/x/ec2/aws4_request, SignedHeaders=host, Signature=b",
        f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/{TODAY}/x/s3/aws4_request, "
        "SignedHeaders=host, Signature=ü",
        "Bearer x",
        "AWS abc:def",
    ],
)
async def test_what_is_no_signature(store: StorageBackend, header: str):
    """Refused with a code, never with a failure."""
    assert store.http is not None
    headers = {"authorization": header.encode(), "x-amz-date": f"{TODAY}T120000Z"}
    answer = await store.http.get(f"{store.url}/s3/things", headers=headers)
    assert answer.status_code in (400, 403)
    assert "<Code>" in answer.text
    assert "xmlns" not in answer.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<Delete",
        b"<Other/>",
        b"<Delete></Delete>",
        b"<!DOCTYPE x [<!ENTITY a 'b'>]><Delete><Object><Key>&a;</Key></Object></Delete>",
        b"<Delete>" + b"<Object><Key>x</Key></Object>" * 1001 + b"</Delete>",
        b"<Delete><Object><Key></Key></Object></Delete>",
        b"\xff\xfe",
    ],
)
async def test_xml_that_is_refused(store: StorageBackend, body: bytes):
    """Not well-formed, another document, with entities, too many keys."""
    await store.bucket()
    assert store.http is not None
    signer = Signer(store)
    payload = hashlib.sha256(body).hexdigest()
    # the query is part of what is signed
    fields = signer.headers("POST", "/s3/things", payload)
    assert store.listener is not None
    lines = [f"{name}:{fields[name]}" for name in ("host", "x-amz-content-sha256", "x-amz-date")]
    names = "host;x-amz-content-sha256;x-amz-date"
    request = "\n".join(["POST", "/storage/v1/s3/things", "delete=", *lines, "", names, payload])
    signature = signer.sign(
        "AWS4-HMAC-SHA256", signer.date, signer.scope, hashlib.sha256(request.encode()).hexdigest()
    )
    fields["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/{signer.scope},"
        f"SignedHeaders={names},Signature={signature}"
    )
    answer = await store.http.post(f"{store.url}/s3/things?delete", content=body, headers=fields)
    assert code(answer) == (400, "MalformedXML")


async def test_what_is_not_there(store: StorageBackend):
    """Subresources that nobody has here are not taken for something else."""
    await store.bucket()
    assert store.http is not None
    fields = Signer(store).headers("PATCH", "/s3/things", NOTHING)
    assert code(await store.http.patch(f"{store.url}/s3/things", headers=fields)) == (405, "MethodNotAllowed")
