"""Pure: what may be asked of an image, in a query, in JSON, and in the token of a signed URL."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from toft.storage.errors import StorageError, invalid_parameter, invalid_request

LARGEST_SIDE: Final = 2000
USUAL_QUALITY: Final = 80

_RESIZES: Final = {"cover": "fill", "contain": "fit", "fill": "force"}
_FORMATS: Final = ("origin", "avif", "webp")
#: gravity → where the kept part lies, from 0 (left, top) to 1
_GRAVITIES: Final = {
    "no": (0.5, 0.0), "so": (0.5, 1.0), "ea": (1.0, 0.5), "we": (0.0, 0.5), "noea": (1.0, 0.0),
    "nowe": (0.0, 0.0), "soea": (1.0, 1.0), "sowe": (0.0, 1.0), "ce": (0.5, 0.5), "sm": (0.5, 0.5),
    "fp": (0.5, 0.5),
}  # fmt: skip
_WHOLE: Final = re.compile(r"-?[0-9]{1,15}")


class Transformation(msgspec.Struct, frozen=True):
    """What is asked. Sides in pixels, 0 for one that follows the other; quality 0 for the usual one.

    format: empty lets the client's `Accept` decide.
    """

    width: int = 0
    height: int = 0
    resize: str = ""
    quality: int = 0
    format: str = ""
    gravity: str = ""
    x_offset: float | None = None
    y_offset: float | None = None

    @property
    def focus(self) -> tuple[float, float]:
        """Where the part lies that a crop keeps."""
        if self.gravity == "fp":
            return self.x_offset or 0.0, self.y_offset or 0.0
        return _GRAVITIES.get(self.gravity, (0.5, 0.5))


def read_transformation(members: Mapping[str, Any], where: str) -> Transformation:
    """What a query or a JSON object asks for. Raises `StorageError` in the words of a schema validator."""
    resize = _word(members, "resize", tuple(_RESIZES), where)
    gravity = _word(members, "gravity", tuple(_GRAVITIES), where)
    x, y = _number(members, "x_offset", where), _number(members, "y_offset", where)
    if gravity == "fp":
        for name, offset in (("x_offset", x), ("y_offset", y)):
            if offset is None:
                raise invalid_request(f"{where} must have required property '{name}'")
            if not 0 <= offset <= 1:
                raise invalid_request(f"{where}/{name} must be {'>= 0' if offset < 0 else '<= 1'}")
    return Transformation(
        width=_side(members, "width", where),
        height=_side(members, "height", where),
        resize=resize,
        quality=_whole(members, "quality", where, 20, 100),
        format=_word(members, "format", _FORMATS, where),
        gravity=gravity,
        x_offset=x,
        y_offset=y,
    )


def write_claim(wanted: Transformation) -> str:
    """As the token of a signed URL carries it; empty when nothing is asked."""
    parts = [f"{name}:{value}" for name in ("height", "width") if (value := getattr(wanted, name))]
    if (wanted.width or wanted.height) and wanted.resize:
        parts.append(f"resize:{wanted.resize}")
    parts += _write_rest(wanted)
    if wanted.format == "origin":
        parts.append("format:origin")
    return ",".join(parts)


def read_claim(text: str) -> Transformation:
    """What a token carries, older ones too; words that are not understood do not matter."""
    members: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition(":")
        if name == "gravity":
            value, _, offsets = value.partition(":")
            x, _, y = offsets.partition(":")
            members |= {"x_offset": x or None, "y_offset": y or None}
        members[name] = value or None
    known = {name: value for name, value in members.items() if value != "undefined"}
    try:
        return read_transformation(known, "transformations")
    except StorageError:
        raise invalid_parameter("transformations") from None


def write_header(wanted: Transformation) -> str:
    """What was done, as the answer tells it."""
    parts = [f"{name}:{value}" for name in ("height", "width") if (value := getattr(wanted, name))]
    if wanted.width or wanted.height:
        parts.append(f"resizing_type:{resizing(wanted)}")
    return ",".join(parts + _write_rest(wanted))


def resizing(wanted: Transformation) -> str:
    """`fill` (and crop), `fit` (inside) or `force` (stretch)."""
    return _RESIZES.get(wanted.resize, "fill")


def choose_format(wanted: Transformation, accept: str | None) -> str:
    """`webp`, `avif`, or empty for the format of the source."""
    if wanted.format:
        return "" if wanted.format == "origin" else wanted.format
    # Better compression where a client says by itself that it can read it; `*/*` says nothing.
    kinds = {part.partition(";")[0].strip().lower() for part in (accept or "").split(",")}
    return "webp" if "image/webp" in kinds else "avif" if "image/avif" in kinds else ""


def plan_sizes(
    wanted: Transformation, width: int, height: int
) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """How large the whole image becomes, and which part of it is kept, None for all. It never grows.

    >>> plan_sizes(Transformation(width=100, height=100), 400, 200)
    ((200, 100), (100, 100))
    >>> plan_sizes(Transformation(width=100, height=100, resize="contain"), 400, 200)
    ((100, 50), None)
    >>> plan_sizes(Transformation(width=100, height=100, resize="fill"), 400, 200)
    ((100, 100), None)
    >>> plan_sizes(Transformation(width=100), 400, 200), plan_sizes(Transformation(width=900), 400, 200)
    (((100, 50), None), ((400, 200), None))
    """
    across = width / wanted.width if wanted.width else 0.0
    down = height / wanted.height if wanted.height else 0.0
    across, down = across or down or 1.0, down or across or 1.0
    match resizing(wanted):
        case "force":
            least = min(across, down)
            if least < 1:
                across, down = across / least, down / least
        case "fit":
            across = down = max(across, down, 1.0)
        case _:
            across = down = max(min(across, down), 1.0)
    size = _rounded(width / across), _rounded(height / down)
    kept = min(wanted.width or size[0], size[0]), min(wanted.height or size[1], size[1])
    is_cropped = resizing(wanted) == "fill" and kept != size
    return size, kept if is_cropped else None


def _rounded(side: float) -> int:
    return max(round(side), 1)


def _write_rest(wanted: Transformation) -> list[str]:
    parts: list[str] = []
    if wanted.quality:
        parts.append(f"quality:{wanted.quality}")
    if wanted.format and wanted.format != "origin":
        parts.append(f"format:{wanted.format}")
    if wanted.gravity:
        offsets = "" if wanted.gravity == "sm" else _write_offsets(wanted)
        parts.append(f"gravity:{wanted.gravity}{offsets}")
    return parts


def _write_offsets(wanted: Transformation) -> str:
    if wanted.x_offset is None and wanted.y_offset is None:
        return ""
    return f":{wanted.x_offset or 0:g}:{wanted.y_offset or 0:g}"


def _side(members: Mapping[str, Any], name: str, where: str) -> int:
    return min(_whole(members, name, where, 0, 2**53), LARGEST_SIDE)


def _whole(members: Mapping[str, Any], name: str, where: str, least: int, most: int) -> int:
    value = members.get(name)
    if value is None or value == "":
        return 0
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid_request(f"{where}/{name} must be integer")
    if value < least:
        raise invalid_request(f"{where}/{name} must be >= {least}")
    if value > most:
        raise invalid_request(f"{where}/{name} must be <= {most}")
    return value


def _number(members: Mapping[str, Any], name: str, where: str) -> float | None:
    value = members.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise invalid_request(f"{where}/{name} must be number")
    return number


def _word(members: Mapping[str, Any], name: str, allowed: tuple[str, ...], where: str) -> str:
    value = members.get(name)
    if value is None:
        return ""
    if value not in allowed:
        raise invalid_request(f"{where}/{name} must be equal to one of the allowed values")
    return str(value)
