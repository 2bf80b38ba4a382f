"""Pure: Prefer, Accept, Content-Type and Range as values. Equal texts give the same value from a cache."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final

from toft.rest.request import Media, Preferences

# --- Prefer ---------------------------------------------------------------------------------------------

_VALUES: Final = {
    "resolution": ("merge-duplicates", "ignore-duplicates"),
    "return": ("representation", "minimal", "headers-only"),
    "count": ("exact", "planned", "estimated"),
    "tx": ("commit", "rollback"),
    "missing": ("default", "null"),
    "handling": ("strict", "lenient"),
}
_KNOWN: Final = {f"{name}={value}": (name, value) for name, values in _VALUES.items() for value in values}


@functools.lru_cache(512)
def parse_prefer(text: str, *, allow_transaction: bool, timezones: frozenset[str] | None) -> Preferences:
    """All Prefer headers, joined by commas. The first value of a kind counts.

    timezones: the names that are valid, or None when the server shall judge.

    >>> found = parse_prefer("return=minimal, what=ever,count=exact", allow_transaction=False, timezones=None)
    >>> found.representation, found.count, found.unknown
    ('minimal', 'exact', ('what=ever',))
    """
    if not text:
        return Preferences()
    words = [word.strip() for word in text.split(",")]
    chosen: dict[str, str] = {}
    unknown: list[str] = []
    timezone = max_affected = None
    for word in words:
        if word in _KNOWN:
            name, value = _KNOWN[word]
            chosen.setdefault(name, value)
        elif word.startswith("timezone="):
            timezone = timezone if timezone is not None else word[9:]
        elif word.startswith("max-affected="):
            max_affected = max_affected if max_affected is not None else word[13:]
        else:
            unknown.append(word)
    if timezone is not None and timezones is not None and timezone not in timezones:
        unknown = [word for word in words if word in unknown or word.startswith("timezone=")]
        timezone = None
    return Preferences(
        resolution=chosen.get("resolution"),
        missing=chosen.get("missing"),
        representation=chosen.get("return"),
        count=chosen.get("count"),
        transaction=chosen.get("tx") if allow_transaction else None,
        handling=chosen.get("handling"),
        timezone=timezone,
        max_affected=int(max_affected) if max_affected and re.fullmatch(r"-?\d+", max_affected) else None,
        unknown=tuple(unknown),
    )


# --- media types ----------------------------------------------------------------------------------------

ANY: Final = Media("any", "*/*")
JSON: Final = Media("json", "application/json")
OPENAPI: Final = Media("openapi", "application/openapi+json")
CSV: Final = Media("csv", "text/csv")
GEOJSON: Final = Media("geojson", "application/geo+json")
_PLAIN: Final = {
    media.text: media
    for media in (
        ANY,
        JSON,
        OPENAPI,
        CSV,
        GEOJSON,
        Media("text", "text/plain"),
        Media("xml", "text/xml"),
        Media("form", "application/x-www-form-urlencoded"),
        Media("octets", "application/octet-stream"),
    )
}
_VENDOR = "application/vnd.pgrst."
_PLAN_OPTIONS: Final = ("analyze", "verbose", "settings", "buffers", "wal")
_TYPE = re.compile(r"([A-Za-z0-9.*]+)/([A-Za-z0-9.*+-]+)")
_PARAMETER = re.compile(r'\s*;\s*([A-Za-z0-9-]+)\s*=\s*(?:"([^"]*)"|([A-Za-z0-9|-]+))')


@functools.lru_cache(512)
def parse_media(text: str) -> Media:
    """One media type with its parameters.

    >>> parse_media("Application/JSON; charset=utf-8").kind
    'json'
    >>> parse_media('application/vnd.pgrst.plan+json; for="text/csv"; options=analyze|wal').text
    'application/vnd.pgrst.plan+json; for="text/csv"; options=analyze|wal'
    """
    found = _TYPE.match(text)
    if found is None:
        return Media("other", text)
    mime = found[0].lower()
    if mime in _PLAIN:
        return _PLAIN[mime]
    if not mime.startswith(_VENDOR):
        return Media("other", text)
    parameters = _parameters(text, found.end())
    stripped = parameters.get("nulls") == "stripped"
    match mime.removeprefix(_VENDOR):
        case "object" | "object+json":
            suffix = ";nulls=stripped" if stripped else ""
            return Media("object", f"{_VENDOR}object+json{suffix}", nulls_stripped=stripped)
        case "array" | "array+json":
            if not stripped:
                return JSON
            return Media("array-stripped", f"{_VENDOR}array+json;nulls=stripped", nulls_stripped=True)
        case "plan" | "plan+text" | "plan+json" as name:
            return _plan("json" if name.endswith("json") else "text", parameters)
        case _:
            return Media("other", text)


def _parameters(text: str, at: int) -> dict[str, str]:
    parameters: dict[str, str] = {}
    while (found := _PARAMETER.match(text, at)) is not None:
        parameters[found[1].lower()] = found[2] if found[2] is not None else found[3]
        at = found.end()
    return parameters


def _plan(plan_format: str, parameters: dict[str, str]) -> Media:
    plan_of = parse_media(parameters.get("for", "application/json"))
    asked = parameters.get("options", "").split("|")
    options = tuple(option for option in _PLAN_OPTIONS if option in asked)
    text = f'{_VENDOR}plan+{plan_format}; for="{plan_of.text}"'
    if options:
        text += f"; options={'|'.join(options)}"
    return Media("plan", text, plan_of=plan_of, plan_format=plan_format, plan_options=options)


def content_type(media: Media) -> str:
    """How the type stands in the Content-Type header."""
    return media.text if media.kind in {"octets", "other"} else f"{media.text}; charset=utf-8"


_QUALITY = re.compile(r";\s*q\s*=\s*([0-9.]*)\s*", re.IGNORECASE)


@functools.lru_cache(512)
def parse_accept(text: str | None) -> tuple[Media, ...]:
    """The acceptable types, best first: by quality, then by how specific they are, then as they came.

    >>> [media.text for media in parse_accept("text/*;q=0.5, */*;q=0.1, text/csv")]
    ['text/csv', 'text/*', '*/*']
    """
    if text is None:
        return (ANY,)
    ranked: list[tuple[float, int, int, str]] = []
    for position, part in enumerate(_split_outside_quotes(text)):
        quality = _QUALITY.search(part)
        written = _QUALITY.sub("", part).strip()
        if written:
            ranked.append((-_number(quality), -_specificity(written), position, written))
    return tuple(parse_media(written) for *_, written in sorted(ranked))


def _split_outside_quotes(text: str) -> Sequence[str]:
    return re.findall(r'(?:[^,"]|"[^"]*"?)+', text)


def _number(quality: re.Match[str] | None) -> float:
    if quality is None:
        return 1.0
    try:
        return min(max(float(quality[1]), 0.0), 1.0)
    except ValueError:
        return 0.0


def _specificity(written: str) -> int:
    mime, *parameters = written.split(";")
    main, _, sub = mime.strip().partition("/")
    if main == "*":
        return 0
    if sub.strip() == "*":
        return 1
    return 3 if parameters else 2


# --- Range ----------------------------------------------------------------------------------------------

_RANGE = re.compile(r"([0-9]+)-([0-9]*)")


def parse_range(text: str | None) -> tuple[int, int | None] | None:
    """First and last row that the Range header asks for; None when it is absent or not understood.

    >>> parse_range("5-"), parse_range("0-9"), parse_range("items=1")
    ((5, None), (0, 9), None)
    """
    found = _RANGE.fullmatch(text) if text else None
    if found is None:
        return None
    return int(found[1]), int(found[2]) if found[2] else None
