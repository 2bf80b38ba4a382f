"""Buckets and objects over real HTTP, a real database and real files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re

import pytest

from tests.kit.fix_storage import StorageBackend

ADA = "00000000-0000-4000-8000-00000000000a"
BOB = "00000000-0000-4000-8000-00000000000b"


async def test_bucket_life(store: StorageBackend):
    """Made, read, listed, changed, refused while full, emptied, deleted."""
    made = await store.call(
        "POST /bucket",
        {
            "name": "pics",
            "id": "pics",
            "public": True,
            "file_size_limit": "20MB",
            "allowed_mime_types": ["image/*"],
        },
    )
    assert (made.status_code, made.json()) == (200, {"name": "pics"})
    assert made.headers["content-type"] == "application/json; charset=utf-8"
    read = (await store.call("GET /bucket/pics")).json()
    assert set(read) == {
        "id", "name", "owner", "public", "file_size_limit", "allowed_mime_types", "created_at", "updated_at",
    }  # fmt: skip
    assert (read["owner"], read["public"], read["file_size_limit"]) == ("", True, 20_000_000)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", read["created_at"])
    again = await store.call("POST /bucket", {"name": "pics"})
    assert again.status_code == 400
    assert again.json() == {
        "statusCode": "409", "error": "Duplicate", "message": "The resource already exists",
        "code": "BucketAlreadyExists",
    }  # fmt: skip
    changed = await store.call("PUT /bucket/pics", {"public": False, "file_size_limit": None})
    assert changed.json() == {"message": "Successfully updated"}
    [listed] = (await store.call("GET /bucket")).json()
    assert (listed["public"], listed["file_size_limit"], listed["type"]) == (False, None, "STANDARD")
    assert listed["allowed_mime_types"] == ["image/*"]
    older = await store.call("GET /bucket", x_client_info="supabase-py/2.17.3")
    assert "type" not in older.json()[0]
    await store.call("POST /object/pics/a.png", content=b"x", content_type="image/png")
    full = await store.call("DELETE /bucket/pics")
    assert full.json()["code"] == "ResourceNotEmpty"
    refused = await store.call("POST /bucket/pics/empty", token=store.keys.anon_key)
    assert (refused.status_code, refused.json()["message"]) == (403, "Access denied: Invalid role")
    assert (await store.call("POST /bucket/pics/empty", {})).status_code == 200
    assert store.files() == []
    assert (await store.call("DELETE /bucket/pics")).json() == {"message": "Successfully deleted"}
    for line in ("GET /bucket/pics", "DELETE /bucket/pics", "POST /bucket/pics/empty"):
        assert (await store.call(line)).json()["code"] == "NoSuchBucket"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "InvalidRequest"),
        ({"name": "a/b"}, "InvalidBucketName"),
        ({"name": " a"}, "InvalidBucketName"),
        ({"name": "x" * 101}, "InvalidBucketName"),
        ({"name": "ok", "id": "a/b"}, "InvalidBucketName"),
        ({"name": "ok", "file_size_limit": "many"}, "InvalidRequest"),
        ({"name": "ok", "file_size_limit": 51 * 1024 * 1024}, "EntityTooLarge"),
        ({"name": "ok", "allowed_mime_types": ["image"]}, "InvalidMimeType"),
        ({"name": "ok", "public": "maybe"}, "InvalidRequest"),
        ({"name": "ok", "type": "ANALYTICS"}, "FeatureNotEnabled"),
    ],
)
async def test_bucket_refusals(store: StorageBackend, body: dict, code: str):
    """Each mistake has its code."""
    answer = await store.call("POST /bucket", body)
    assert answer.status_code == 400
    assert answer.json()["code"] == code
    missing = await store.call("POST /bucket", {})
    assert missing.json()["message"] == "body must have required property 'name'"


async def test_upload_and_download(store: StorageBackend):
    """Raw bytes come back as they went in, with the headers that the row remembers."""
    await store.bucket()
    data = b"hello world" * 3
    up = await store.call(
        "POST /object/things/dir/a%20b.txt", content=data, content_type="text/plain",
        cache_control="max-age=60", x_metadata="eyJhIjoxfQ==",
    )  # fmt: skip
    assert up.status_code == 200, up.text
    assert up.json()["Key"] == "things/dir/a b.txt"
    assert re.fullmatch(r"[0-9a-f-]{36}", up.json()["Id"])
    down = await store.call("GET /object/authenticated/things/dir/a b.txt")
    assert (down.status_code, down.content) == (200, data)
    etag = f'"{hashlib.md5(data).hexdigest()}"'
    assert down.headers["etag"] == etag
    assert down.headers["content-type"] == "text/plain"
    assert down.headers["cache-control"] == "max-age=60"
    assert down.headers["accept-ranges"] == "bytes"
    assert down.headers["x-robots-tag"] == "none"
    assert down.headers["content-length"] == str(len(data))
    info = (await store.call("GET /object/info/things/dir/a%20b.txt")).json()
    assert info["metadata"] == {"a": 1}
    assert (info["size"], info["content_type"], info["etag"]) == (len(data), "text/plain", etag)
    head = await store.call("HEAD /object/things/dir/a%20b.txt")
    assert (head.status_code, head.headers["etag"], head.content) == (200, etag, b"")
    assert (await store.call("HEAD /object/things/nothing")).status_code == 400
    twice = await store.call("POST /object/things/dir/a%20b.txt", content=b"new")
    assert twice.json()["code"] == "KeyAlreadyExists"
    assert twice.json()["statusCode"] == "409"
    over = await store.call("POST /object/things/dir/a%20b.txt", content=b"new", x_upsert="true")
    assert over.json()["Id"] == up.json()["Id"]
    put = await store.call("PUT /object/things/dir/a%20b.txt", content=b"newer")
    assert put.json()["Id"] == up.json()["Id"]
    assert (await store.call("GET /object/things/dir/a%20b.txt")).content == b"newer"
    assert len(store.files()) == 1


async def test_what_a_row_remembers(store: StorageBackend):
    """The metadata column has upstream's members."""
    await store.bucket()
    await store.call("POST /object/things/x", content=b"12345", content_type="text/plain")
    sql = await store.sql()
    [[metadata]] = await sql.query("select metadata - 'lastModified' from storage.objects")
    assert metadata is not None
    assert json.loads(metadata) == {
        "eTag": '"827ccb0eea8a706c4c34a16891f84e7b"', "size": 5, "mimetype": "text/plain",
        "cacheControl": "no-cache", "contentLength": 5, "httpStatusCode": 200,
    }  # fmt: skip


