"""Pure: parser building blocks whose failures read as the contract says.

Clients match on error texts such as `unexpected "x" expecting "not" or operator (eq, gt, ...)`, and what
stands in them follows from how the parser backs out of alternatives. So the blocks here keep the same books:
every outcome carries what was expected at the furthest point, a failure that has consumed input ends a
choice, `attempt` takes the consumption back, `label` renames what was expected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast, overload

import msgspec

#: the kinds of remark: a character that stood there, the same as a choice of the grammar, what should have
SYSTEM: Final = 0
UNEXPECTED: Final = 1
EXPECTED: Final = 2


class Remark(msgspec.Struct, frozen=True):
    """One thing to say about a position. A SYSTEM remark has the bare character, or nothing at the end."""

    kind: int
    text: str


class Trouble(msgspec.Struct, frozen=True):
    """Remarks about one position; none at all when there is nothing to complain about."""

    at: int
    remarks: tuple[Remark, ...]


class Outcome[T](msgspec.Struct, frozen=True):
    """What a parser did: its value and the position behind it, or failure and a value that means nothing."""

    is_ok: bool
    consumed: bool
    value: T
    at: int
    trouble: Trouble


type Parser[T] = Callable[[str, int], Outcome[T]]


class GrammarError(Exception):
    """The text does not follow the grammar. `position` and `details` are what PGRST100 shows."""

    def __init__(self, position: str, details: str) -> None:
        super().__init__(position)
        self.position = position
        self.details = details


#: nothing to complain about, wherever
_CALM: Final = Trouble(0, ())
_AT_END: Final = Remark(SYSTEM, "")


def _merge(first: Trouble, second: Trouble) -> Trouble:
    if not second.remarks:
        return first
    if not first.remarks:
        return second
    if first.at != second.at:
        return first if first.at > second.at else second
    return Trouble(first.at, first.remarks + second.remarks)


def _expecting(trouble: Trouble, what: Remark) -> Trouble:
    kept = [remark for remark in trouble.remarks if remark.kind != EXPECTED]
    return Trouble(trouble.at, (what, *kept))


def _quoted(text: str) -> str:
    shown = "".join(_shown(char) for char in text)
    return f'"{shown}"'


_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\0": "\\NUL", "\x7f": "\\DEL"}


def _shown(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if " " <= char < "\x7f" else f"\\{ord(char)}"


def _refuse(text: str, at: int, expected: Remark | None, *, after: int = 0) -> Outcome[Any]:
    """Failure at `at`, where the character `after` places further was not to be had."""
    found = _AT_END if at + after >= len(text) else Remark(SYSTEM, text[at + after])
    remarks = (found,) if expected is None else (expected, found)
    return Outcome(False, after > 0, None, at, Trouble(at, remarks))


def satisfy(accept: Callable[[str], bool], expected: str | None = None) -> Parser[str]:
    """One character that `accept` likes."""
    wanted = None if expected is None else Remark(EXPECTED, expected)

    def parse(text: str, at: int) -> Outcome[str]:
        if at < len(text) and accept(text[at]):
            return Outcome(True, True, text[at], at + 1, _CALM)
        return _refuse(text, at, wanted)

    return parse


def char(wanted: str) -> Parser[str]:
    """Exactly this character."""
    return satisfy(wanted.__eq__, _quoted(wanted))


def none_of(excluded: str) -> Parser[str]:
    """Any character but these."""
    return satisfy(lambda found: found not in excluded)


def one_of(included: str) -> Parser[str]:
    """One of these characters."""
    return satisfy(included.__contains__)


any_char: Parser[str] = satisfy(lambda _: True)
digit: Parser[str] = satisfy(lambda found: found.isdigit(), "digit")


def string(wanted: str) -> Parser[str]:
    """Exactly this text. It fails consuming when only its beginning is there."""
    expected = Remark(EXPECTED, _quoted(wanted))

    def parse(text: str, at: int) -> Outcome[str]:
        if text.startswith(wanted, at):
            return Outcome(True, True, wanted, at + len(wanted), _CALM)
        matched = 0
        while at + matched < len(text) and text[at + matched] == wanted[matched]:
            matched += 1
        return _refuse(text, at, expected, after=matched)

    return parse


def nothing[T](value: T) -> Parser[T]:
    """Succeeds at once with `value`."""
    return lambda _, at: Outcome(True, False, value, at, _CALM)


@overload
def sequence[A, B, R](a: Parser[A], b: Parser[B], /, *, build: Callable[[A, B], R]) -> Parser[R]: ...
@overload
def sequence[A, B, C, R](
    a: Parser[A], b: Parser[B], c: Parser[C], /, *, build: Callable[[A, B, C], R]
) -> Parser[R]: ...
@overload
def sequence[A, B, C, D, R](
    a: Parser[A], b: Parser[B], c: Parser[C], d: Parser[D], /, *, build: Callable[[A, B, C, D], R]
) -> Parser[R]: ...
@overload
def sequence[A, B, C, D, E, R](
    a: Parser[A],
    b: Parser[B],
    c: Parser[C],
    d: Parser[D],
    e: Parser[E],
    /,
    *,
    build: Callable[[A, B, C, D, E], R],
) -> Parser[R]: ...
@overload
def sequence[A, B, C, D, E, F, R](
    a: Parser[A],
    b: Parser[B],
    c: Parser[C],
    d: Parser[D],
    e: Parser[E],
    f: Parser[F],
    /,
    *,
    build: Callable[[A, B, C, D, E, F], R],
) -> Parser[R]: ...
def sequence(*parsers: Parser[Any], build: Callable[..., Any]) -> Parser[Any]:
    """One after the other; the value is `build` of all of theirs."""

    def parse(text: str, at: int) -> Outcome[Any]:
        values: list[Any] = []
        consumed = False
        trouble = _CALM
        for parser in parsers:
            outcome = parser(text, at)
            if outcome.consumed:
                trouble = outcome.trouble
                consumed = True
            else:
                trouble = _merge(trouble, outcome.trouble)
            if not outcome.is_ok:
                return Outcome(False, consumed, None, outcome.at, trouble)
            values.append(outcome.value)
            at = outcome.at
        return Outcome(True, consumed, build(*values), at, trouble)

    return parse


def guarded[T](parser: Parser[T], accept: Callable[[T], bool]) -> Parser[T]:
    """`parser`; a value that `accept` does not like is a failure that has nothing to say for itself."""

    def parse(text: str, at: int) -> Outcome[T]:
        outcome = parser(text, at)
        if not outcome.is_ok or accept(outcome.value):
            return outcome
        return Outcome(False, outcome.consumed, outcome.value, outcome.at, outcome.trouble)

    return parse


def mapped[T, R](parser: Parser[T], change: Callable[[T], R]) -> Parser[R]:
    """`parser` with its value changed."""

    def parse(text: str, at: int) -> Outcome[R]:
        outcome = parser(text, at)
        if not outcome.is_ok:
            return cast("Outcome[R]", outcome)
        return Outcome(True, outcome.consumed, change(outcome.value), outcome.at, outcome.trouble)

    return parse


def choice[T](*parsers: Parser[T]) -> Parser[T]:
    """The first that does not fail at once."""

    def parse(text: str, at: int) -> Outcome[T]:
        trouble = _CALM
        for parser in parsers:
            outcome = parser(text, at)
            if outcome.consumed:
                return outcome
            trouble = _merge(trouble, outcome.trouble)
            if outcome.is_ok:
                return Outcome(True, False, outcome.value, outcome.at, trouble)
        return Outcome(False, False, cast("T", None), at, trouble)

    return parse


def attempt[T](parser: Parser[T]) -> Parser[T]:
    """`parser`; when it fails, nothing counts as consumed."""

    def parse(text: str, at: int) -> Outcome[T]:
        outcome = parser(text, at)
        if outcome.is_ok or not outcome.consumed:
            return outcome
        return Outcome(False, False, outcome.value, outcome.at, outcome.trouble)

    return parse


def label[T](parser: Parser[T], what: str) -> Parser[T]:
    """`parser`; when it consumed nothing, `what` is what was expected."""
    expected = Remark(EXPECTED, what)

    def parse(text: str, at: int) -> Outcome[T]:
        outcome = parser(text, at)
        if outcome.consumed or (outcome.is_ok and not outcome.trouble.remarks):
            return outcome
        trouble = _expecting(outcome.trouble, expected)
        return Outcome(outcome.is_ok, False, outcome.value, outcome.at, trouble)

    return parse


def optional[T, D](parser: Parser[T], default: D = None) -> Parser[T | D]:
    """`parser`, or `default` when it fails at once."""
    return choice(cast("Parser[T | D]", parser), cast("Parser[T | D]", nothing(default)))


def many[T](parser: Parser[T]) -> Parser[list[T]]:
    """As often as it goes; the value is the list."""

    def parse(text: str, at: int) -> Outcome[list[T]]:
        values: list[T] = []
        consumed = False
        while True:
            outcome = parser(text, at)
            if not outcome.is_ok:
                if outcome.consumed:
                    return Outcome(False, True, values, outcome.at, outcome.trouble)
                return Outcome(True, consumed, values, at, outcome.trouble)
            consumed = True
            values.append(outcome.value)
            at = outcome.at

    return parse


def _put_first[T](first: T, rest: list[T]) -> list[T]:
    return [first, *rest]


def many1[T](parser: Parser[T]) -> Parser[list[T]]:
    """At least once."""
    return sequence(parser, many(parser), build=_put_first)


def sep_by1[T](parser: Parser[T], separator: Parser[Any]) -> Parser[list[T]]:
    """At least one, with separators between."""
    more = many(sequence(separator, parser, build=lambda _, value: value))
    return sequence(parser, more, build=_put_first)


def sep_by[T](parser: Parser[T], separator: Parser[Any]) -> Parser[list[T]]:
    """Any number, with separators between."""
    return choice(sep_by1(parser, separator), mapped(nothing(None), lambda _: list[T]()))


def between[T](opening: Parser[Any], closing: Parser[Any], parser: Parser[T]) -> Parser[T]:
    """`parser` with something around it."""
    return sequence(opening, parser, closing, build=lambda _, value, __: value)


def look_ahead[T](parser: Parser[T]) -> Parser[T]:
    """`parser`, without moving on when it succeeds."""

    def parse(text: str, at: int) -> Outcome[T]:
        outcome = parser(text, at)
        return Outcome(True, False, outcome.value, at, _CALM) if outcome.is_ok else outcome

    return parse


def not_followed_by(parser: Parser[str]) -> Parser[None]:
    """Succeeds, without moving on, where `parser` fails."""

    def parse(text: str, at: int) -> Outcome[None]:
        outcome = parser(text, at)
        if not outcome.is_ok:
            return Outcome(True, False, None, at, outcome.trouble)
        shown = _quoted_char(outcome.value)
        return Outcome(False, False, None, at, Trouble(outcome.at, (Remark(UNEXPECTED, shown),)))

    return parse


def _quoted_char(value: str) -> str:
    shown = _shown(value)
    if value == "'":
        shown = "\\'"
    elif value == '"':
        shown = '"'
    return f"'{shown}'"


def _nothing_left(text: str, at: int) -> Outcome[None]:
    """As `not_followed_by`, but the trouble is where the rest begins."""
    if at >= len(text):
        return Outcome(True, False, None, at, Trouble(at, (_AT_END,)))
    return Outcome(False, False, None, at, Trouble(at, (Remark(UNEXPECTED, _quoted_char(text[at])),)))


end: Parser[None] = label(_nothing_left, "end of input")


def text_of(parser: Parser[list[str]]) -> Parser[str]:
    """The characters that a repeating `parser` gave, as one string."""
    return mapped(parser, "".join)


def run[T](parser: Parser[T], name: str, text: str) -> T:
    """The value of `parser` on `text`; what remains behind it is ignored.

    Raises `GrammarError`, in which `name` is how the source is called.
    """
    outcome = parser(text, 0)
    if outcome.is_ok:
        return outcome.value
    line, column = _line_and_column(text, outcome.trouble.at)
    raise GrammarError(f'"{name}" (line {line}, column {column})', _tell(outcome.trouble))


def _line_and_column(text: str, at: int) -> tuple[int, int]:
    line, column = 1, 1
    for passed in text[:at]:
        if passed == "\n":
            line, column = line + 1, 1
        elif passed == "\t":
            column += 8 - (column - 1) % 8
        else:
            column += 1
    return line, column


def _tell(trouble: Trouble) -> str:
    if not trouble.remarks:
        return "unknown parse error"
    said = {
        kind: [r.text for r in trouble.remarks if r.kind == kind] for kind in (SYSTEM, UNEXPECTED, EXPECTED)
    }
    parts: list[str] = []
    if said[SYSTEM] and not said[UNEXPECTED]:
        parts.append(f"unexpected {_quoted(said[SYSTEM][0]) if said[SYSTEM][0] else 'end of input'}")
    for word, texts in (("unexpected", said[UNEXPECTED]), ("expecting", said[EXPECTED])):
        distinct = list(dict.fromkeys(text for text in texts if text))
        if distinct:
            parts.append(f"{word} {_either(distinct)}")
    return " ".join(dict.fromkeys(parts)).strip()


def _either(texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


def lazily[T](find: Callable[[], Parser[T]]) -> Parser[T]:
    """The parser that `find` gives when it is needed, for grammars that contain themselves."""
    return lambda text, at: find()(text, at)
