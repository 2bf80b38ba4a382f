"""Laws of Auth's pure rooms."""

from __future__ import annotations

import contextlib
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from toft.auth.addresses import normalise_email, normalise_phone
from toft.auth.codes import hash_code, is_same_hash, make_code
from toft.auth.errors import AuthError
from toft.auth.pages import page_headers, read_page
from toft.auth.redirects import add_fragment, add_query, choose_redirect, is_allowed
from toft.auth.rotation import Branch, Refuse, Repeat, Shown, Swap, decide_refresh
from toft.auth.templates import TemplateFault, fill
from toft.auth.totp import code_at, make_secret, matches
from toft.world import SystemEntropy

SITE = "https://app.example.com"
LIST = ("https://*.example.com/**", "myapp://**")
TRICKY = st.text(st.sampled_from("htps:/\\@.#?%[]0123456789abcdefmlox-_~ \t\n\0é*"), max_size=40)


@given(TRICKY | TRICKY.map(lambda tail: SITE + tail) | TRICKY.map(lambda tail: "https://" + tail))
def test_a_browser_stays_where_it_may(target):
    """What is allowed has a host of the site, of the list, or of this machine, as a browser would read it."""
    if not is_allowed(target, SITE, LIST):
        assert choose_redirect([target], SITE, LIST) == SITE
        return
    read = target.replace("\\", "/").translate({9: None, 10: None, 13: None}).strip()
    parts = urlsplit(read)
    host = (parts.hostname or "").lower()
    assert (
        host == "app.example.com"
        or (parts.scheme == "https" and host.endswith(".example.com"))
        or parts.scheme == "myapp"
        or host.startswith("127.")
        or host == "::1"
    )


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=4))
def test_answers_survive_their_address(members):
    """What is put into query or fragment can be read there, and the rest of the address stays."""
    for address in (add_query(SITE + "/p?x=1", members), add_fragment(SITE + "/p?x=1", members)):
        assert address.startswith(SITE + "/p?x=1")
        assert " " not in address
        assert "\n" not in address


@given(st.text(max_size=60))
def test_addresses(text):
    """What is accepted is stable, in lower case and free of blanks; everything else is refused in one way."""
    for normalise in (normalise_email, normalise_phone):
        with contextlib.suppress(AuthError):
            clean = normalise(text)
            assert normalise(clean) == clean
            assert not any(character.isspace() or character < " " for character in clean)


@given(st.text(max_size=80), st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=3))
def test_templates_fail_in_one_way(template, data):
    """Any text is filled in or a `TemplateFault`."""
    with contextlib.suppress(TemplateFault):
        fill(template, {"Email": "a<b", "Data": data}, escapes=True)


@given(st.text(st.characters(exclude_characters="{"), max_size=50))
def test_text_without_braces_is_itself(text):
    """Nothing is filled in where nothing is asked for."""
    assert fill(text, {}, escapes=True) == text


@given(st.text(st.sampled_from("<>&\"'x"), max_size=20))
def test_values_cannot_leave_their_place(text):
    """A name with markup in it stays text."""
    assert not set(fill("{{ .X }}", {"X": text}, escapes=True)) & set("<>\"'")


@given(st.integers(6, 10), st.text(max_size=20), st.text(max_size=20))
def test_codes(length, address, other):
    """A code has its length, and its hash belongs to its address."""
    code = make_code(SystemEntropy(), length)
    assert len(code) == length
    assume(address + code != other + code)
    assert not is_same_hash(hash_code(address, code), hash_code(other, code))


@given(st.binary(min_size=20, max_size=20), st.integers(1000, 2**33), st.integers(-300, 300))
def test_time_based_codes(chance, unix, shift):
    """A code holds for its own step and the two beside it."""
    secret = make_secret(chance)
    steps = abs(unix // 30 - (unix + shift) // 30)
    if steps <= 1:
        assert matches(secret, code_at(secret, unix + shift), unix)


@given(st.text(max_size=6), st.text(max_size=6), st.integers(0, 10**6))
def test_pages(number, size, total):
    """A page is a page or a refusal; `last` is never before the first."""
    with contextlib.suppress(AuthError):
        page = read_page({"page": number, "per_page": size})
        assert page.number >= 1
        assert 1 <= page.size <= 1000
        assert b'rel="last"' in page_headers("/x", {}, page, total)[1][1]


class Family(RuleBasedStateMachine):
    """A family of refresh tokens under any order of uses, honest and not, with time going on."""

    @initialize(interval=st.sampled_from([0, 10]), rotates=st.booleans())
    def begin(self, interval, rotates):
        self.interval, self.rotates = interval, rotates
        self.now = 0.0
        #: parent, when it was revoked (None: living)
        self.tokens: list[tuple[int | None, float | None]] = [(None, None)]
        self.is_over = False

    @rule(seconds=st.sampled_from([0.5, 5, 11, 1000]))
    def wait(self, seconds):
        self.now += seconds

    @rule(data=st.data())
    def use(self, data):
        index = data.draw(st.integers(0, len(self.tokens) - 1))
        parent, revoked_at = self.tokens[index]
        living = [number for number, token in enumerate(self.tokens) if token[1] is None]
        active = living[-1] if living else None
        outcome = decide_refresh(
            Shown(
                is_revoked=revoked_at is not None,
                revoked_seconds_ago=self.now - revoked_at if revoked_at is not None else 0,
                has_active=active is not None,
                is_parent_of_active=active is not None and self.tokens[active][0] == index,
            ),
            reuse_interval_seconds=self.interval,
            rotates=self.rotates,
        )
        match outcome:
            case Swap():
                assert revoked_at is None
                self.tokens[index] = (parent, self.now)
                self.tokens.append((index, None))
            case Branch():
                assert revoked_at is not None
                assert self.now - revoked_at < self.interval
                self.tokens.append((index, None))
            case Repeat():
                assert active is not None
            case Refuse(ends_family):
                assert revoked_at is not None
                assert ends_family == self.rotates
                if ends_family:
                    ended = [self.now if token[1] is None else token[1] for token in self.tokens]
                    self.tokens = [(token[0], end) for token, end in zip(self.tokens, ended, strict=True)]
                    self.is_over = True
        assert not self.is_over or isinstance(outcome, Refuse)

    @invariant()
    def somebody_lives_or_it_is_over(self):
        if not hasattr(self, "tokens"):
            return
        living = [token for token in self.tokens if token[1] is None]
        assert bool(living) != self.is_over


TestFamily = Family.TestCase


@pytest.mark.parametrize("text", ["x" * 10_000 + "@example.com", "a@" + "b." * 5_000 + "c", "+" * 10_000])
def test_long_addresses_cost_nothing(text):
    """No pattern runs wild."""
    for normalise in (normalise_email, normalise_phone):
        with pytest.raises(AuthError):
            normalise(text)
