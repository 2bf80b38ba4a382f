"""A browser's part in a flow without a browser: follow redirects, fill in the consent page."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urlsplit

import httpx

_FORM = re.compile(r"<form[^>]*>.*?</form>", re.DOTALL)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


async def consent(address: str, email: str, password: str, *, action: str = "approve") -> dict[str, str]:
    """Sign in on Toft's own consent page and answer it; what the client's address is given."""
    async with httpx.AsyncClient() as browser:
        asked = await browser.get(address)
        assert asked.status_code == 302, asked.text
        page = await browser.get(asked.headers["location"])
        target = str(page.url).split("?")[0]
        answered = await browser.post(
            target, data={**hidden(page.text), "email": email, "password": password}
        )
        if answered.status_code == 200:
            answered = await browser.post(target, data={**hidden(answered.text), "action": action})
    assert answered.status_code == 303, answered.text
    return dict(parse_qsl(urlsplit(answered.headers["location"]).query))


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page's first form."""
    form = _FORM.search(page)
    assert form is not None, page
    return {name: html.unescape(value) for name, value in _HIDDEN.findall(form[0])}
