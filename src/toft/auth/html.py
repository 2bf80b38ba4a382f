"""Pure: pages of our own, plain HTML without script and with nothing from elsewhere."""

from __future__ import annotations

import html

from toft.http.message import Response

_LAYOUT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 4rem auto; max-width: 26rem; padding: 0 1rem }}
label, input, button {{ display: block; width: 100%; box-sizing: border-box }}
input {{ padding: .5rem; margin: 0 0 1rem; font: inherit }}
input[type=checkbox] {{ display: inline; width: auto; margin-right: .5rem }}
button {{ padding: .6rem; margin: .5rem 0; font: inherit; cursor: pointer }}
.refusal {{ color: #a00 }}
</style></head><body><main>
<h1>{title}</h1>
{content}
</main></body></html>
"""


def escape(text: str) -> str:
    """The text as it may stand between tags and in attributes."""
    return html.escape(text, quote=True)


def page(title: str, content: str, status: int = 200) -> Response:
    """A page. content: markup whose values are escaped already."""
    text = _LAYOUT.format(title=html.escape(title), content=content)
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (
            b"content-security-policy",
            b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
    ]
    return Response(status, headers, text.encode())


def leave(address: str) -> Response:
    """The browser goes on, by GET, and nobody keeps the answer."""
    headers = [(b"location", address.encode("ascii", "ignore")), (b"cache-control", b"no-store")]
    return Response(303, headers)
