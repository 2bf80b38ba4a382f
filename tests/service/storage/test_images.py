"""Images as browsers ask for them, and images that nobody should open."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import struct
import zlib
from typing import Any

import pytest
from PIL import Image

from tests.kit.fix_storage import StorageBackend
from toft.host import processes


def picture(width: int, height: int, kind: str = "PNG", mode: str = "RGB", **options: Any) -> bytes:
    """Left half red, right half blue."""
    image = Image.new(mode, (width, height), "#ff000080" if mode == "RGBA" else "red")
    image.paste("blue", (width // 2, 0, width, height))
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


async def put(store: StorageBackend, data: bytes, name: str = "x") -> None:
    answer = await store.call(f"PUT /object/things/{name}", content=data, content_type="text/plain")
    assert answer.status_code == 200, answer.text


async def get(store: StorageBackend, query: str = "", name: str = "x", **headers: str) -> Any:
    return await store.call(f"GET /render/image/authenticated/things/{name}?{query}", **headers)


def opened(answer: Any) -> Image.Image:
    assert answer.status_code == 200, answer.text
    return Image.open(io.BytesIO(answer.content))


@pytest.mark.parametrize(
    ("query", "size"),
    [
        ("", (400, 200)),
        ("width=100&height=100", (100, 100)),
        ("width=100&height=100&resize=contain", (100, 50)),
        ("width=100&height=100&resize=fill", (100, 100)),
        ("width=100", (100, 50)),
        ("height=100", (200, 100)),
        ("width=1000", (400, 200)),
        ("width=1000&height=100", (400, 100)),
        ("width=5000&height=5000&resize=contain", (400, 200)),
        ("width=0&height=50", (100, 50)),
        ("width=1&height=1", (1, 1)),
    ],
)
async def test_sizes(store: StorageBackend, query: str, size: tuple[int, int]):
    """Cropped, fitted or stretched, and never larger than the source."""
    await store.bucket()
    await put(store, picture(400, 200))
    assert opened(await get(store, query)).size == size


async def test_what_an_answer_tells(store: StorageBackend):
    """Type by the bytes, ETag of the source, what was done, and the usual headers of a download."""
    await store.bucket()
    await put(store, picture(300, 300, "JPEG"))
    answer = await get(store, "width=200&height=200&quality=60&download=a.jpg")
    assert answer.headers["content-type"] == "image/jpeg"
    told = answer.headers["x-transformations"]
    assert told == "height:200,width:200,resizing_type:fill,quality:60"
    source = await store.call("GET /object/things/x")
    assert answer.headers["etag"] == source.headers["etag"]
    assert answer.headers["content-disposition"].startswith("attachment; filename=a.jpg")
    assert (await get(store, "width=200", if_none_match=source.headers["etag"])).status_code == 304


async def test_formats(store: StorageBackend):
    """By name, by what the client accepts, or that of the source; transparency survives."""
    await store.bucket()
    await put(store, picture(40, 20, "PNG", "RGBA"))
    assert opened(await get(store, "format=webp")).format == "WEBP"
    assert opened(await get(store, "format=avif")).format == "AVIF"
    assert opened(await get(store)).format == "PNG"
    chrome = "image/avif,image/webp,image/*,*/*;q=0.8"
    seen = await get(store, accept=chrome)
    assert (opened(seen).format, seen.headers["vary"]) == ("WEBP", "Accept")
    assert opened(seen).mode == "RGBA"
    assert opened(await get(store, "format=origin", accept=chrome)).format == "PNG"
    for kind in ("GIF", "BMP", "TIFF", "WEBP"):
        await put(store, picture(40, 20, kind), kind)
        assert opened(await get(store, "width=20", kind)).size == (20, 10)


async def test_the_part_that_is_kept(store: StorageBackend):
    """Gravity and focus say what a crop shows."""
    await store.bucket()
    await put(store, picture(400, 100))

    async def colour(query: str) -> str:
        shown = opened(await get(store, f"width=100&height=100&{query}")).convert("RGB").getpixel((50, 50))
        assert isinstance(shown, tuple)
        return "red" if shown[0] > 200 else "blue"

    assert await colour("gravity=we") == "red"
    assert await colour("gravity=ea") == "blue"
    assert await colour("gravity=fp&x_offset=0&y_offset=0.5") == "red"
    assert await colour("gravity=fp&x_offset=1&y_offset=0.5") == "blue"


async def test_a_photograph_that_lies_on_its_side(store: StorageBackend):
    """It is turned as its camera says before anything else."""
    await store.bucket()
    exif = Image.Exif()
    exif[0x0112] = 6
    await put(store, picture(400, 200, "JPEG", exif=exif))
    assert opened(await get(store, "width=100")).size == (100, 200)


async def test_drawings(store: StorageBackend):
    """SVG passes through unchanged, and may run nothing."""
    await store.bucket()
    drawing = (
        b'<?xml version="1.0"?><!-- x --><svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>'
    )
    await put(store, drawing)
    answer = await get(store, "width=100")
    assert (answer.content, answer.headers["content-type"]) == (drawing, "image/svg+xml")
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_signed(store: StorageBackend):
    """The token says what is done, whatever the query adds."""
    await store.bucket()
    await put(store, picture(400, 200))
    body = {"expiresIn": 60, "transform": {"width": 100, "height": 100, "resize": "contain"}}
    signed = (await store.call("POST /object/sign/things/x", body)).json()["signedURL"]
    assert signed.startswith("/render/image/sign/")
    assert store.http is not None
    answer = await store.http.get(f"{store.url}{signed}&width=10")
    assert opened(answer).size == (100, 50)
    assert "cache-control" not in answer.headers
    assert (await store.http.get(f"{store.url}{signed}x")).status_code == 400
    focus = {"gravity": "fp", "x_offset": 0, "y_offset": 1, "width": 1, "height": 1, "resize": "cover"}
    signed = (await store.call("POST /object/sign/things/x", {"expiresIn": 60, "transform": focus})).json()
    answer = await store.http.get(f"{store.url}{signed['signedURL']}")
    assert "gravity:fp:0:1" in answer.headers["x-transformations"]


async def test_who_may(store: StorageBackend):
    """As for downloads: policies judge, and only public buckets are public."""
    await store.bucket()
    await store.bucket("open", public=True)
    await put(store, picture(4, 4))
    await store.call("PUT /object/open/x", content=picture(4, 4))
    assert store.http is not None
    assert (await store.http.get(f"{store.url}/render/image/public/open/x")).status_code == 200
    assert (await store.http.get(f"{store.url}/render/image/public/things/x")).json()[
        "code"
    ] == "NoSuchBucket"
    user = store.token("7f4e8f4e-4d2c-4f0a-8a8e-0d6f4d3c2b1a")
    hidden = await store.call("GET /render/image/authenticated/things/x", token=user)
    assert hidden.json()["code"] == "NoSuchKey"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("width=-1", "querystring/width must be >= 0"),
        ("height=x", "querystring/height must be integer"),
        ("quality=19", "querystring/quality must be >= 20"),
        ("quality=101", "querystring/quality must be <= 100"),
        ("resize=bend", "querystring/resize must be equal to one of the allowed values"),
        ("format=bmp", "querystring/format must be equal to one of the allowed values"),
        ("gravity=fp&x_offset=0", "querystring must have required property 'y_offset'"),
        ("gravity=fp&x_offset=2&y_offset=0", "querystring/x_offset must be <= 1"),
        ("x_offset=inf", "querystring/x_offset must be number"),
    ],
)
async def test_what_may_not_be_asked(store: StorageBackend, query: str, message: str):
    """Each in a validator's words."""
    await store.bucket()
    await put(store, picture(4, 4))
    answer = await get(store, query)
    assert (answer.status_code, answer.json()["message"]) == (400, message)


