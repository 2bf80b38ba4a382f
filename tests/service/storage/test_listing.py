"""Listing by pages: every entry once, in order, whatever the order, with folders and without."""

from __future__ import annotations

import random

import pytest

from tests.kit.fix_storage import StorageBackend

KEYS = [
    "B",
    "a",
    "a-b",
    "a/x",
    "a/y/z",
    "b.txt",
    "deep/er/1",
    "deep/er/2",
    "deep/est",
    "z/",
    "zz",
]


async def seed(store: StorageBackend, keys: list[str]) -> None:
    sql = await store.sql("supabase_storage_admin")
    await sql.script("insert into storage.buckets (id, name) values ('things', 'things')")
    for number, key in enumerate(random.Random(7).sample(keys, len(keys))):
        await sql.query(
            "insert into storage.objects (bucket_id, name, created_at, metadata) values ('things', $1,"
            " timestamptz '2026-01-01' + $2::text::integer * interval '1 minute', '{}')",
            key, str(number),
        )  # fmt: skip


async def pages(store: StorageBackend, **options) -> list[dict]:
    out: list[dict] = []
    body = dict(options)
    while True:
        answer = await store.call("POST /object/list-v2/things", body)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["folders"]) + len(page["objects"]) <= options.get("limit", 1000)
        out += page["folders"] + page["objects"]
        if not page["hasNext"]:
            return out
        body["cursor"] = page["nextCursor"]


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_every_entry_once(store: StorageBackend, order: str, limit: int):
    """Small pages give what one page gives, also where a file and a folder share a name."""
    await seed(store, KEYS)
    for column in ("name", "created_at"):
        for with_delimiter in (True, False):
            for prefix in ("", "deep/", "a", "z/"):
                options = {
                    "prefix": prefix, "with_delimiter": with_delimiter,
                    "sortBy": {"column": column, "order": order},
                }  # fmt: skip
                whole = [entry["name"] for entry in await pages(store, **options)]
                some = [entry["name"] for entry in await pages(store, **options, limit=limit)]
                assert sorted(some) == sorted(whole), options
                assert len(set(whole)) == len(whole)
                if not with_delimiter:
                    assert sorted(whole) == sorted(key for key in KEYS if key.startswith(prefix))


async def test_shape(store: StorageBackend):
    """Folders end with a slash and have nothing else; keys are last segments; order is by bytes."""
    await seed(store, KEYS)
    answer = (await store.call("POST /object/list-v2/things", {"with_delimiter": True, "cursor": ""})).json()
    assert [folder["name"] for folder in answer["folders"]] == ["a/", "deep/", "z/"]
    assert answer["folders"][0] == {
        "key": "a", "name": "a/", "id": None, "updated_at": None, "created_at": None,
        "last_accessed_at": None, "metadata": None,
    }  # fmt: skip
    assert [entry["name"] for entry in answer["objects"]] == ["B", "a", "a-b", "b.txt", "zz"]
    assert answer["hasNext"] is False
    assert "nextCursor" not in answer
    below = (
        await store.call("POST /object/list-v2/things", {"with_delimiter": True, "prefix": "deep/"})
    ).json()
    assert (below["folders"][0]["key"], below["folders"][0]["name"]) == ("er", "deep/er/")
    assert (below["objects"][0]["key"], below["objects"][0]["name"]) == ("est", "deep/est")


@pytest.mark.parametrize(
    "cursor", ["x", "bDo=", "!!!", "bDphCm86dXA=", "bDphCmM6c2l6ZQ==", "bDphCmM6Y3JlYXRlZF9hdAphOnNvb24="]
)
async def test_garbage_is_no_cursor(store: StorageBackend, cursor: str):
    """What was not made here is refused by name."""
    await store.bucket()
    answer = await store.call("POST /object/list-v2/things", {"cursor": cursor})
    assert answer.json()["code"] == "InvalidParameter"
    assert answer.json()["message"] == "Invalid Parameter continuation token"


async def test_offsets_far_into_a_level(store: StorageBackend):
    """What is passed over is exactly that, whether files alone lie there or folders between them."""
    await store.bucket("many")
    admin = await store.sql()
    await admin.script(
        "insert into storage.objects (bucket_id, name)"
        " select 'many', 'flat/' || lpad(n::text, 5, '0') from generate_series(0, 2999) n;"
        "insert into storage.objects (bucket_id, name)"
        " select 'many', 'mixed/' || lpad(n::text, 5, '0') || case when n % 3 = 0 then '/x' else '' end"
        " from generate_series(0, 899) n"
    )
    for prefix, count in (("flat", 3000), ("mixed", 900)):
        names = [f"{number:05}" for number in range(count)]
        for order in ("asc", "desc"):
            wanted = names if order == "asc" else names[::-1]
            for offset in (0, 100, 101, 777, count - 1, count, count + 500):
                answer = await store.call(
                    "POST /object/list/many",
                    {"prefix": prefix, "limit": 7, "offset": offset,
                     "sortBy": {"column": "name", "order": order}},
                )  # fmt: skip
                assert [item["name"] for item in answer.json()] == wanted[offset : offset + 7]
