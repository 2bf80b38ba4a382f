"""Pure: filters (`age=not.gt.18`) and logic trees (`or=(a.eq.1,b.is.null)`).

Two readers of the same texts. The grammar tells what a text means and words its errors. `skim_filter` and
`skim_logic` only split a text into its form and its values, by regular expression, so that a request whose
shape is known is not parsed again; where they are not sure they say None, and the text counts as form.

>>> skim_filter("not.in.(a,b)")
('not.in.', (b'{"a","b"}',))
>>> skim_filter("is.null") is None
True
>>> skim_logic("(a.eq.1,not.or(b.like(any).{x,y},c.is.null))")
('(a.eq.,not.or(b.like(any).,c.is.null))', (b'1', b'{x,y}'))
"""

from __future__ import annotations

import functools
import re
from typing import Final

from toft.rest.parse.grammar import (
    Parser,
    any_char,
    attempt,
    between,
    char,
    choice,
    label,
    lazily,
    many,
    mapped,
    none_of,
    not_followed_by,
    nothing,
    optional,
    sep_by1,
    sequence,
    string,
    text_of,
)
from toft.rest.parse.select import delimiter, field, first, identifier, lexeme, name, quoted
from toft.rest.request import (
    Compare,
    Condition,
    Filter,
    InList,
    IsDistinct,
    IsTest,
    IsValue,
    Logic,
    Operand,
    Operation,
    TextSearch,
)

