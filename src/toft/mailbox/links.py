"""Pure: what a test wants out of a mail: its code, and its link."""

from __future__ import annotations

import html
import re

_CODE = re.compile(r"(?<![\w.=/-])([0-9]{6,10})(?![\w./-])")
_LINK = re.compile(r"https?://[^\s\"'<>]+")
_HREF = re.compile(r"href\s*=\s*[\"']([^\"']+)[\"']", re.IGNORECASE)


def find_codes(text: str) -> list[str]:
    """Numbers of six to ten digits that stand alone, in order.

    >>> find_codes("Your code is 123456. See https://x.example/?n=999999")
    ['123456']
    """
    return _CODE.findall(_LINK.sub(" ", text))


def find_links(text: str, markup: str) -> list[str]:
    """Addresses of the plain text, then those of the markup that are not among them.

    >>> find_links("go to https://x.example/a?b=1", '<a href="https://x.example/a?b=1&amp;c=2">go</a>')
    ['https://x.example/a?b=1', 'https://x.example/a?b=1&c=2']
    """
    found = [link.rstrip(".,;)") for link in _LINK.findall(text)]
    found += [html.unescape(link) for link in _HREF.findall(markup)]
    return list(dict.fromkeys(found))