def png_of(width: int, height: int, rows: bytes) -> bytes:
    """A PNG that says it is that large."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not an image",
        b"\xff\xd8\xff\xe0 and no more",
        picture(50, 50)[:-30],
        picture(50, 50, "GIF")[:60],
        b"\x00\x00\x00\x10ftypmif1\x00\x00\x00\x00",
        b"<html><svg></svg></html>",
        png_of(100_000, 100_000, zlib.compress(bytes(100_000))),
        png_of(7_000, 7_200, zlib.compress(bytes(10_000_000))),
        png_of(2**31 - 1, 2**31 - 1, b""),
    ],
    ids=["empty", "text", "head", "cut", "cut gif", "heif", "html", "bomb", "rows missing", "largest"],
)
async def test_images_that_are_none(store: StorageBackend, data: bytes):
    """Damaged ones, lies about their size, bombs: refused, and the next image is rendered."""
    await store.bucket()
    await put(store, data, "bad")
    answer = await get(store, "width=10", "bad")
    assert answer.status_code == 400, answer.content[:100]
    assert answer.json()["error"] == "InvalidRequest"
    assert answer.json()["message"].startswith("The source image ")
    await put(store, picture(4, 4))
    assert opened(await get(store)).size == (4, 4)


async def test_a_painter_that_dies(store: StorageBackend):
    """The image that killed it is refused; others, and other requests meanwhile, notice nothing."""
    await store.bucket()
    await put(store, picture(40, 40))
    assert opened(await get(store, "width=20")).size == (20, 20)
    [painter] = [child for child in processes.children(os.getpid()) if is_painter(child.pid)]
    processes.send(painter, signal.SIGSTOP)
    waiting = asyncio.ensure_future(get(store, "width=10"))
    assert (await store.call("GET /object/things/x")).status_code == 200
    processes.send(painter, signal.SIGKILL)
    assert (await waiting).status_code == 400
    assert opened(await get(store, "width=10")).size == (10, 10)


def is_painter(pid: int) -> bool:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"toft.storage.images.painter" in file.read()


async def test_switched_off(store: StorageBackend):
    """A project that wants no rendering gets none."""
    await store.bucket()
    await put(store, picture(4, 4))
    store.configure(renders_images=False)
    assert (await get(store)).json()["code"] == "FeatureNotEnabled"