async def test_form_upload(store: StorageBackend):
    """Fields before and after the file count; the file's part may have any name."""
    await store.bucket()
    assert store.http is not None
    headers = {"authorization": f"Bearer {store.keys.service_role_key}"}
    for name, data in (("", b"small"), ("file", b"large" * 200_000)):
        answer = await store.http.post(
            store.url + f"/object/things/form-{name}",
            headers=headers,
            data={"cacheControl": "3600", "metadata": '{"b":2}'},
            files={name: ("a.png", data, "image/png")},
        )
        assert answer.status_code == 200, answer.text
        down = await store.call(f"GET /object/things/form-{name}")
        assert down.content == data
        assert down.headers["cache-control"] == "max-age=3600"
        assert down.headers["content-type"] == "image/png"
    boundary = "b0undary"
    raw = (
        f'--{boundary}\r\nContent-Disposition: form-data; name=""; filename="blob"\r\n'
        "Content-Type: text/plain\r\n\r\nbytes\r\n"
        f'--{boundary}\r\nContent-Disposition: form-data; name="cacheControl"\r\n\r\n7\r\n'
        f"--{boundary}--\r\n"
    ).encode()
    kind = f"multipart/form-data; boundary={boundary}"
    late = await store.call("POST /object/things/late", content=raw, content_type=kind)
    assert late.status_code == 200, late.text
    assert (await store.call("GET /object/things/late")).headers["cache-control"] == "max-age=7"
    cut = await store.call("POST /object/things/cut", content=raw[:120], content_type=kind)
    assert cut.json()["statusCode"] == "400"
    without = raw.replace(b'; filename="blob"', b"")
    none = await store.call("POST /object/things/no", content=without, content_type=kind)
    assert none.json()["message"] == "No content provided"
    assert len(store.files()) == 3


