"""Pure: what a studio and its painter say to each other."""

from __future__ import annotations

import msgspec

from toft.storage.images.transformation import Transformation


class Order(msgspec.Struct):
    """What to do with the bytes that follow. format: empty keeps that of the source."""

    wanted: Transformation
    format: str
    size: int


class Picture(msgspec.Struct):
    """What came of it; the bytes follow. Empty `kind`: no image, or one that is refused, as `fault` says."""

    kind: str
    size: int
    fault: str = ""
