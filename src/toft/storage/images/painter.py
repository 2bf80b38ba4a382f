"""The process that opens images: `python -m toft.storage.images.painter`, an order and a picture at a time.

Whatever an image does to a decoder, it does it here: without rights, with little memory, in no hurry of
anybody else. It speaks through its standard input, a socket: each way a length of four bytes and JSON, then
the bytes whose number the JSON tells. It ends when nobody is at the other end any more.
"""

from __future__ import annotations

import ctypes
import io
import os
import resource
import socket
import sys
import warnings
from typing import Final

import msgspec
from PIL import Image, ImageOps

from toft.storage.images.orders import Order, Picture
from toft.storage.images.transformation import USUAL_QUALITY, Transformation, plan_sizes

MOST_PIXELS: Final = 50_000_000
#: processor time for one picture
MOST_SECONDS: Final = 30

_TYPES: Final = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif",
                 "AVIF": "image/avif"}  # fmt: skip
#: what is read; an image in one that nobody shows in a browser becomes JPEG or PNG
_READ: Final = (*_TYPES, "TIFF", "BMP", "ICO")


class Refused(Exception):
    """An image that is not rendered, and why."""


def main() -> int:
    """Serve until the other end closes."""
    channel = socket.socket(fileno=os.dup(0))
    warnings.simplefilter("ignore")
    Image.init()
    _give_up_rights()
    with channel.makefile("rwb") as stream:
        while head := stream.read(4):
            order = msgspec.json.decode(stream.read(int.from_bytes(head, "big")), type=Order)
            data = stream.read(order.size)
            _limit_time()
            try:
                kind, painted = paint(data, order.wanted, order.format)
                picture = Picture(kind, len(painted))
            except Refused as refused:
                painted, picture = b"", Picture("", 0, str(refused))
            del data
            raw = msgspec.json.encode(picture)
            stream.write(len(raw).to_bytes(4, "big") + raw + painted)
            stream.flush()
    return 0


def paint(data: bytes, wanted: Transformation, target: str) -> tuple[str, bytes]:
    """Render one image: its media type and bytes. Raises `Refused`."""
    try:
        with Image.open(io.BytesIO(data), formats=_READ) as image:
            if image.width * image.height > MOST_PIXELS:
                raise Refused("The source image resolution is too large to process")
            return _paint(image, wanted, target.upper())
    except Refused:
        raise
    except Exception as error:
        # decoders of damaged files raise nearly everything
        raise Refused("") from error


def _paint(image: Image.Image, wanted: Transformation, target: str) -> tuple[str, bytes]:
    source = image.format or ""
    width, height = image.size
    is_turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
    if is_turned:
        width, height = height, width
    size, kept = plan_sizes(wanted, width, height)
    if source == "JPEG":
        # decode at half, quarter or eighth of the size where that is enough
        image.draft("RGB", (size[1], size[0]) if is_turned else size)
    painted: Image.Image = ImageOps.exif_transpose(image) or image
    painted = _in_colours(painted)
    if painted.size != size:
        painted = painted.resize(size, Image.Resampling.LANCZOS)  # pyright: ignore[reportUnknownMemberType]  (a default of numpy's)
    if kept is not None:
        painted = painted.crop(_crop_box(size, kept, wanted.focus))
    kind = target or (source if source in _TYPES else "PNG" if _has_alpha(painted) else "JPEG")
    return _TYPES[kind], _encode(painted, kind, wanted.quality or USUAL_QUALITY)


def _in_colours(image: Image.Image) -> Image.Image:
    if image.mode in ("RGB", "RGBA", "L"):
        return image
    has_alpha = _has_alpha(image)
    return image.convert("RGBA" if has_alpha else "L" if image.mode in ("1", "I;16") else "RGB")


def _has_alpha(image: Image.Image) -> bool:
    return image.has_transparency_data


def _crop_box(
    size: tuple[int, int], kept: tuple[int, int], focus: tuple[float, float]
) -> tuple[int, int, int, int]:
    left = round((size[0] - kept[0]) * min(max(focus[0], 0), 1))
    top = round((size[1] - kept[1]) * min(max(focus[1], 0), 1))
    return left, top, left + kept[0], top + kept[1]


def _encode(image: Image.Image, kind: str, quality: int) -> bytes:
    out = io.BytesIO()
    match kind:
        case "JPEG":
            image = _on_white(image)
            image.save(out, "JPEG", quality=quality, optimize=True, progressive=True)
        case "PNG":
            image.save(out, "PNG", compress_level=6)
        case "GIF":
            image.save(out, "GIF")
        case "AVIF":
            image.save(out, "AVIF", quality=quality, speed=8)
        case _:
            image.save(out, "WEBP", quality=quality, method=4)
    return out.getvalue()


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image
    ground = Image.new("RGB", image.size, "white")
    ground.paste(image, mask=image.getchannel("A"))
    return ground


def _give_up_rights() -> None:
    """Keep nothing but the socket, memory and time: no capability, and no file to write."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(kind, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def _limit_time() -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = int(usage.ru_utime + usage.ru_stime)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (used + MOST_SECONDS, hard))


if __name__ == "__main__":
    sys.exit(main())
