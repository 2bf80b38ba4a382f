"""Pure: parser building blocks whose failures read as the contract says.

Clients match on error texts such as `unexpected "x" expecting "not" or operator (eq, gt, ...)`, and what
stands in them follows from how the parser backs out of alternatives. So the blocks here keep the same books:
every outcome carries what was expected at the furthest point, a failure that has consumed input ends a
choice, `attempt` takes the consumption back, `label` renames what was expected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

#: the four kinds of remark, in the order in which they are told
SYSTEM: Final = 0
UNEXPECTED: Final = 1
EXPECTED: Final = 2


class Remark(NamedTuple):
    """One thing to say about a position: what stood there or what should have."""

    kind: int
    text: str


class Trouble(NamedTuple):
    """Remarks about one position; none at all when there is nothing to complain about."""

    at: int
    remarks: tuple[Remark, ...]


class Outcome(NamedTuple):
    """What a parser did: its value and the position behind it, or failure at no value."""

    is_ok: bool
    consumed: bool
    value: Any
    at: int
    trouble: Trouble


type Parser = Callable[[str, int], Outcome]


class GrammarError(Exception):
    """The text does not follow the grammar. `position` and `details` are what PGRST100 shows."""

    def __init__(self, position: str, details: str) -> None:
        super().__init__(position)
        self.position = position
        self.details = details


def _calm(at: int) -> Trouble:
    return Trouble(at, ())


def _merge(first: Trouble, second: Trouble) -> Trouble:
    if not second.remarks and first.remarks:
        return first
    if not first.remarks and second.remarks:
        return second
    if first.at != second.at:
        return first if first.at > second.at else second
    return Trouble(first.at, first.remarks + second.remarks)


def _expecting(trouble: Trouble, what: str) -> Trouble:
    kept = tuple(remark for remark in trouble.remarks if remark.kind != EXPECTED)
    return Trouble(trouble.at, (Remark(EXPECTED, what), *kept))


def _quoted(text: str) -> str:
    shown = "".join(_shown(char) for char in text)
    return f'"{shown}"'


_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\0": "\\NUL", "\x7f": "\\DEL"}


def _shown(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if " " <= char < "\x7f" else f"\\{ord(char)}"


def _refuse(at: int, found: str, expected: str | None) -> Outcome:
    remarks: tuple[Remark, ...] = (Remark(SYSTEM, found),)
    if expected is not None:
        remarks = (Remark(EXPECTED, expected), *remarks)
    return Outcome(False, False, None, at, Trouble(at, remarks))


def satisfy(accept: Callable[[str], bool], expected: str | None = None) -> Parser:
    """One character that `accept` likes."""

    def parse(text: str, at: int) -> Outcome:
        if at >= len(text):
            return _refuse(at, "", expected)
        char = text[at]
        if accept(char):
            return Outcome(True, True, char, at + 1, _calm(at + 1))
        return _refuse(at, _quoted(char), expected)

    return parse


def char(wanted: str) -> Parser:
    """Exactly this character."""
    return satisfy(lambda found: found == wanted, _quoted(wanted))


def none_of(excluded: str) -> Parser:
    """Any character but these."""
    return satisfy(lambda found: found not in excluded)


def one_of(included: str) -> Parser:
    """One of these characters."""
    return satisfy(lambda found: found in included)


any_char: Parser = satisfy(lambda _: True)
digit: Parser = satisfy(lambda found: found.isdigit(), "digit")


def string(wanted: str) -> Parser:
    """Exactly this text. It fails consuming when only its beginning is there."""

    def parse(text: str, at: int) -> Outcome:
        if text.startswith(wanted, at):
            return Outcome(True, True, wanted, at + len(wanted), _calm(at + len(wanted)))
        matched = 0
        while at + matched < len(text) and text[at + matched] == wanted[matched]:
            matched += 1
        found = _quoted(text[at + matched]) if at + matched < len(text) else ""
        refused = _refuse(at, found, _quoted(wanted))
        return refused._replace(consumed=matched > 0)

    return parse


def nothing(value: Any = None) -> Parser:
    """Succeeds at once with `value`."""
    return lambda _, at: Outcome(True, False, value, at, _calm(at))


def sequence(*parsers: Parser, build: Callable[..., Any] = lambda *values: values) -> Parser:
    """One after the other; the value is `build` of all of theirs."""

    def parse(text: str, at: int) -> Outcome:
        values: list[Any] = []
        consumed = False
        trouble = _calm(at)
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


def guarded(parser: Parser, accept: Callable[[Any], bool]) -> Parser:
    """`parser`; a value that `accept` does not like is a failure that has nothing to say for itself."""

    def parse(text: str, at: int) -> Outcome:
        outcome = parser(text, at)
        if not outcome.is_ok or accept(outcome.value):
            return outcome
        return outcome._replace(is_ok=False, value=None)

    return parse


def mapped(parser: Parser, change: Callable[[Any], Any]) -> Parser:
    """`parser` with its value changed."""

    def parse(text: str, at: int) -> Outcome:
        outcome = parser(text, at)
        return outcome._replace(value=change(outcome.value)) if outcome.is_ok else outcome

    return parse


def choice(*parsers: Parser) -> Parser:
    """The first that does not fail at once."""

    def parse(text: str, at: int) -> Outcome:
        trouble = _calm(at)
        for parser in parsers:
            outcome = parser(text, at)
            if outcome.consumed:
                return outcome
            trouble = _merge(trouble, outcome.trouble)
            if outcome.is_ok:
                return outcome._replace(trouble=trouble)
        return Outcome(False, False, None, at, trouble)

    return parse


def attempt(parser: Parser) -> Parser:
    """`parser`; when it fails, nothing counts as consumed."""

    def parse(text: str, at: int) -> Outcome:
        outcome = parser(text, at)
        return outcome if outcome.is_ok else outcome._replace(consumed=False)

    return parse


def label(parser: Parser, what: str) -> Parser:
    """`parser`; when it consumed nothing, `what` is what was expected."""

    def parse(text: str, at: int) -> Outcome:
        outcome = parser(text, at)
        if outcome.consumed or (outcome.is_ok and not outcome.trouble.remarks):
            return outcome
        return outcome._replace(trouble=_expecting(outcome.trouble, what))

    return parse


def optional(parser: Parser, default: Any = None) -> Parser:
    """`parser`, or `default` when it fails at once."""
    return choice(parser, nothing(default))


def many(parser: Parser) -> Parser:
    """As often as it goes; the value is the list."""

    def parse(text: str, at: int) -> Outcome:
        values: list[Any] = []
        consumed = False
        while True:
            outcome = parser(text, at)
            if not outcome.is_ok:
                if outcome.consumed:
                    return outcome
                return Outcome(True, consumed, values, at, outcome.trouble)
            if not outcome.consumed:
                raise AssertionError("a repeated parser must consume")
            consumed = True
            values.append(outcome.value)
            at = outcome.at

    return parse


def many1(parser: Parser) -> Parser:
    """At least once."""
    return sequence(parser, many(parser), build=lambda first, rest: [first, *rest])


def sep_by1(parser: Parser, separator: Parser) -> Parser:
    """At least one, with separators between."""
    more = many(sequence(separator, parser, build=lambda _, value: value))
    return sequence(parser, more, build=lambda first, rest: [first, *rest])


def sep_by(parser: Parser, separator: Parser) -> Parser:
    """Any number, with separators between."""
    return optional(sep_by1(parser, separator), default=[])


def between(opening: Parser, closing: Parser, parser: Parser) -> Parser:
    """`parser` with something around it."""
    return sequence(opening, parser, closing, build=lambda _, value, __: value)


def look_ahead(parser: Parser) -> Parser:
    """`parser`, without moving on when it succeeds."""

    def parse(text: str, at: int) -> Outcome:
        outcome = parser(text, at)
        return Outcome(True, False, outcome.value, at, _calm(at)) if outcome.is_ok else outcome

    return parse


def not_followed_by(parser: Parser) -> Parser:
    """Succeeds, without moving on, where `parser` fails."""

    def parse(text: str, at: int) -> Outcome:
        outcome = parser(text, at)
        if not outcome.is_ok:
            return Outcome(True, False, None, at, outcome.trouble)
        shown = _quoted_char(outcome.value)
        return Outcome(False, False, None, at, Trouble(outcome.at, (Remark(UNEXPECTED, shown),)))

    return parse


def _quoted_char(value: Any) -> str:
    shown = _shown(str(value))
    if value == "'":
        shown = "\\'"
    elif value == '"':
        shown = '"'
    return f"'{shown}'"


end: Parser = label(not_followed_by(any_char), "end of input")


def text_of(parser: Parser) -> Parser:
    """The characters that a repeating `parser` gave, as one string."""
    return mapped(parser, "".join)


def run(parser: Parser, name: str, text: str) -> Any:
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
        parts.append(f"unexpected {said[SYSTEM][0] or 'end of input'}")
    for word, texts in (("unexpected", said[UNEXPECTED]), ("expecting", said[EXPECTED])):
        distinct = list(dict.fromkeys(text for text in texts if text))
        if distinct:
            parts.append(f"{word} {_either(distinct)}")
    return " ".join(dict.fromkeys(parts)).strip()


def _either(texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


def lazily(find: Callable[[], Parser]) -> Parser:
    """The parser that `find` gives when it is needed, for grammars that contain themselves."""
    return lambda text, at: find()(text, at)