async def test_limits_and_types(store: StorageBackend):
    """The smaller of bucket's and global limit, announced or not; the declared type against the rules."""
    await store.bucket(file_size_limit=10, allowed_mime_types=["image/*", "text/plain"])
    text = "text/plain"
    cases = [
        ({"content": b"x" * 11, "content_type": text}, "413", "Payload too large"),
        ({"content": b"x", "content_type": "application/json"}, "415", "invalid_mime_type"),
        ({"content": b"x", "content_type": "nonsense"}, "415", "invalid_mime_type"),
        ({"content": b"x", "content_type": text, "x_robots_tag": "dance"}, "400", "invalid_x_robots_tag"),
    ]
    for arguments, status, error in cases:
        answer = await store.call("POST /object/things/x", **arguments)
        assert answer.status_code == 400
        assert (answer.json()["statusCode"], answer.json()["error"]) == (status, error), answer.text

    async def unannounced():
        for _ in range(11):
            yield b"x"

    answer = await store.call("POST /object/things/x", content=unannounced(), content_type=text)
    assert answer.json()["statusCode"] == "413"
    sql = await store.sql()
    assert await sql.query("select from storage.objects") == []
    assert store.files() == []
    fine = await store.call("POST /object/things/x", content=b"x" * 10, content_type="IMAGE/png")
    assert fine.status_code == 200
    mark = await store.call("POST /object/things/d/.emptyFolderPlaceholder", content=b"")
    assert mark.status_code == 200
    full = await store.call("POST /object/things/e/.emptyFolderPlaceholder", content=b"x")
    assert full.json()["statusCode"] == "413"


@pytest.mark.parametrize(
    "path",
    [
        "a%00b", "%2e%2e/x", "x/../y", "x/%2e%2e/y", "..%2fx", "./x", "a%5Cb", "a%23b", "a%5Bb%5D", "%C3%A9",
        "a%3Cb", "a%7Cb", "a%22b", "a%60b", "x" * 1025,
    ],
)  # fmt: skip
async def test_keys_that_are_refused(store: StorageBackend, path: str):
    """Traversal in every spelling, control characters, and what upstream does not allow."""
    await store.bucket()
    assert store.listener is not None
    # by hand: clients tidy such paths up before they send them
    reader, writer = await asyncio.open_connection("127.0.0.1", store.listener.port)
    lines = [
        f"POST /storage/v1/object/things/{path} HTTP/1.1",
        "Host: x",
        "Content-Length: 1",
        "Connection: close",
        f"Authorization: Bearer {store.keys.service_role_key}",
    ]
    writer.write(("\r\n".join(lines) + "\r\n\r\nx").encode())
    answer = (await reader.read()).decode()
    writer.close()
    assert '"code":"InvalidKey"' in answer
    assert store.files() == []


async def test_keys_that_are_allowed(store: StorageBackend):
    """Every other character, slashes in odd places, encoded or not."""
    await store.bucket()
    key = "A z_!-.*'()&$=@;:+,?/%2Fx//.hidden/..."
    answer = await store.call(
        f"POST /object/things/{key.replace('?', '%3F').replace(' ', '%20')}", content=b"1"
    )
    assert answer.json()["Key"] == "things/A z_!-.*'()&$=@;:+,?//x//.hidden/..."
    assert (await store.call("POST /object/things//dbl//x", content=b"1")).json()["Key"] == "things//dbl//x"


