"""Row level security decides, as the caller, and with exactly the policies that upstream needs."""

from __future__ import annotations

import pytest

from tests.kit.fix_storage import StorageBackend
from tests.service.storage.test_spine import ADA, BOB


async def test_without_policies_nobody_but_the_service_sees_anything(store: StorageBackend):
    """Lists are empty, objects are not found, uploads are refused, and nothing is left on disk."""
    await store.bucket()
    await store.call("POST /object/things/x", content=b"1")
    ada = store.token(ADA)
    assert (await store.call("GET /bucket", token=ada)).json() == []
    assert (await store.call("POST /object/list/things", {"prefix": ""}, token=ada)).json() == []
    assert (await store.call("GET /object/things/x", token=ada)).json()["code"] == "NoSuchKey"
    refused = await store.call("POST /object/things/y", content=b"1", token=ada)
    assert refused.status_code == 400
    assert refused.json() == {
        "statusCode": "403", "error": "Unauthorized", "message": "new row violates row-level security policy",
        "code": "AccessDenied",
    }  # fmt: skip
    assert (await store.call("POST /bucket", {"name": "b"}, token=ada)).json()["code"] == "AccessDenied"
    assert (await store.call("DELETE /bucket/things", token=ada)).json()["code"] == "ResourceNotEmpty"
    assert len(store.files()) == 1


NEEDED = {
    "upload": {"insert"},
    "upload with upsert, new": {"insert", "select"},
    "upload with upsert, existing": {"insert", "select", "update"},
    "download": {"select"},
    "sign download": {"select"},
    "sign upload": {"insert"},
    "delete one": {"select", "delete"},
    "move": {"select", "update"},
    "copy": {"select", "insert"},
}


async def attempt(backend: StorageBackend, what: str, token: str) -> int:
    pair = {"bucketId": "things", "sourceKey": "old", "destinationKey": "new"}
    calls = {
        "upload": ("POST /object/things/new", {"content": b"1"}),
        "upload with upsert, new": ("POST /object/things/new", {"content": b"1", "x_upsert": "true"}),
        "upload with upsert, existing": ("POST /object/things/old", {"content": b"2", "x_upsert": "true"}),
        "download": ("GET /object/authenticated/things/old", {}),
        "sign download": ("POST /object/sign/things/old", {"body": {"expiresIn": 60}}),
        "sign upload": ("POST /object/upload/sign/things/new", {}),
        "delete one": ("DELETE /object/things/old", {}),
        "move": ("POST /object/move", {"body": pair}),
        "copy": ("POST /object/copy", {"body": pair}),
    }
    line, arguments = calls[what]
    return (await backend.call(line, token=token, **arguments)).status_code


@pytest.mark.parametrize("what", NEEDED)
async def test_exactly_the_needed_policies(store: StorageBackend, what: str):
    """With them it works; with all others and one of them missing it does not."""
    await store.bucket()
    sql = await store.sql()
    ada = store.token(ADA)
    commands = ("select", "insert", "update", "delete")

    async def allow(some: set[str]) -> None:
        await store.call("POST /bucket/things/empty")
        await store.call("POST /object/things/old", content=b"1")
        for command in commands:
            await sql.script(f'drop policy if exists "{command}" on storage.objects')
            if command in some:
                clause = {"insert": "with check (true)", "update": "using (true) with check (true)"}.get(
                    command, "using (true)"
                )
                await sql.script(
                    f'create policy "{command}" on storage.objects for {command} to authenticated {clause}'
                )

    await allow(NEEDED[what])
    assert await attempt(store, what, ada) == 200
    for missing in NEEDED[what]:
        await allow(set(commands) - {missing})
        assert await attempt(store, what, ada) == 400, missing


async def test_policies_by_folder_owner_and_declared_facts(store: StorageBackend):
    """The usual policies: a folder per user, one's own objects, type and size as declared."""
    await store.bucket()
    sql = await store.sql()
    await sql.script(
        "create policy own_folder on storage.objects for insert to authenticated with check ("
        " bucket_id = 'things' and (storage.foldername(name))[1] = (select auth.uid())::text"
        " and metadata ->> 'mimetype' like 'image/%' and (metadata ->> 'contentLength')::int <= 10"
        " and storage.extension(name) = 'png');"
        "create policy own_objects on storage.objects for select to authenticated using (owner = auth.uid());"
        "create policy own_id on storage.objects for delete to authenticated"
        " using (owner_id = (select auth.uid()::text));"
    )
    ada, bob = store.token(ADA), store.token(BOB)
    png = {"content": b"12345", "content_type": "image/png"}
    fine = await store.call(f"POST /object/things/{ADA}/a.png", token=ada, **png)
    assert fine.status_code == 200
    for path, arguments in [
        (f"{BOB}/a.png", png),
        (f"{ADA}/a.jpg", png),
        (f"{ADA}/b.png", {**png, "content_type": "text/plain"}),
        (f"{ADA}/c.png", {**png, "content": b"x" * 11}),
    ]:
        answer = await store.call(f"POST /object/things/{path}", token=ada, **arguments)
        assert answer.json()["code"] == "AccessDenied"
    path = f"/object/things/{ADA}/a.png"
    assert (await store.call(f"GET {path}", token=ada)).content == b"12345"
    assert (await store.call(f"GET {path}", token=bob)).json()["code"] == "NoSuchKey"
    assert (await store.call("DELETE /object/things", {"prefixes": [f"{ADA}/a.png"]}, token=bob)).json() == []
    assert (await store.call(f"DELETE {path}", token=bob)).json()["code"] == "AccessDenied"
    assert (await store.call(f"DELETE {path}", token=ada)).status_code == 200
    assert store.files() == []


