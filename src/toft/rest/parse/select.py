"""Pure: `select=`, `order=`, `columns=`, `on_conflict=` and the names that they are made of.

>>> from toft.rest.parse.grammar import run
>>> [item] = run(select_items, "example", "name:data->a->>b::text")
>>> item.alias, item.field.name, [step.operand for step in item.field.path], item.cast
('name', 'data', ['a', 'b'], 'text')
>>> [item] = run(select_items, "example", "boss:people!manager_id!inner(id,name)")
>>> item.alias, item.target, item.hint, item.is_inner, len(item.items)
('boss', 'people', 'manager_id', True, 2)
"""

from __future__ import annotations

from collections.abc import Callable

from toft.rest.parse.grammar import (
    Parser,
    any_char,
    attempt,
    between,
    char,
    choice,
    digit,
    end,
    guarded,
    label,
    lazily,
    look_ahead,
    many,
    many1,
    mapped,
    none_of,
    not_followed_by,
    one_of,
    optional,
    satisfy,
    sep_by,
    sep_by1,
    sequence,
    string,
    text_of,
)
from toft.rest.request import Field, JsonStep, OrderTerm, Path, SelectEmbed, SelectField, SelectItem


def second[T](_: object, value: T) -> T:
    """Keep what comes after a separator."""
    return value


def first[T](value: T, _: object) -> T:
    """Keep what comes before a separator."""
    return value


def _constant[T](value: T) -> Callable[[object], T]:
    return lambda _: value


_blanks = many(one_of(" \t"))


def lexeme[T](parser: Parser[T]) -> Parser[T]:
    """`parser` with blanks around it."""
    return sequence(_blanks, parser, _blanks, build=lambda _, value, __: value)


# A name may be `letter`, `digit` or one of `_ $`: what is expected is told as the first two.
_name_char = choice(
    satisfy(str.isalpha, "letter"), satisfy(lambda found: found.isdigit(), "digit"), one_of("_ $")
)
identifier = mapped(text_of(many1(_name_char)), str.strip)

_escaped = choice(none_of('\\"'), sequence(char("\\"), any_char, build=second))
quoted = between(char('"'), char('"'), text_of(many(_escaped)))

_inner_dash = attempt(sequence(char("-"), not_followed_by(char(">")), build=first))


def _dashed(part: Parser[str]) -> Parser[str]:
    return mapped(sep_by1(part, _inner_dash), "-".join)


name = label(choice(quoted, _dashed(identifier)), "field name (* or [a..z0..9_$])")
delimiter = label(char("."), "delimiter (.)")

# --- json paths -----------------------------------------------------------------------------------------

_arrow = choice(
    attempt(mapped(string("->>"), _constant(True))), attempt(mapped(string("->"), _constant(False)))
)
_key_part = mapped(text_of(many1(none_of("(-:.,>)"))), str.strip)
_key = label(choice(quoted, _dashed(_key_part)), "any non reserved character different from: .,>()")
_index_end = choice(
    attempt(look_ahead(string("->"))),
    attempt(look_ahead(string("::"))),
    attempt(look_ahead(string("."))),
    attempt(look_ahead(string(","))),
    attempt(end),
)
_index = sequence(
    optional(char("-"), "+"), text_of(many1(digit)), _index_end, build=lambda sign, n, _: sign + n
)
_operand = choice(
    attempt(mapped(_index, lambda number: (number, True))), attempt(mapped(_key, lambda key: (key, False)))
)
_no_steps: tuple[JsonStep, ...] = ()
json_path: Parser[tuple[JsonStep, ...]] = mapped(
    many(
        sequence(_arrow, _operand, build=lambda as_text, operand: JsonStep(operand[0], operand[1], as_text))
    ),
    tuple,
)
field: Parser[Field] = lexeme(sequence(name, optional(json_path, _no_steps), build=Field))


def _tree_path(names: list[str], path: tuple[JsonStep, ...]) -> tuple[Path, Field]:
    return tuple(names[:-1]), Field(names[-1], path)


tree_path = sequence(sep_by1(name, delimiter), optional(json_path, _no_steps), build=_tree_path)
names = sep_by1(name, lexeme(char(",")))