async def test_ranges_and_conditions(store: StorageBackend):
    """One range, clamped; malformed and impossible ones a real 416; unchanged objects 304."""
    await store.bucket(public=True)
    await store.call("POST /object/things/x", content=b"0123456789")
    path = "GET /object/public/things/x"
    for header, status, content in [
        ("bytes=2-4", 206, b"234"), ("bytes=8-99", 206, b"89"), ("bytes=-3", 206, b"789"),
        ("bytes=5-", 206, b"56789"),
    ]:  # fmt: skip
        answer = await store.call(path, range=header)
        assert (answer.status_code, answer.content) == (status, content)
    assert answer.headers["content-range"] == "bytes 5-9/10"
    for header in (
        "bytes=10-",
        "bytes=5-2",
        "bytes=a-b",
        "items=0-1",
        "bytes=-0",
        "bytes=-",
        "bytes=0-1,3-4",
    ):
        answer = await store.call(path, range=header)
        assert (answer.status_code, answer.json()["code"]) == (416, "InvalidRange")
    plain = await store.call(path)
    same = await store.call(path, if_none_match=plain.headers["etag"])
    assert (same.status_code, same.content) == (304, b"")
    since = await store.call(path, if_modified_since=plain.headers["last-modified"])
    assert since.status_code == 304
    changed = await store.call(path, if_none_match='"other"')
    assert changed.headers["cache-control"] == "no-cache, stale-while-revalidate=30"
    named = await store.call(path + "?download=ä b.txt&cacheNonce=1")
    assert named.headers["content-disposition"] == (
        "attachment; filename=%C3%A4%20b.txt; filename*=UTF-8''%C3%A4%20b.txt"
    )
    assert (await store.call(path + "?download")).headers["content-disposition"] == "attachment;"


async def test_large_objects_are_streamed(store: StorageBackend):
    """Several pieces up and down, and a range across them."""
    await store.bucket()
    data = bytes(range(256)) * 4 * 3000
    up = await store.call("POST /object/things/large", content=data)
    assert up.status_code == 200
    down = await store.call("GET /object/things/large")
    assert hashlib.sha256(down.content).digest() == hashlib.sha256(data).digest()
    part = await store.call("GET /object/things/large", range="bytes=500000-1600000")
    assert part.content == data[500000:1600001]


async def test_html_is_never_served_as_html(store: StorageBackend):
    """A page among the objects must not run as the site's own."""
    await store.bucket(public=True)
    await store.call("POST /object/things/x.html", content=b"<b>", content_type="text/html; charset=utf-8")
    assert (await store.call("GET /object/public/things/x.html")).headers["content-type"] == "text/plain"


async def test_row_without_bytes(store: StorageBackend):
    """A seed's object can be listed, described, moved and removed; its bytes are told to be missing."""
    sql = await store.sql()
    await sql.script(
        "insert into storage.buckets (id, name, public) values ('seeds', 'seeds', true);"
        "insert into storage.objects (bucket_id, name) values ('seeds', 'a'), ('seeds', 'b');"
        "update storage.objects set version = '../../etc/passwd', metadata = '{\"size\": 5}' where name = 'b'"
    )
    for name in ("a", "b"):
        answer = await store.call(f"GET /object/public/seeds/{name}")
        assert (answer.status_code, answer.json()["error"]) == (400, "Not found")
        assert answer.json()["message"] == "The resource was not found"
        assert answer.headers["cache-control"] == "no-store"
    assert (await store.call("GET /object/info/seeds/a")).status_code == 200
    pair = {"bucketId": "seeds", "sourceKey": "a", "destinationKey": "c"}
    assert (await store.call("POST /object/move", pair)).status_code == 200
    gone = await store.call("DELETE /object/seeds", {"prefixes": ["b", "c"]})
    assert [row["name"] for row in gone.json()] == ["b", "c"]


