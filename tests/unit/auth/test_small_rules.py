"""Addresses, codes, passwords, templates, pages and instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from toft.auth.addresses import normalise_email, normalise_phone
from toft.auth.codes import (
    Challenge,
    check_verifier,
    hash_code,
    is_same_hash,
    make_code,
    parse_challenge,
)
from toft.auth.errors import AuthError, is_newer
from toft.auth.pages import page_headers, read_page
from toft.auth.passwords import check_new_password, find_weakness, make_rules
from toft.auth.represent import write_instant
from toft.auth.templates import TemplateFault, fill
from toft.world import SystemEntropy


@pytest.mark.parametrize(
    "given",
    [
        "ada@example.com",
        "Ada.Lovelace+tag@Sub.Example.co.uk",
        "o'brien_1-2@x-y.example",
        "a@localhost",
        "user%host@example.com",
    ],
)
def test_addresses_in_lower_case(given):
    """What people have is accepted."""
    assert normalise_email(given) == given.lower()


@pytest.mark.parametrize(
    "given",
    [
        "", "ada", "ada@", "@example.com", "a b@example.com", "a@b@c.example", "a@example..com",
        "a@-x.example", "a\n@example.com", "a@exa mple.com", "<a@example.com>", "a..b@example.com", "a@.com",
        "x" * 250 + "@e.example", "a\0@example.com", "a;b@example.com", '"a"@example.com',
    ],
)  # fmt: skip
def test_what_is_no_address(given):
    """Refused before anything else happens."""
    with pytest.raises(AuthError):
        normalise_email(given)


def test_phones():
    """Digits without the plus sign."""
    assert normalise_phone("+1 555 0100") == "15550100"
    for given in ("", "0123", "12a4", "1" * 17, "+"):
        with pytest.raises(AuthError):
            normalise_phone(given)


def test_codes_and_hashes():
    """Digits of the length asked for; a hash is found with and without PKCE's prefix."""
    codes = {make_code(SystemEntropy(), 6) for _ in range(200)}
    assert all(len(code) == 6 and code.isdecimal() for code in codes)
    assert len(codes) > 190
    hashed = hash_code("ada@example.com", "123456")
    assert len(hashed) == 56
    assert is_same_hash(hashed, hashed)
    assert is_same_hash("pkce_" + hashed, hashed)
    assert not is_same_hash("", hashed)


def test_challenges():
    """Both or neither; the two methods in any case; the answer must fit."""
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    challenge = parse_challenge("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "S256")
    assert challenge is not None
    check_verifier(challenge, verifier)
    check_verifier(Challenge(verifier, "plain"), verifier)
    for wrong in (Challenge(verifier, "s256"), Challenge(challenge.text, "plain")):
        with pytest.raises(AuthError):
            check_verifier(wrong, verifier)
    assert parse_challenge("", "") is None
    for text, method in (
        ("x" * 43, ""),
        ("", "s256"),
        ("x" * 42, "s256"),
        ("x" * 43, "md5"),
        ("é" * 43, "s256"),
    ):
        with pytest.raises(AuthError):
            parse_challenge(text, method)


def test_password_rules():
    """Length in bytes, sets of characters, an upper limit."""
    rules = make_rules(4, "lower_upper_letters_digits_symbols")
    assert rules.shortest == 6
    assert find_weakness("aA1!xx", rules) is None
    weakness = find_weakness("aaaa", rules)
    assert weakness is not None
    assert weakness.extra == {"weak_password": {"reasons": ["length", "characters"]}}
    check_new_password("é" * 36, make_rules(6, ""))
    for password in ("é" * 37, "x" * 73, "with\0nul"):
        with pytest.raises(AuthError):
            check_new_password(password, make_rules(6, ""))


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Hi {{ .Email }}!", "Hi a&amp;b!"),
        ("{{.Token}}{{- .Token -}} x", "11x"),
        ("{{ if .Data.name }}Dear {{ .Data.name }}{{ else }}You{{ end }}", "Dear Ada"),
        ('{{ if .Data.nothing }}a{{ else if eq .Token "1" }}b{{ else }}c{{ end }}', "b"),
        ('{{ if and .Token (ne .Token "2") }}yes{{ end }}', "yes"),
        ("{{ if not .Token }}no{{ end }}{{/* silence */}}", ""),
        ('{{ printf "%s-%s" .Token .Data.name }}', "1-Ada"),
        ("{{ .Unknown }}|{{ .Data.deep.er }}", "|"),
        ("no braces { here }", "no braces { here }"),
    ],
)
def test_templates(template, text):
    """The part of Go's language that mail templates use; values are escaped for HTML."""
    values = {"Email": "a&b", "Token": "1", "Data": {"name": "Ada"}}
    assert fill(template, values, escapes=True) == text


@pytest.mark.parametrize(
    "template", ["{{ if .A }}x", "{{ end }}", "{{ range .A }}", "{{ }}", "{{ (eq .A }}", "{{ .A .B }}"]
)
def test_broken_templates(template):
    """Told apart from good ones, so that the default can take their place."""
    with pytest.raises(TemplateFault):
        fill(template, {}, escapes=True)


def test_pages():
    """Numbers or refusal; sizes have a limit."""
    page = read_page({"page": "3", "per_page": "10"})
    assert (page.number, page.size, page.offset) == (3, 10, 20)
    assert read_page({"per_page": "100000"}).size == 1000
    assert read_page({}).size == 50
    assert page_headers("/x", {}, read_page({}), 0)[0] == (b"x-total-count", b"0")
    for bad in ("x", "-1", "1.5", "٣", "9" * 10):
        with pytest.raises(AuthError):
            read_page({"page": bad})


def test_instants():
    """UTC, trailing zeros cut."""
    there = timezone(timedelta(hours=2))
    assert write_instant(datetime(2026, 1, 2, 3, 4, 5, 120000, there)) == "2026-01-02T01:04:05.12Z"
    assert write_instant(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("version", "newer"),
    [
        (None, False), ("", False), ("2023-12-31", False), ("2024-01-01", True), ("2030-01-01", True),
        ("yesterday!", False), ("2024-13-01", False), ("2024/01/01", False),
    ],
)  # fmt: skip
def test_error_shape_by_version(version, newer):
    """What is no date counts as absent."""
    assert is_newer(version) is newer