# --- select ---------------------------------------------------------------------------------------------

_alias = optional(
    attempt(sequence(name, char(":"), not_followed_by(char(":")), build=lambda alias, _, __: alias))
)
_item_end = choice(attempt(look_ahead(string(")"))), attempt(look_ahead(string(","))), attempt(end))
_cast = optional(sequence(string("::"), identifier, build=second))
_aggregate = choice(
    string("sum"), string("avg"), string("count"), attempt(string("max")), attempt(string("min"))
)
_star = sequence(string("*"), _item_end, build=lambda _, __: SelectField(Field("*")))
_count = sequence(
    _alias,
    string("count()"),
    _cast,
    _item_end,
    build=lambda alias, _, cast, __: SelectField(Field("*"), alias, None, "count", cast),
)
_plain = sequence(
    _alias,
    field,
    _cast,
    optional(attempt(sequence(char("."), _aggregate, string("()"), build=lambda _, name, __: name))),
    _cast,
    _item_end,
    build=lambda alias, field, cast, aggregate, aggregate_cast, _: SelectField(
        field, alias, cast, aggregate, aggregate_cast
    ),
)
_select_field = lexeme(choice(attempt(_star), attempt(_count), _plain))

_embed_param = sequence(
    char("!"),
    choice(
        attempt(mapped(string("left"), lambda _: ("join", "left"))),
        attempt(mapped(string("inner"), lambda _: ("join", "inner"))),
        attempt(mapped(name, lambda hint: ("hint", hint))),
    ),
    build=second,
)
_open_ahead = attempt(look_ahead(string("(")))


#: alias, target, the two parameters, whether it is a spread
type _Param = tuple[str, str]
type _Head = tuple[str | None, str, _Param | None, _Param | None, bool]

_relation_head: Parser[_Head] = sequence(
    _alias,
    # `count` is the aggregate, never a resource
    guarded(name, lambda found: found != "count"),
    optional(_embed_param),
    optional(_embed_param),
    _open_ahead,
    build=lambda alias, target, one, two, _: (alias, target, one, two, False),
)
_spread_head: Parser[_Head] = sequence(
    string("..."),
    name,
    optional(_embed_param),
    optional(_embed_param),
    _open_ahead,
    build=lambda _, target, one, two, __: (None, target, one, two, True),
)


def _embed(head: _Head, items: list[SelectItem]) -> SelectItem:
    alias, target, one, two, is_spread = head
    given: dict[str, str] = {}
    for param in (one, two):
        if param is not None:
            given.setdefault(*param)
    return SelectEmbed(
        target, tuple(items), alias, given.get("hint"), given.get("join") == "inner", is_spread
    )


_nested = between(char("("), char(")"), lazily(lambda: select_items))
_select_item: Parser[SelectItem] = choice(
    sequence(attempt(lexeme(_spread_head)), _nested, build=_embed),
    sequence(attempt(lexeme(_relation_head)), _nested, build=_embed),
    _select_field,
)
select_items: Parser[list[SelectItem]] = sep_by(_select_item, lexeme(char(",")))

# --- order ----------------------------------------------------------------------------------------------

_direction = choice(
    attempt(sequence(delimiter, string("asc"), build=second)),
    attempt(sequence(delimiter, string("desc"), build=second)),
)
_nulls = choice(
    attempt(sequence(delimiter, string("nullsfirst"), build=lambda _, __: "first")),
    attempt(sequence(delimiter, string("nullslast"), build=lambda _, __: "last")),
)
_term_end = choice(attempt(look_ahead(char(","))), attempt(end))
_nulls_and_end = choice(
    sequence(optional(_nulls), _term_end, build=first), mapped(_term_end, _constant(None))
)
_order_by_relation = sequence(
    name,
    between(char("("), char(")"), field),
    optional(_direction),
    _nulls_and_end,
    build=lambda relation, field, direction, nulls: OrderTerm(field, direction, nulls, relation),
)
_order_by_field = sequence(field, optional(_direction), _nulls_and_end, build=OrderTerm)
order_terms = sep_by1(lexeme(choice(attempt(_order_by_relation), _order_by_field)), char(","))