async def test_move_and_copy(store: StorageBackend):
    """A move keeps id, creation and bytes; a copy is another object with the same bytes."""
    await store.bucket()
    await store.bucket("other", allowed_mime_types=["text/plain"])
    up = await store.call("POST /object/things/a", content=b"1", x_metadata="eyJhIjoxfQ==")
    pair = {"bucketId": "things", "sourceKey": "a", "destinationKey": "b"}
    assert (await store.call("POST /object/move", pair)).json() == {"message": "Successfully moved"}
    assert (await store.call("GET /object/things/a")).json()["code"] == "NoSuchKey"
    info = (await store.call("GET /object/info/things/b")).json()
    assert (info["id"], info["metadata"]) == (up.json()["Id"], {"a": 1})
    copied = await store.call("POST /object/copy", {**pair, "sourceKey": "b", "destinationKey": "c"})
    assert copied.json()["Key"] == "things/c"
    assert copied.json()["Id"] != up.json()["Id"]
    assert (await store.call("GET /object/things/c")).content == b"1"
    for line in ("POST /object/move", "POST /object/copy"):
        taken = await store.call(line, {**pair, "sourceKey": "b", "destinationKey": "c"})
        assert taken.json()["error"] == "Duplicate"
        lost = await store.call(line, {**pair, "sourceKey": "nothing"})
        assert lost.json()["code"] == "NoSuchKey"
        nowhere = await store.call(line, {**pair, "sourceKey": "b", "destinationBucket": "none"})
        assert nowhere.json()["code"] == "NoSuchBucket"
        bad = await store.call(line, {**pair, "sourceKey": "b", "destinationKey": "../x"})
        assert bad.json()["code"] == "InvalidKey"
    over = await store.call(
        "POST /object/copy", {**pair, "sourceKey": "b", "destinationKey": "c"}, x_upsert="true"
    )
    assert over.json()["Id"] == copied.json()["Id"]
    across = {**pair, "sourceKey": "b", "destinationKey": "d", "destinationBucket": "other"}
    assert (await store.call("POST /object/copy", across)).json()["code"] == "InvalidMimeType"
    changed = {
        **across,
        "copyMetadata": False,
        "metadata": {"mimetype": "text/plain", "cacheControl": "max-age=9"},
    }
    assert (await store.call("POST /object/copy", changed)).status_code == 200
    there = await store.call("GET /object/other/d")
    assert (there.content, there.headers["cache-control"]) == (b"1", "max-age=9")
    same = {"bucketId": "things", "sourceKey": "b", "destinationKey": "b"}
    assert (await store.call("POST /object/move", same)).status_code == 200
    assert len(store.files()) == 3


async def test_delete(store: StorageBackend):
    """One or many by exact name; bytes go with the rows."""
    await store.bucket()
    for name in ("a", "b", "c/d"):
        await store.call(f"POST /object/things/{name}", content=b"1")
    assert (await store.call("DELETE /object/things/a")).json() == {"message": "Successfully deleted"}
    assert (await store.call("DELETE /object/things/a")).json()["code"] == "NoSuchKey"
    gone = await store.call("DELETE /object/things", {"prefixes": ["b", "c", "c/d", "nothing"]})
    assert sorted(row["name"] for row in gone.json()) == ["b", "c/d"]
    assert gone.json()[0]["owner"] == ""
    assert store.files() == []
    assert (await store.call("DELETE /object/nowhere", {"prefixes": ["b"]})).json() == []
    for body in ({}, {"prefixes": []}, {"prefixes": "a"}, {"prefixes": [1]}):
        assert (await store.call("DELETE /object/things", body)).json()["code"] == "InvalidRequest"


async def test_listing(store: StorageBackend):
    """One level, names relative to the prefix, folders without anything but a name."""
    await store.bucket()
    for name in ("b.txt", "A.txt", "folder/x", "folder/sub/y", "z"):
        await store.call(f"POST /object/things/{name}", content=b"1")
    root = (await store.call("POST /object/list/things", {"prefix": ""})).json()
    assert [entry["name"] for entry in root] == ["A.txt", "b.txt", "folder", "z"]
    assert root[2] == {
        "name": "folder", "id": None, "updated_at": None, "created_at": None, "last_accessed_at": None,
        "metadata": None,
    }  # fmt: skip
    assert root[0]["metadata"]["size"] == 1
    below = (await store.call("POST /object/list/things", {"prefix": "folder"})).json()
    assert [entry["name"] for entry in below] == ["sub", "x"]
    page = {"prefix": "", "limit": 2, "offset": 1, "sortBy": {"column": "name", "order": "desc"}}
    some = (await store.call("POST /object/list/things", page)).json()
    assert [entry["name"] for entry in some] == ["folder", "b.txt"]
    timed = {"prefix": "", "sortBy": {"column": "created_at", "order": "asc"}}
    by_time = (await store.call("POST /object/list/things", timed)).json()
    assert [entry["name"] for entry in by_time] == ["folder", "b.txt", "A.txt", "z"]
    found = (await store.call("POST /object/list/things", {"prefix": "", "search": "a"})).json()
    assert [entry["name"] for entry in found] == ["A.txt"]
    assert (await store.call("POST /object/list/things", {})).json()["code"] == "InvalidRequest"
    assert (await store.call("POST /object/list/nowhere", {"prefix": ""})).json() == []


