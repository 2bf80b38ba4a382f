"""Pure: the small pieces of SQL: names, parameters, fields, conditions."""

from __future__ import annotations

from typing import Final

import msgspec

from toft.pg.quote import identifier, literal
from toft.rest.errors import empty_name
from toft.rest.plan.nodes import EmbedTest, FieldPlan, Group, SelectPlan, Test, Where
from toft.rest.request import Compare, InList, IsDistinct, IsTest, JsonStep, Operand, TextSearch
from toft.rest.schema.model import Name

#: Where a parameter's value comes from: a slot among the request's values, or one of these.
BODY: Final = -1
BODY_AS_BYTEA: Final = -2

type ParameterSource = int | bytes


class Rendered(msgspec.Struct, frozen=True):
    """A statement; `sources` says for each parameter where its value comes from, bytes standing for
    themselves."""

    sql: bytes
    sources: tuple[ParameterSource, ...] = ()
    #: answers in binary format, for bodies that a handler makes
    is_binary: bool = False


class Parameters:
    """Numbers the parameters of one statement. One source is one parameter, however often it is used."""

    def __init__(self) -> None:
        self._numbers: dict[ParameterSource, int] = {}

    @property
    def sources(self) -> tuple[ParameterSource, ...]:
        return tuple(self._numbers)

    def _number(self, source: ParameterSource) -> str:
        return f"${self._numbers.setdefault(source, len(self._numbers) + 1)}"

    def operand(self, operand: Operand) -> str:
        """The place of a client's value."""
        if operand.slot is not None:
            return self._number(operand.slot)
        return self._number(operand.text.partition("\0")[0].encode("utf-8", "surrogateescape"))

    def body(self, *, as_bytea: bool = False) -> str:
        """The place of the request's body."""
        return self._number(BODY_AS_BYTEA if as_bytea else BODY)


def ident(name: str) -> str:
    """A quoted identifier; like a value it ends at a NUL character. Raises PGRST100 for an empty one."""
    ended = name.partition("\0")[0]
    if not ended:
        raise empty_name()
    return identifier(ended)


def text(value: str) -> str:
    """A quoted text."""
    return literal(value.partition("\0")[0])


def qualified(name: Name) -> str:
    """A quoted name, with its schema if it has one."""
    return f"{ident(name.schema)}.{ident(name.name)}" if name.schema else ident(name.name)


def column(qualifier: Name, name: str) -> str:
    """A column of a relation; `*` is all of them."""
    return f"{qualified(qualifier)}.{'*' if name == '*' else ident(name)}"


def field(qualifier: Name, plan: FieldPlan) -> str:
    """A column, or what its path leads to, made searchable if need be."""
    if plan.is_whole_row:
        return ident(qualifier.name)
    shown = column(qualifier, plan.name)
    if plan.path:
        base = shown if plan.is_json else f"to_jsonb({shown})"
        shown = base + "".join(_step(step) for step in plan.path)
    if plan.searches:
        language = "" if plan.language is None else f"{text(plan.language)}, "
        return f"to_tsvector({language}{shown})"
    return shown


def _step(step: JsonStep) -> str:
    arrow = "->>" if step.as_text else "->"
    # An index stays text here, since it may be too large for an integer: Postgres tells the client so.
    return f"{arrow}({text(step.operand)}::int)" if step.is_index else arrow + text(step.operand)


_ZONES: Final = ("", " with time zone", " without time zone")
_LETTERS: Final = ("character", "char", "national character", "national char", "nchar", "bit")
#: Types that SQL's grammar spells; their words, in quotes, would be something else.
_SPELLED: Final = frozenset(
    (
        "int", "integer", "smallint", "bigint", "real", "float", "double precision", "decimal", "dec",
        "numeric", "boolean", "varchar", "interval",
        *_LETTERS, *(f"{name} varying" for name in _LETTERS),
        *(f"timestamp{zone}" for zone in _ZONES), *(f"time{zone}" for zone in _ZONES),
    )
)  # fmt: skip


def type_name(text: str) -> str:
    """The type that a client means: SQL's own spelling as it is, any other name quoted.

    >>> type_name("Double  Precision"), type_name("Text"), type_name("select")
    ('double precision', '"text"', '"select"')
    """
    words = " ".join(text.split())
    folded = "".join(char.lower() if char.isascii() else char for char in words)
    return folded if folded in _SPELLED else ident(folded)


def cast(expression: str, wanted: str | None) -> str:
    """A cast to a type that the client names."""
    return expression if wanted is None else f"CAST({expression} AS {type_name(wanted)})"


def aggregate(expression: str, name: str | None, result: str | None) -> str:
    """An aggregate and the cast of its result."""
    return expression if name is None else cast(f"{name.upper()}({expression})", result)


def named(expression: str, alias: str | None) -> str:
    """An output column."""
    return expression if alias is None else f"{expression} AS {ident(alias)}"


def select_item(qualifier: Name, plan: SelectPlan) -> str:
    """A column of the result."""
    source = qualifier if plan.relation is None else Name("", plan.relation)
    shown = field(source, plan.field)
    if plan.field.convert is not None:
        shown = f"{plan.field.convert}({shown})"
    return named(aggregate(cast(shown, plan.cast), plan.aggregate, plan.aggregate_cast), plan.alias)


# --- conditions -----------------------------------------------------------------------------------------

_OPERATORS: Final = {
    "eq": "=",
    "neq": "<>",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "like": "LIKE",
    "ilike": "ILIKE",
    "match": "~",
    "imatch": "~*",
    "cs": "@>",
    "cd": "<@",
    "ov": "&&",
    "sl": "<<",
    "sr": ">>",
    "nxr": "&<",
    "nxl": "&>",
    "adj": "-|-",
}
_SEARCHES: Final = {
    "fts": "to_tsquery",
    "plfts": "plainto_tsquery",
    "phfts": "phraseto_tsquery",
    "wfts": "websearch_to_tsquery",
}
_PATTERNS: Final = {"like", "ilike"}


def condition(qualifier: Name, where: Where, parameters: Parameters) -> str:
    """A condition in SQL."""
    if isinstance(where, Group):
        joined = (" OR " if where.is_or else " AND ").join(
            condition(qualifier, term, parameters) for term in where.terms
        )
        return f"{'NOT ' if where.negated else ''}({joined})"
    if isinstance(where, EmbedTest):
        return f"{ident(where.join)} IS {'' if where.wants_rows else 'NOT '}DISTINCT FROM NULL"
    return _test(qualifier, where, parameters)


def _test(qualifier: Name, test: Test, parameters: Parameters) -> str:
    shown = ("NOT " if test.negated else "") + field(qualifier, test.field)
    convert = test.field.convert
    match test.operation:
        case IsTest(value):
            return f"{shown} IS {value.value}"
        case IsDistinct(operand):
            return f"{shown} IS DISTINCT FROM {parameters.operand(operand)}"
        case InList(operand):
            place = parameters.operand(operand)
            if convert is not None:
                place = f"(SELECT {convert}(unnest({place}::text[])))"
            return f"{shown} = ANY ({place})"
        case TextSearch(operator, operand, language):
            prefix = "" if language is None else f"{text(language)}, "
            return f"{shown} @@ {_SEARCHES[operator]}({prefix}{parameters.operand(operand)})"
        case Compare(operator, operand, quantifier):
            value = parameters.operand(operand)
            if convert is not None and operator not in _PATTERNS:
                value = f"{convert}({value})"
            if quantifier is not None:
                value = f"{quantifier.upper()}({value})"
            return f"{shown} {_OPERATORS[operator]} {value}"
