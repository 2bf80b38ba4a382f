"""Pure: JSON as the control API speaks it, without the `json` module.

Importing `json` brings `re` and `enum` along and costs the CLI as much as starting Python does. The C parts
underneath cost nothing; where an interpreter has them not, or changed them, the module does the work.
"""

from __future__ import annotations

try:
    from _json import encode_basestring_ascii, make_scanner
except ImportError:  # pragma: no cover - another Python implementation
    encode_basestring_ascii = make_scanner = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    type Json = str | int | float | bool | list[Json] | dict[str, Json] | None

_WHITE = " \t\n\r"


class _Context:
    """What the C scanner asks its decoder for."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float  # NaN, Infinity and -Infinity, which nobody sends


def _make_scan() -> Callable[[str, int], tuple[Json, int]] | None:
    try:
        return make_scanner(_Context)  # pyright: ignore[reportArgumentType, reportOptionalCall] -- any such object does; None raises TypeError
    except (TypeError, AttributeError):  # pragma: no cover - an interpreter that asks for more
        return None


_scan = _make_scan()


def decode(raw: bytes) -> Json:
    """Raises ValueError when the bytes are not one JSON text."""
    text = raw.decode().strip(_WHITE)
    if _scan is None:  # pragma: no cover
        import json

        return json.loads(text)
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON text")
    return value


def encode(value: object) -> bytes:
    """Compact JSON, pure ASCII, of what `decode` gives and of tuples."""
    return _render(value).encode("ascii")


def _render(value: object) -> str:
    if isinstance(value, str):
        if encode_basestring_ascii is None:  # pragma: no cover
            import json

            return json.dumps(value)
        return encode_basestring_ascii(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_render, value)) + "]"  # pyright: ignore[reportUnknownArgumentType] -- any JSON
    if isinstance(value, dict):
        return "{" + ",".join(_member(name, item) for name, item in value.items()) + "}"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- any JSON
    raise TypeError(f"no JSON for {type(value).__name__}")


def _member(name: str, value: object) -> str:
    return _render(name) + ":" + _render(value)


def as_object(value: object) -> dict[str, Json]:
    """The value, known to be a JSON object. Raises ValueError when it is not."""
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")
    return value  # pyright: ignore[reportUnknownVariableType] -- members of a JSON object are Json