async def test_tolerant_routes(store: StorageBackend):
    """Without a good token only public buckets are served; a private one is not even named."""
    await store.bucket("open", public=True)
    await store.bucket("closed")
    for bucket in ("open", "closed"):
        await store.call(f"POST /object/{bucket}/x", content=b"1")
    assert store.http is not None
    for headers in ({}, {"authorization": "Bearer nonsense"}):
        for path in (
            "/object/open/x",
            "/object/info/open/x",
            "/object/public/open/x",
            "/object/info/public/open/x",
        ):
            assert (await store.http.get(store.url + path, headers=headers)).status_code == 200
        for path in ("/object/closed/x", "/object/info/closed/x", "/object/public/closed/x"):
            answer = await store.http.get(store.url + path, headers=headers)
            assert answer.json()["code"] == "NoSuchBucket"
    strict = await store.http.get(store.url + "/object/authenticated/open/x")
    assert strict.json()["code"] == "AccessDenied"


async def test_operation_is_told_to_policies(store: StorageBackend):
    """A policy may allow some routes only, by name with or without prefix."""
    await store.bucket()
    await store.call("POST /object/things/x", content=b"1")
    sql = await store.sql()
    await sql.script(
        "create policy only_download on storage.objects for select to authenticated"
        " using (storage.allow_any_operation(array['object.get_authenticated', 'nonsense']))"
    )
    ada = store.token(ADA)
    assert (await store.call("GET /object/things/x", token=ada)).status_code == 200
    assert (await store.call("GET /object/info/things/x", token=ada)).status_code == 400
    assert (await store.call("POST /object/list/things", {"prefix": ""}, token=ada)).json() == []


async def test_signed_urls(store: StorageBackend):
    """Made as the caller, used by anybody; for one object, one use and a time."""
    await store.bucket()
    await store.call("POST /object/things/a b", content=b"1")
    signed = await store.call("POST /object/sign/things/a b", {"expiresIn": "60"})
    url = signed.json()["signedURL"]
    assert url.startswith("/object/sign/things/a b?token=")
    assert store.http is not None
    fetch = store.http.get
    got = await fetch(store.url + url + "&download=x")
    assert (got.status_code, got.content) == (200, b"1")
    assert "expires" in got.headers
    assert "cache-control" not in got.headers
    token = url.partition("token=")[2]
    other = await fetch(f"{store.url}/object/sign/things/other?token={token}")
    assert other.json()["code"] == "InvalidSignature"
    assert (await fetch(store.url + url[:-2] + "xx")).json()["code"] == "InvalidJWT"
    assert (await fetch(store.url + "/object/sign/things/a b")).json()["message"] == (
        "querystring must have required property 'token'"
    )
    as_upload = await store.http.put(f"{store.url}/object/upload/sign/things/a b?token={token}", content=b"2")
    assert as_upload.json()["message"] == "Token is not scoped for upload"
    store.clock.turn(seconds=61)
    late = await fetch(store.url + url)
    assert late.json()["message"] == '"exp" claim timestamp check failed'
    many = await store.call("POST /object/sign/things", {"expiresIn": 60, "paths": ["a b", "nothing"]})
    found, missing = many.json()
    assert found["error"] is None
    assert found["signedURL"].startswith("/object/sign/things/a b?token=")
    assert missing == {
        "error": "Either the object does not exist or you do not have access to it", "path": "nothing",
        "signedURL": None,
    }  # fmt: skip
    for body in ({}, {"expiresIn": 0}, {"expiresIn": "soon"}):
        answer = await store.call("POST /object/sign/things/a b", body)
        assert answer.json()["code"] == "InvalidRequest"


async def test_signed_uploads(store: StorageBackend):
    """The right to write is asked when signing; the token names owner and upsert and nothing else may."""
    await store.bucket()
    sql = await store.sql()
    await sql.script("create policy i on storage.objects for insert to authenticated with check (true)")
    ada = store.token(ADA)
    signed = (await store.call("POST /object/upload/sign/things/x", token=ada)).json()
    assert signed["url"] == f"/object/upload/sign/things/x?token={signed['token']}"
    assert store.http is not None
    up = await store.http.put(store.url + signed["url"], content=b"1")
    assert (up.status_code, up.json()) == (200, {"Key": "things/x"})
    again = await store.http.put(store.url + signed["url"], content=b"2", headers={"x-upsert": "true"})
    assert again.json()["statusCode"] == "409"
    assert await sql.query("select owner_id, owner::text from storage.objects") == [[ADA, ADA]]
    assert (await store.call("POST /object/upload/sign/things/x", token=ada)).json()["statusCode"] == "409"
    # an upsert has to see what it may replace, also while there is nothing
    upsert = "POST /object/upload/sign/things/y"
    assert (await store.call(upsert, token=ada, x_upsert="true")).json()["code"] == "AccessDenied"
    service = (await store.call("POST /object/upload/sign/things/x", x_upsert="true")).json()
    for content in (b"3", b"4"):
        answer = await store.http.put(store.url + service["url"], content=content)
        assert answer.status_code == 200
    assert await sql.query("select owner_id from storage.objects") == [[ADA]]
