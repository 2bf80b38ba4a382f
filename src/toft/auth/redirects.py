"""Pure: where a browser may be sent. A target that is not allowed silently becomes the site's own address."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from urllib.parse import SplitResult, urlencode, urlsplit, urlunsplit

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
#: a browser strips or reinterprets these, so that it would go elsewhere than we have judged
_TREACHEROUS = re.compile(r"[\x00-\x20\x7f\\]")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
#: what browsers take for an IPv4 address: 2130706433, 0x7f.1, 127.1, 0177.0.0.1
_NUMERIC_HOST = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.?", re.IGNORECASE)
_GLOB_PART = re.compile(r"\*\*|\*|\?|[^*?]+")


def choose_redirect(wanted: Iterable[str | None], site_url: str, allowed: Sequence[str]) -> str:
    """The first wanted target that is allowed, else the site's own address."""
    for target in wanted:
        if target and is_allowed(target, site_url, allowed):
            return target
    return site_url


def is_allowed(target: str, site_url: str, allowed: Sequence[str]) -> bool:
    """Whether the target is on the site itself, on this machine, or on the list."""
    if _TREACHEROUS.search(target) or not _SCHEME.match(target):
        return False
    try:
        parts = urlsplit(target)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme in ("http", "https"):
        if not _is_honest_host(parts):
            return False
        if _is_on_site(parts, port, site_url):
            return True
        if _is_ip(parts.hostname or ""):
            return _is_loopback(parts.hostname or "")
    without_fragment = target.split("#", 1)[0]
    return any(_compile_glob(pattern).fullmatch(without_fragment) is not None for pattern in allowed)


def add_query(url: str, members: dict[str, str]) -> str:
    """The URL with more query members."""
    parts = urlsplit(url)
    query = "&".join(part for part in (parts.query, _encode(members)) if part)
    return urlunsplit(parts._replace(query=query))


def add_fragment(url: str, members: dict[str, str]) -> str:
    """The URL with these members as its fragment."""
    return url.split("#", 1)[0] + "#" + _encode(members)


def _encode(members: dict[str, str]) -> str:
    return urlencode(sorted(members.items()))


def _is_honest_host(parts: SplitResult) -> bool:
    host = parts.netloc.rpartition("@")[2]
    if "@" in parts.netloc or not host:
        return False
    name = host if host.endswith("]") else re.sub(r":[0-9]*$", "", host)
    if not _HOST.fullmatch(name):
        return False
    return not _NUMERIC_HOST.fullmatch(name) or _is_ip(name)


def _is_on_site(parts: SplitResult, port: int | None, site_url: str) -> bool:
    try:
        site = urlsplit(site_url)
        site_port = site.port
    except ValueError:
        return False
    host = (parts.hostname or "").lower()
    if parts.scheme != site.scheme or host != (site.hostname or "").lower():
        return False
    return port == site_port or host == "localhost" or _is_loopback(host)


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_ip(host) and ipaddress.ip_address(host.strip("[]")).is_loopback


@lru_cache(maxsize=256)
def _compile_glob(pattern: str) -> re.Pattern[str]:
    """`*` stops at dots and slashes, `**` does not, `?` is one character that is neither."""
    wild = {"**": ".*", "*": "[^./]*", "?": "[^./]"}
    parts: list[str] = _GLOB_PART.findall(pattern)
    return re.compile("".join(wild.get(part) or re.escape(part) for part in parts))
