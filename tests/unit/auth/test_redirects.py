"""Where a browser may be sent: the rules, and the tricks."""

from __future__ import annotations

import pytest

from toft.auth.redirects import add_fragment, add_query, choose_redirect, is_allowed

SITE = "https://app.example.com"
LIST = (
    "https://preview-*.example.com/**",
    "https://exact.example.com/callback",
    "myapp://**",
    "https://one.example.com/*/done",
    "https://c?.example.com",
)


@pytest.mark.parametrize(
    "target",
    [
        "https://app.example.com",
        "https://app.example.com/any/path?x=1#y",
        "https://APP.example.com/",
        "https://preview-7.example.com/a/b",
        "https://exact.example.com/callback",
        "https://exact.example.com/callback#anything",
        "https://one.example.com/x/done",
        "https://c1.example.com",
        "myapp://host/path.with.dots/more",
        "http://127.0.0.1:5173/x",
        "http://[::1]:5173/x",
        "https://127.9.8.7/",
    ],
)
def test_allowed(target):
    """The site itself, this machine, and what the list says."""
    assert is_allowed(target, SITE, LIST)
    assert choose_redirect([None, "", "https://evil.example", target], SITE, LIST) == target


TRICKS = [
    "https://evil.example",
    "//evil.example",
    "/relative",
    "app.example.com",
    "https:app.example.com",
    "https:///app.example.com",
    "https://app.example.com.evil.example",
    "https://app.example.com@evil.example",
    "https://app.example.com:443@evil.example/",
    "https://user@app.example.com/",
    "https://evil.example\\@app.example.com",
    "https://evil.example\\.app.example.com",
    "https:\\\\app.example.com",
    "https://app.example.com\\@evil.example",
    "https://evil.example%2f@app.example.com",
    "https://evil.example/?x=https://app.example.com",
    "https://evil.example#https://app.example.com",
    "https://exact.example.com/callback/more",
    "https://exact.example.com/callback?x=1",
    "https://a.b.preview-1.example.com.evil.example/",
    "https://preview-1.evil.example/.example.com/",
    "https://preview-a/b.example.com/",
    "https://one.example.com/x/y/done",
    "https://c.1.example.com",
    "http://app.example.com",
    "https://app.example.com:8443",
    "https://app.example.com\t.evil.example",
    "https://app.example.com\n.evil.example",
    " https://app.example.com",
    "https://app.example.com\x00.evil.example",
    "https://аpp.example.com",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://10.0.0.1/",
    "http://192.168.1.1:3000/",
    "http://[fe80::1]/",
    "http://[::ffff:10.0.0.1]/",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://app.example.com:notaport/",
    "https://[app.example.com]/",
    "",
]


@pytest.mark.parametrize("target", TRICKS)
def test_tricks(target):
    """A target that is not allowed silently becomes the site's own address."""
    assert not is_allowed(target, SITE, LIST)
    assert choose_redirect([target], SITE, LIST) == SITE


def test_site_on_this_machine_may_have_any_port():
    """A development server's port changes; its host does not."""
    assert is_allowed("http://localhost:5173/x", "http://localhost:3000", ())
    assert not is_allowed("http://localhost:5173/x", SITE, ())
    assert not is_allowed("https://localhost:5173/x", "http://localhost:3000", ())


def test_wild_list_does_not_open_other_networks():
    """Even `**` does not allow an address that is no name."""
    assert is_allowed("https://anything.example/x", SITE, ("**",))
    assert not is_allowed("http://10.0.0.1/", SITE, ("**",))
    assert not is_allowed("http://2130706433/", SITE, ("**",))


def test_members_are_added_sorted_and_encoded():
    """The fragment is replaced, the query kept."""
    assert add_query("https://a.example/p?x=1#f", {"code": "a b"}) == "https://a.example/p?x=1&code=a+b#f"
    assert add_fragment("https://a.example/p#old", {"b": "2", "a": "1"}) == "https://a.example/p#a=1&b=2"