#: take any or all; the order matters where one is the beginning of another
QUANTIFIABLE: Final = ("eq", "gte", "gt", "lte", "lt", "like", "ilike", "match", "imatch")
SIMPLE: Final = ("neq", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj")
TEXT_SEARCH: Final = ("fts", "plfts", "phfts", "wfts")
_PATTERNS: Final = {"like", "ilike"}


def array_literal(elements: list[str]) -> str:
    """The elements as the text of a Postgres array, each one quoted; one empty element is no element."""
    if elements == [""]:
        return "{}"
    escaped = (e.replace("\0", "").replace("\\", "\\\\").replace('"', '\\"') for e in elements)
    return "{" + ",".join(f'"{element}"' for element in escaped) + "}"


def _as_pattern(operator: str, value: str) -> str:
    return value.replace("*", "%") if operator in _PATTERNS else value


def to_bytes(value: str) -> bytes:
    """A value as it is sent: UTF-8, cut at the first NUL, which no text in Postgres can hold."""
    return value.partition("\0")[0].encode("utf-8", "surrogateescape")


# --- what a text means ----------------------------------------------------------------------------------


def _one_of(words: tuple[str, ...]) -> Parser[str]:
    return label(choice(*(attempt(string(word)) for word in words)), "unknown single value operator")


def _any_case(word: str) -> Parser[str]:
    letters = (_char_any_case(letter) for letter in word)
    return functools.reduce(lambda a, b: sequence(a, b, build=lambda one, other: one + other), letters)


def _char_any_case(letter: str) -> Parser[str]:
    upper = letter.upper()
    if upper == letter:
        return char(letter)
    return choice(char(letter), char(upper))


_IS_VALUES = {
    "null": IsValue.NULL,
    "not_null": IsValue.NOT_NULL,
    "true": IsValue.TRUE,
    "false": IsValue.FALSE,
    "unknown": IsValue.UNKNOWN,
}


def _is_value(word: str, value: IsValue) -> Parser[IsValue]:
    return attempt(mapped(_any_case(word), lambda _: value))


_is_value_any = label(
    choice(*(_is_value(word, value) for word, value in _IS_VALUES.items())),
    "isVal: (null, not_null, true, false, unknown)",
)
_quantifier = optional(attempt(between(char("("), char(")"), choice(attempt(string("any")), string("all")))))
_language = optional(attempt(between(char("("), char(")"), identifier)))
_element = choice(
    attempt(sequence(quoted, not_followed_by(none_of(",)")), build=first)), text_of(many(none_of(",)")))
)
_list = between(lexeme(char("(")), lexeme(char(")")), sep_by1(_element, char(",")))


def _operation(value: Parser[str]) -> Parser[tuple[bool, Operation]]:
    """`[not.]operator.value`, with `value` as the parser of what stands behind the operator."""
    alternatives: Parser[Operation] = choice(
        sequence(
            attempt(sequence(string("in"), delimiter, build=first)),
            _list,
            build=lambda _, elements: InList(Operand(array_literal(elements))),
        ),
        sequence(
            attempt(sequence(string("is"), delimiter, build=first)),
            _is_value_any,
            build=lambda _, value: IsTest(value),
        ),
        sequence(
            attempt(sequence(string("isdistinct"), delimiter, build=first)),
            value,
            build=lambda _, value: IsDistinct(Operand(value)),
        ),
        attempt(
            sequence(
                choice(*(attempt(string(word)) for word in TEXT_SEARCH)),
                _language,
                delimiter,
                value,
                build=lambda operator, language, _, value: TextSearch(operator, Operand(value), language),
            )
        ),
        attempt(
            sequence(
                _one_of(SIMPLE),
                delimiter,
                value,
                build=lambda operator, _, value: Compare(operator, Operand(value)),
            )
        ),
        attempt(
            sequence(
                _one_of(QUANTIFIABLE),
                _quantifier,
                delimiter,
                value,
                build=lambda operator, quantifier, _, value: Compare(
                    operator, Operand(_as_pattern(operator, value)), quantifier
                ),
            )
        ),
    )
    return sequence(
        choice(attempt(sequence(string("not"), delimiter, build=lambda _, __: True)), nothing(False)),
        label(alternatives, "operator (eq, gt, ...)"),
        build=lambda negated, operation: (negated, operation),
    )


_rest_of_text = text_of(many(any_char))
operation = _operation(_rest_of_text)

_array = sequence(string("{"), text_of(many(none_of("{}"))), string("}"), build=lambda a, b, c: a + b + c)
_logic_value = choice(
    attempt(sequence(quoted, not_followed_by(none_of(",)")), build=first)),
    attempt(_array),
    text_of(many(none_of(",)"))),
)
_leaf: Parser[Condition] = sequence(
    field,
    delimiter,
    _operation(_logic_value),
    build=lambda field, _, operation: Filter(field, operation[1], operation[0]),
)
_negation = label(
    choice(attempt(sequence(string("not"), delimiter, build=lambda _, __: True)), nothing(False)),
    "negation operator (not)",
)
_connective = label(
    choice(attempt(mapped(string("and"), lambda _: False)), mapped(string("or"), lambda _: True)),
    "logic operator (and, or)",
)
_terms = between(lexeme(char("(")), lexeme(char(")")), sep_by1(lazily(lambda: logic_tree), lexeme(char(","))))
logic_tree: Parser[Condition] = choice(
    attempt(_leaf),
    sequence(
        _negation,
        _connective,
        _terms,
        build=lambda negated, is_or, terms: Logic(is_or, negated, tuple(terms)),
    ),
)
logic_path = sep_by1(name, delimiter)


def operands(condition: Condition) -> list[Operand]:
    """The values of a condition in the order of the text."""
    if isinstance(condition, Logic):
        return [operand for term in condition.terms for operand in operands(term)]
    operation = condition.operation
    return [] if isinstance(operation, IsTest) else [operation.operand]


# --- form and values, quickly ---------------------------------------------------------------------------

_HEAD = (
    r"(?:not\.)?(?:(?:eq|gte|gt|lte|lt|i?like|i?match)(?:\((?:any|all)\))?"
    r"|neq|cs|cd|ov|sl|sr|nxr|nxl|adj|isdistinct|(?:fts|plfts|phfts|wfts)(?:\([\w $]+\))?)\."
)
_SIMPLE_FILTER = re.compile(_HEAD)
_IN_FILTER = re.compile(r"(?:not\.)?in\.\([ \t]*([^()\"]*)\)$")
_LOGIC_PART = re.compile(
    r"(?P<punctuation>[(),]|(?:not\.)?(?:and|or)(?=\())"
    rf"|(?P<leaf>[a-z_][a-z0-9_]*(?:->>?[a-z0-9_]+)*\.{_HEAD})(?:(?P<array>\{{[^{{}}()\"]*\}})|(?P<value>[^,(){{}}\"]*))(?=[,)])"
    r"|(?P<list>[a-z_][a-z0-9_]*\.(?:not\.)?in\.)\([ \t]*(?P<elements>[^()\"]*)\)(?=[,)])"
    r"|(?P<test>[a-z_][a-z0-9_]*\.(?:not\.)?is\.[a-z_]+)(?=[,)])"
)
_PATTERN_HEAD = re.compile(r"(?:not\.|^|\.)i?like(?:\(|\.)")


def _values_of(head: str, value: str) -> tuple[bytes]:
    if "like" in head and _PATTERN_HEAD.search(head):
        value = value.replace("*", "%")
    return (to_bytes(value),)


def skim_filter(text: str) -> tuple[str, tuple[bytes, ...]] | None:
    """The form of `[not.]operator.value` and its values, or None when only the grammar can tell."""
    found = _SIMPLE_FILTER.match(text)
    if found is not None:
        head = found[0]
        return head, _values_of(head, text[found.end() :])
    listed = _IN_FILTER.match(text)
    if listed is not None:
        return text[: text.index("(")], (to_bytes(array_literal(listed[1].split(","))),)
    return None


_DEPTHS: Final = {"(": 1, ")": -1}


def skim_logic(text: str) -> tuple[str, tuple[bytes, ...]] | None:
    """The form of a parenthesised logic tree and its values, or None when only the grammar can tell."""
    form: list[str] = []
    values: list[bytes] = []
    at = depth = 0
    while at < len(text):
        part = _LOGIC_PART.match(text, at)
        if part is None or (at and not depth):
            return None
        at = part.end()
        kind = part.lastgroup
        if kind in {"array", "value"}:
            form.append(part["leaf"])
            values.extend(_values_of(part["leaf"], part["array"] or part["value"] or ""))
        elif kind == "elements":
            form.append(part["list"])
            values.append(to_bytes(array_literal(part["elements"].split(","))))
        else:
            form.append(part[0])
            depth += _DEPTHS.get(part[0], 0)
    return "".join(form), tuple(values)
