"""Pure: pages of a list, and the headers by which clients find the next one."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from toft.auth.errors import bad_request
from toft.http.message import HeaderList

_USUAL_SIZE = 50
_LARGEST_SIZE = 1000


class Page(msgspec.Struct, frozen=True):
    """A page, counted from 1."""

    number: int
    size: int

    @property
    def offset(self) -> int:
        return (self.number - 1) * self.size


def read_page(query: Mapping[str, str]) -> Page:
    """The page that a request asks for. Raises `AuthError` for what is no number."""
    number = _read_number(query.get("page", ""), 1)
    size = _read_number(query.get("per_page", ""), _USUAL_SIZE)
    return Page(max(number, 1), min(max(size, 1), _LARGEST_SIZE))


def page_headers(path: str, query: Mapping[str, str], page: Page, total: int) -> HeaderList:
    """`X-Total-Count` and `Link`: next (when there is one) and last."""
    last = max((total + page.size - 1) // page.size, 1)
    links: list[str] = []
    if page.number < last:
        links.append(f'<{_address(path, query, page, page.number + 1)}>; rel="next"')
    links.append(f'<{_address(path, query, page, last)}>; rel="last"')
    return [(b"x-total-count", str(total).encode()), (b"link", ", ".join(links).encode())]


def _address(path: str, query: Mapping[str, str], page: Page, number: int) -> str:
    members = {**query, "page": str(number), "per_page": str(page.size)}
    return f"{path}?{urlencode(members)}"


def _read_number(text: str, default: int) -> int:
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise bad_request(f"Bad Pagination Parameters: {text} is no number", "validation_failed")
    return int(text)
