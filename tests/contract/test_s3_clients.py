"""boto3 and the AWS CLI against the S3 door."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.kit.fix_storage import ACCESS_KEY_ID, SECRET_ACCESS_KEY, StorageBackend

MB = 1024 * 1024
USER = "7f4e8f4e-4d2c-4f0a-8a8e-0d6f4d3c2b1a"


def client_of(
    store: StorageBackend, *, token: str | None = None, secret: str | None = None, **more: Any
) -> Any:
    """A client by the project's access key, or by a user's token."""
    return boto3.client(
        "s3",
        endpoint_url=f"{store.url}/s3",
        region_name="local",
        aws_access_key_id="the-project" if token else ACCESS_KEY_ID,
        aws_secret_access_key=secret or (store.keys.anon_key if token else SECRET_ACCESS_KEY),
        aws_session_token=token,
        config=Config(
            s3={"addressing_style": "path"},
            signature_version="s3v4",
            retries={"total_max_attempts": 1},
            **more,
        ),
    )


def code_of(call: Callable[[], object]) -> tuple[str, int]:
    with pytest.raises(ClientError) as refused:
        call()
    response: Any = refused.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


async def in_thread[T](work: Callable[[], T]) -> T:
    """Clients block; the server is on the loop."""
    async with asyncio.timeout(60):
        return await asyncio.to_thread(work)


async def test_objects(store: StorageBackend):
    """Put, got, asked about, copied, listed and deleted; what the other endpoints see is the same."""

    def work() -> None:
        s3 = client_of(store)
        s3.create_bucket(Bucket="things", ACL="public-read")
        assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == ["things"]
        assert code_of(lambda: s3.create_bucket(Bucket="things")) == ("BucketAlreadyExists", 409)
        s3.head_bucket(Bucket="things")
        assert code_of(lambda: s3.head_bucket(Bucket="nothing"))[1] == 404
        key = "a b/c+d&e=f;g:h@i'j(k)!*,$/é".replace("é", "e?x")
        put = s3.put_object(
            Bucket="things", Key=key, Body=b"hello", ContentType="text/html", CacheControl="max-age=9",
            Metadata={"color": "blue"},
        )  # fmt: skip
        assert put["ETag"] == f'"{hashlib.md5(b"hello").hexdigest()}"'
        got = s3.get_object(Bucket="things", Key=key)
        assert got["Body"].read() == b"hello"
        assert (got["ContentType"], got["CacheControl"], got["Metadata"]) == (
            "text/html", "max-age=9", {"color": "blue"},
        )  # fmt: skip
        assert s3.get_object(Bucket="things", Key=key, Range="bytes=1-3")["Body"].read() == b"ell"
        head = s3.head_object(Bucket="things", Key=key)
        assert (head["ContentLength"], head["ETag"]) == (5, put["ETag"])
        assert code_of(lambda: s3.head_object(Bucket="things", Key="no"))[1] == 404
        assert code_of(lambda: s3.get_object(Bucket="things", Key="no")) == ("NoSuchKey", 404)
        assert code_of(lambda: s3.get_object(Bucket="things", Key=key, Range="bytes=9-")) == (
            "InvalidRange", 416,
        )  # fmt: skip
        assert code_of(lambda: s3.get_object(Bucket="things", Key=key, IfNoneMatch=put["ETag"]))[1] == 304
        assert code_of(lambda: s3.get_object(Bucket="things", Key=key, IfMatch='"x"'))[1] == 412
        s3.copy_object(Bucket="things", Key="copy", CopySource={"Bucket": "things", "Key": key})
        s3.copy_object(
            Bucket="things", Key="other", CopySource={"Bucket": "things", "Key": key},
            MetadataDirective="REPLACE", ContentType="text/plain", Metadata={"n": "1"},
        )  # fmt: skip
        assert s3.head_object(Bucket="things", Key="copy")["Metadata"] == {"color": "blue"}
        other = s3.head_object(Bucket="things", Key="other")
        assert (other["ContentType"], other["Metadata"]) == ("text/plain", {"n": "1"})
        found = s3.list_objects_v2(Bucket="things", Delimiter="/")
        assert [item["Key"] for item in found["Contents"]] == ["copy", "other"]
        assert [item["Prefix"] for item in found["CommonPrefixes"]] == ["a b/"]
        assert code_of(lambda: s3.delete_bucket(Bucket="things")) == ("BucketNotEmpty", 409)
        s3.delete_object(Bucket="things", Key="copy")
        s3.delete_object(Bucket="things", Key="copy")
        assert code_of(lambda: s3.delete_object(Bucket="nothing", Key="x")) == ("NoSuchBucket", 404)
        gone = s3.delete_objects(
            Bucket="things", Delete={"Objects": [{"Key": key}, {"Key": "other"}, {"Key": "never"}]}
        )
        assert {item["Key"] for item in gone["Deleted"]} == {key, "other", "never"}
        s3.delete_bucket(Bucket="things")

    await in_thread(work)
    assert store.files() == []


async def test_pages(store: StorageBackend):
    """Paginators of both generations see every key once, in order, whatever the delimiter."""
    keys = sorted([f"a/{n:02}" for n in range(7)] + [f"b-{n}/x" for n in range(5)] + ["a", "a.", "z"])

    def work() -> None:
        s3 = client_of(store)
        s3.create_bucket(Bucket="things")
        for key in keys:
            s3.put_object(Bucket="things", Key=key, Body=b"")
        for name in ("list_objects_v2", "list_objects"):
            for delimiter in ("", "/", "-"):
                pages = s3.get_paginator(name).paginate(
                    Bucket="things", Delimiter=delimiter, PaginationConfig={"PageSize": 2}
                )
                found = [
                    item.get("Key") or item["Prefix"]
                    for page in pages
                    for item in page.get("Contents", []) + page.get("CommonPrefixes", [])
                ]
                wanted = {
                    key[: key.index(delimiter) + 1] if delimiter and delimiter in key else key for key in keys
                }
                assert len(found) == len(wanted)
                assert set(found) == wanted
        after = s3.list_objects_v2(Bucket="things", StartAfter="a/05")["Contents"]
        assert [item["Key"] for item in after] == [key for key in keys if key > "a/05"]
        assert code_of(lambda: s3.list_objects_v2(Bucket="nothing")) == ("NoSuchBucket", 404)

    await in_thread(work)


async def test_parts(store: StorageBackend):
    """Uploads in parts by hand and by the transfer manager; broken ones leave nothing."""
    data = os.urandom(11 * MB)

    def work() -> None:
        s3 = client_of(store)
        s3.create_bucket(Bucket="things")
        config = TransferConfig(multipart_threshold=5 * MB, multipart_chunksize=5 * MB, max_concurrency=3)
        s3.upload_fileobj(
            io.BytesIO(data), "things", "big", Config=config, ExtraArgs={"Metadata": {"a": "1"}}
        )
        head = s3.head_object(Bucket="things", Key="big")
        assert (head["ContentLength"], head["Metadata"]) == (len(data), {"a": "1"})
        assert head["ETag"].endswith('-3"')
        target = io.BytesIO()
        s3.download_fileobj("things", "big", target, Config=config)
        assert target.getvalue() == data
        upload = {"Bucket": "things", "Key": "by-hand"}
        upload["UploadId"] = s3.create_multipart_upload(**upload, ContentType="text/plain")["UploadId"]
        s3.upload_part(**upload, PartNumber=2, Body=b"not this")
        second = s3.upload_part(**upload, PartNumber=2, Body=b"second")["ETag"]
        first = s3.upload_part_copy(
            **upload, PartNumber=1, CopySource="things/big", CopySourceRange="bytes=0-9"
        )["CopyPartResult"]["ETag"]
        listed = s3.list_parts(**upload)["Parts"]
        assert [(part["PartNumber"], part["Size"]) for part in listed] == [(1, 10), (2, 6)]
        assert [item["Key"] for item in s3.list_multipart_uploads(Bucket="things")["Uploads"]] == ["by-hand"]
        assert code_of(
            lambda: s3.upload_part_copy(
                **upload, PartNumber=3, CopySource="things/big", CopySourceRange="bytes=-5"
            )
        ) == ("InvalidArgument", 400)
        wrong = {"Parts": [{"PartNumber": 1, "ETag": second}]}
        assert code_of(lambda: s3.complete_multipart_upload(**upload, MultipartUpload=wrong)) == (
            "InvalidPart", 400,
        )  # fmt: skip
        unsorted = {"Parts": [{"PartNumber": 2, "ETag": second}, {"PartNumber": 1, "ETag": first}]}
        assert code_of(lambda: s3.complete_multipart_upload(**upload, MultipartUpload=unsorted)) == (
            "InvalidPartOrder", 400,
        )  # fmt: skip
        assert code_of(lambda: s3.head_object(Bucket="things", Key="by-hand"))[1] == 404
        done = {"Parts": [{"PartNumber": 1, "ETag": first}, {"PartNumber": 2, "ETag": second}]}
        s3.complete_multipart_upload(**upload, MultipartUpload=done)
        got = s3.get_object(Bucket="things", Key="by-hand")
        assert (got["Body"].read(), got["ContentType"]) == (data[:10] + b"second", "text/plain")
        assert code_of(lambda: s3.list_parts(**upload)) == ("NoSuchUpload", 404)
        again = s3.create_multipart_upload(Bucket="things", Key="given-up")["UploadId"]
        s3.upload_part(Bucket="things", Key="given-up", UploadId=again, PartNumber=1, Body=b"x" * MB)
        s3.abort_multipart_upload(Bucket="things", Key="given-up", UploadId=again)
        assert code_of(
            lambda: s3.upload_part(Bucket="things", Key="given-up", UploadId=again, PartNumber=1, Body=b"x")
        ) == ("NoSuchUpload", 404)

    await in_thread(work)
    assert len(store.files()) == 2


async def test_limits_hold_here_too(store: StorageBackend):
    """Size and type of the bucket, and the sum of parts; an invalid key is named."""
    await store.bucket(file_size_limit=1000, allowed_mime_types=["text/plain"])

    def work() -> None:
        s3 = client_of(store)
        put = {"Bucket": "things", "Key": "x", "ContentType": "text/plain"}
        assert code_of(lambda: s3.put_object(**put, Body=b"x" * 1001)) == ("EntityTooLarge", 413)
        assert code_of(lambda: s3.put_object(**{**put, "ContentType": "text/html"}, Body=b"")) == (
            "InvalidMimeType", 415,
        )  # fmt: skip
        assert code_of(lambda: s3.put_object(**{**put, "Key": "a[b]"}, Body=b"")) == ("InvalidKey", 400)
        upload_id = s3.create_multipart_upload(**put)["UploadId"]
        part = {"Bucket": "things", "Key": "x", "UploadId": upload_id}
        s3.upload_part(**part, PartNumber=1, Body=b"x" * 600)
        s3.upload_part(**part, PartNumber=1, Body=b"x" * 700)
        assert code_of(lambda: s3.upload_part(**part, PartNumber=2, Body=b"x" * 301)) == (
            "EntityTooLarge", 413,
        )  # fmt: skip

    await in_thread(work)


async def test_presigned(store: StorageBackend):
    """URLs and forms that whoever has them may use, once changed or too late no more."""
    await store.bucket()

    def work() -> None:
        s3 = client_of(store)
        place = {"Bucket": "things", "Key": "a b+c"}
        put = s3.generate_presigned_url("put_object", Params=place, ExpiresIn=60)
        get = s3.generate_presigned_url(
            "get_object", Params={**place, "ResponseContentType": "text/x"}, ExpiresIn=60
        )
        assert httpx.put(put, content=b"hello").status_code == 200
        found = httpx.get(get)
        assert (found.content, found.headers["content-type"]) == (b"hello", "text/x")
        assert "SignatureDoesNotMatch" in httpx.get(get.replace("a%20b", "other")).text
        assert "SignatureDoesNotMatch" in httpx.get(get.replace("X-Amz-Expires=60", "X-Amz-Expires=61")).text
        assert httpx.put(get, content=b"changed").status_code == 403
        form = s3.generate_presigned_post(
            "things", "form/${filename}", Fields={"x-amz-meta-a": "1"},
            Conditions=[["content-length-range", 1, 10], {"x-amz-meta-a": "1"}], ExpiresIn=60,
        )  # fmt: skip
        files = {"file": ("name.txt", b"hello", "text/plain")}
        assert httpx.post(form["url"], data=form["fields"], files=files).status_code == 200
        head = s3.head_object(Bucket="things", Key="form/name.txt")
        assert (head["ContentLength"], head["ContentType"], head["Metadata"]) == (5, "text/plain", {"a": "1"})
        large = {"file": ("name.txt", b"x" * 11)}
        assert httpx.post(form["url"], data=form["fields"], files=large).status_code == 413
        other = {**form["fields"], "x-amz-meta-a": "2"}
        assert httpx.post(form["url"], data=other, files=files).status_code == 403
        more = {**form["fields"], "x-amz-meta-b": "2"}
        assert httpx.post(form["url"], data=more, files=files).status_code == 403
        store.clock.turn(seconds=61)
        assert "Request has expired" in httpx.get(get).text
        assert httpx.post(form["url"], data=form["fields"], files=files).status_code == 403

    await in_thread(work)


async def test_a_users_token(store: StorageBackend):
    """Signed with a public key, a session token makes policies judge; without policies nothing is seen."""
    await store.bucket()
    admin = await store.sql()
    await admin.script(
        "create policy p on storage.objects to authenticated"
        " using (owner_id = (select auth.uid()::text)) with check (bucket_id = 'things' and name like 'me/%')"
    )
    await store.call("POST /object/things/secret", content=b"secret")
    token = store.token(USER)

    def work() -> None:
        def try_with(secret: str) -> None:
            s3 = client_of(store, token=token, secret=secret)
            s3.put_object(Bucket="things", Key="me/x", Body=b"mine")
            assert s3.get_object(Bucket="things", Key="me/x")["Body"].read() == b"mine"
            assert code_of(lambda: s3.put_object(Bucket="things", Key="you/x", Body=b"")) == (
                "AccessDenied", 403,
            )  # fmt: skip
            assert code_of(lambda: s3.get_object(Bucket="things", Key="secret")) == ("NoSuchKey", 404)
            found = s3.list_objects_v2(Bucket="things")["Contents"]
            assert [item["Key"] for item in found] == ["me/x"]
            assert s3.list_buckets()["Buckets"] == []
            gone = s3.delete_objects(
                Bucket="things", Delete={"Objects": [{"Key": "secret"}, {"Key": "me/x"}]}
            )
            assert [item["Key"] for item in gone["Deleted"]] == ["me/x"]
            assert [(item["Key"], item["Code"]) for item in gone["Errors"]] == [("secret", "AccessDenied")]

        for secret in (store.keys.anon_key, store.keys.publishable_key):
            try_with(secret)
        stranger = client_of(store, token=store.token(USER)[:-2] + "xx")
        assert code_of(lambda: stranger.list_buckets()) == ("AccessDenied", 403)
        liar = client_of(store, token=token, secret="not the key")
        assert code_of(lambda: liar.list_buckets()) == ("SignatureDoesNotMatch", 403)

    await in_thread(work)
    assert (await store.call("GET /object/authenticated/things/secret")).content == b"secret"


async def test_signatures_that_do_not_hold(store: StorageBackend):
    """Unknown key, wrong secret, a clock that is off, no signature at all."""
    await store.bucket()

    def work() -> None:
        wrong = client_of(store, secret="wrong")
        assert code_of(lambda: wrong.list_buckets()) == ("SignatureDoesNotMatch", 403)
        unknown = client_of(store)
        unknown._request_signer._credentials.access_key = "unknown"
        assert code_of(lambda: unknown.list_buckets()) == ("InvalidAccessKeyId", 403)
        bare = httpx.get(f"{store.url}/s3/things")
        assert (bare.status_code, "Missing signature" in bare.text) == (403, True)
        store.clock.turn(minutes=16)
        assert code_of(lambda: client_of(store).list_buckets()) == ("RequestTimeTooSkewed", 403)
        store.clock.turn(minutes=-32)
        assert code_of(lambda: client_of(store).list_buckets()) == ("RequestTimeTooSkewed", 403)

    await in_thread(work)


@pytest.mark.slow
async def test_the_command_line(store: StorageBackend, tmp_path: Path):
    """`aws s3` as people use it: mb, cp in parts, sync, ls, mv, rm, rb."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        "AWS_DEFAULT_REGION": "local",
        "AWS_ENDPOINT_URL_S3": f"{store.url}/s3",
        "AWS_EC2_METADATA_DISABLED": "true",
    }

    def aws(line: str) -> str:
        executable = str(Path(sys.executable).parent / "aws")
        done = subprocess.run(
            [sys.executable, executable, "s3", *line.split()],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    folder = tmp_path / "tree"
    (folder / "sub").mkdir(parents=True)
    (folder / "one.txt").write_text("one")
    (folder / "sub" / "two.txt").write_text("two")
    (tmp_path / "big").write_bytes(os.urandom(9 * MB))

    def work() -> None:
        aws("mb s3://things")
        aws("cp big s3://things/big --no-progress")
        aws("sync tree s3://things/tree --no-progress")
        listed = aws("ls s3://things --recursive")
        assert [line.split()[-1] for line in listed.splitlines()] == [
            "big",
            "tree/one.txt",
            "tree/sub/two.txt",
        ]
        assert "PRE tree/" in aws("ls s3://things")
        aws("cp s3://things/big back --no-progress")
        assert (tmp_path / "back").read_bytes() == (tmp_path / "big").read_bytes()
        aws("mv s3://things/tree/one.txt s3://things/moved.txt")
        aws("sync s3://things/tree out --no-progress")
        assert (tmp_path / "out" / "sub" / "two.txt").read_text() == "two"
        assert not (tmp_path / "out" / "one.txt").exists()
        aws("rm s3://things --recursive")
        aws("rb s3://things")

    await asyncio.to_thread(work)
    assert store.files() == []