async def test_tokens(store: StorageBackend):
    """What is wrong with a token is said in upstream's words, with 400 and a 403 inside."""
    assert store.http is not None
    words = {
        None: "Invalid Compact JWS",
        "x": "Invalid Compact JWS",
        "!.b.c": "JWS Protected Header is invalid",
        store.token(ADA)[:-3] + "abc": "signature verification failed",
        store.token(ADA, exp=1): '"exp" claim timestamp check failed',
    }
    for token, message in words.items():
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        answer = await store.http.get(store.url + "/bucket", headers=headers)
        assert answer.status_code == 400
        assert answer.json() == {
            "statusCode": "403", "error": "Unauthorized", "message": message, "code": "AccessDenied",
        }  # fmt: skip
    by_key = await store.http.get(store.url + "/bucket", headers={"apikey": store.keys.secret_key})
    assert by_key.status_code == 200
    lost = await store.http.get(store.url + "/object")
    assert (lost.status_code, lost.json()["error"]) == (404, "Not Found")


async def test_health(store: StorageBackend):
    """Status is open, health asks the database."""
    assert store.http is not None
    assert (await store.http.get(store.url + "/status")).status_code == 200
    assert (await store.call("GET /health")).json() == {"healthy": True}


async def test_cache_that_is_not_there(store: StorageBackend):
    """Purging is for the service, and has nothing to do."""
    for path in ("/cdn", "/cdn/", "/cdn/things", "/cdn/things/a/b?transformations=true"):
        assert (await store.call(f"DELETE {path}")).json() == {"message": "success"}
    assert (await store.call("DELETE /cdn/things", token=store.keys.anon_key)).status_code == 403


async def test_head_of_info(store: StorageBackend):
    """It tells what a download would."""
    await store.bucket()
    await store.call("POST /object/things/x", content=b"hello")
    head = await store.call("HEAD /object/info/things/x")
    assert (head.headers["content-length"], head.headers["etag"][0], head.content) == ("5", '"', b"")


async def test_upload_that_breaks_off(store: StorageBackend):
    """Nothing is visible and nothing is left, and the next upload of the same key is as if it never was."""
    await store.bucket()
    assert store.listener is not None
    _, writer = await asyncio.open_connection("127.0.0.1", store.listener.port)
    lines = [
        "POST /storage/v1/object/things/x HTTP/1.1",
        "Host: x",
        "Content-Length: 5000000",
        f"Authorization: Bearer {store.keys.service_role_key}",
    ]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + b"x" * 2_000_000)
    await writer.drain()
    async with asyncio.timeout(20):
        while not store.files():
            await asyncio.sleep(0.01)
        writer.transport.abort()
        while store.files():
            await asyncio.sleep(0.01)
    assert (await store.call("GET /object/things/x")).json()["code"] == "NoSuchKey"
    assert (await store.call("POST /object/things/x", content=b"1")).status_code == 200


async def test_two_writers_of_one_key(store: StorageBackend):
    """Whoever commits last is what is read; the other's bytes are gone; one row, one file."""
    await store.bucket()
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]
    answers = await asyncio.gather(
        *(store.call("PUT /object/things/x", content=content) for content in contents)
    )
    assert [answer.status_code for answer in answers] == [200] * 8
    assert (await store.call("GET /object/things/x")).content in contents
    assert len(store.files()) == 1
