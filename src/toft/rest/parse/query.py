"""Pure: the query string, in two readings.

`skim` splits it into parts, a form (what makes two requests the same shape) and the values; it is done for
every request. `parse` gives the parts their meaning; it is done once per shape. Both number the values alike.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_plus

import msgspec

from toft.rest.errors import bad_query
from toft.rest.parse import filters as filter_grammar
from toft.rest.parse import select as select_grammar
from toft.rest.parse.grammar import GrammarError, Parser, run
from toft.rest.request import (
    Condition,
    Field,
    Filter,
    IsTest,
    Logic,
    Operand,
    OrderTerm,
    Path,
    Query,
    SelectItem,
    Window,
)

_RESERVED: Final = {"select", "columns", "on_conflict"}
_MODIFIERS: Final = {"order": "order", "limit": "limit", "offset": "offset", "and": "logic", "or": "logic"}
_INTEGER = re.compile(r"\s*-?[0-9]+\s*")
_PLAIN = re.compile(r"[A-Za-z0-9._~-]*")
#: beginnings that only an operator can have, even where other texts would be arguments
_SURELY_OPERATOR: Final = ("not.", "in.", "is.")


class Part(NamedTuple):
    """One parameter. `slots` is how many values it has from `slot` on; None: its text is all form.

    kind: select, columns, on_conflict, order, logic, filter, argument.
    """

    kind: str
    key: str
    text: str
    slot: int = 0
    slots: int | None = None


class Skimmed(msgspec.Struct, gc=False):
    """A query string, split. `windows` has limit and offset as given by path text; "" is the root."""

    pairs: list[tuple[str, str | None]]
    parts: list[Part]
    form: list[str]
    values: list[bytes]
    windows: dict[str, list[int | None]]


def _decoded(text: str) -> str:
    if "%" in text or "+" in text:
        return unquote_plus(text, errors="surrogateescape")
    return text if text.isascii() else text.encode("latin-1", "replace").decode("utf-8", "surrogateescape")


def split_pairs(raw: str) -> list[tuple[str, str | None]]:
    """Decoded names and values in order; None where there was no `=`."""
    pairs: list[tuple[str, str | None]] = []
    for piece in raw.replace(";", "&").split("&") if raw else ():
        name, equals, value = piece.partition("=")
        if name or equals:
            pairs.append((_decoded(name), _decoded(value) if equals else None))
    return pairs


def skim(raw: str, *, values_may_be_arguments: bool) -> Skimmed:
    """Split `raw`. With `values_may_be_arguments` a filter that has no operator is a function's argument."""
    skimmed = Skimmed([], [], [], [], {})
    for piece in raw.replace(";", "&").split("&") if raw else ():
        if piece.startswith(_OFTEN_THE_SAME):
            pair, part = _read_fixed(piece)
            skimmed.pairs.append(pair)
            skimmed.parts.append(part)
            skimmed.form += part[:3]
            continue
        name, equals, value = piece.partition("=")
        if equals:
            key, text = _decoded(name), _decoded(value)
            skimmed.pairs.append((key, text))
            _skim_pair(skimmed, key, text, values_may_be_arguments)
        elif name:
            skimmed.pairs.append((_decoded(name), None))
    return skimmed


#: An app has few of these, which have no values, and many filters for each.
_OFTEN_THE_SAME: Final = ("select=", "columns=", "on_conflict=", "order=")


@functools.lru_cache(1024)
def _read_fixed(piece: str) -> tuple[tuple[str, str], Part]:
    """A parameter that is all form."""
    key, _, value = piece.partition("=")
    text = _decoded(value)
    return (key, text), Part(_kind_of(key), key, text)


@functools.lru_cache(1024)
def _kind_of(key: str) -> str:
    return key if key in _RESERVED else _MODIFIERS.get(key.rpartition(".")[2], "filter")


def _skim_pair(skimmed: Skimmed, key: str, text: str, values_may_be_arguments: bool) -> None:
    kind = _kind_of(key)
    split: tuple[str, tuple[bytes, ...]] | None = None
    if kind == "filter":
        split = filter_grammar.skim_filter(text)
        if split is None and values_may_be_arguments and not text.startswith(_SURELY_OPERATOR):
            kind, split = "argument", ("", (filter_grammar.to_bytes(text),))
    elif kind == "logic":
        split = filter_grammar.skim_logic(text)
    elif kind in {"limit", "offset"}:
        _skim_window(skimmed, key, kind, text)
        return
    if split is None:
        skimmed.parts.append(Part(kind, key, text))
        skimmed.form += (kind, key, text)
    else:
        form, values = split
        skimmed.parts.append(Part(kind, key, text, len(skimmed.values), len(values)))
        skimmed.form += (kind, key, form)
        skimmed.values += values


def _skim_window(skimmed: Skimmed, key: str, kind: str, text: str) -> None:
    window = skimmed.windows.setdefault(key.rpartition(".")[0], [None, None])
    number = int(text) if _INTEGER.fullmatch(text) else None
    if kind == "limit":
        # One that cannot be read is none, unless there is an offset: then it is zero.
        window[0] = number
    else:
        window[1] = number or 0


def canonical(pairs: Sequence[tuple[str, str | None]]) -> str:
    """The query string as Content-Location shows it: sorted by name, values of one name joined."""
    by_name: dict[str, str] = {}
    for name, value in sorted(pairs, key=_name_of) if len(pairs) > 1 else pairs:
        text = _percent(value) if value else ""
        known = by_name.get(name)
        by_name[name] = text if known is None else f"{known},{text}"
    return "&".join([f"{_percent(name)}={text}" for name, text in by_name.items()])


_name_of: Final = itemgetter(0)


def _percent(text: str) -> str:
    return text if (text.isidentifier() and text.isascii()) or _PLAIN.fullmatch(text) else _encoded(text)


@functools.lru_cache(1024)
def _encoded(text: str) -> str:
    # Upstream encodes each byte as if it were a character of its own.
    return quote(text.encode("utf-8", "surrogateescape").decode("latin-1"), safe="")


# --- the meaning ----------------------------------------------------------------------------------------


class NotAligned(Exception):
    """The quick reading saw other values than the grammar: this text is all form."""


def _run[T](parser: Parser[T], what: str, shown: str, text: str | None = None) -> T:
    try:
        return run(parser, f"failed to parse {what} ({shown})", shown if text is None else text)
    except GrammarError as error:
        raise bad_query(error.position, error.details) from None


def parse(skimmed: Skimmed, window_slots: Sequence[tuple[str, Window]]) -> Query:
    """What the parts mean. Raises `RestError` PGRST100, or `NotAligned`."""
    parts = skimmed.parts
    order = [_order(part) for part in parts if part.kind == "order"]
    logic = [_logic(part) for part in parts if part.kind == "logic"]
    columns = columns_of(parts)
    select = _select(parts)
    filters: list[tuple[Path, Filter]] = []
    arguments: list[tuple[str, Operand]] = []
    for part in parts:
        if part.kind == "filter":
            filters.append(_filter(part))
        elif part.kind == "argument":
            _, field = _tree_path(part.key)
            arguments.append((field.name, Operand("", part.slot)))
    on_conflict = _names(parts, "on_conflict", "on_conflict parameter")
    windows = [(_window_path(path), window) for path, window in window_slots]
    return Query(
        select=select,
        filters=tuple(filters),
        logic=tuple(logic),
        order=tuple(order),
        windows=tuple(windows),
        columns=columns,
        on_conflict=on_conflict,
        arguments=tuple(arguments),
    )


def columns_of(parts: Sequence[Part]) -> tuple[str, ...] | None:
    """The names in `columns=`, sorted and each once; None when there is none. Raises PGRST100."""
    text = _first(parts, "columns")
    return None if text is None else _columns(text)


@functools.lru_cache(512)
def _columns(text: str) -> tuple[str, ...]:
    return tuple(sorted(set(_run(select_grammar.names, "columns parameter", text))))


def _first(parts: Sequence[Part], kind: str) -> str | None:
    return next((part.text for part in parts if part.kind == kind), None)


def _select(parts: Sequence[Part]) -> tuple[SelectItem, ...]:
    text = _first(parts, "select")
    return _select_items("*" if text is None else text)


@functools.lru_cache(512)
def _select_items(text: str) -> tuple[SelectItem, ...]:
    """An app has few selects and many filters for each."""
    return tuple(_run(select_grammar.select_items, "select parameter", text))


def _names(parts: Sequence[Part], kind: str, what: str) -> tuple[str, ...] | None:
    text = _first(parts, kind)
    return None if text is None else tuple(_run(select_grammar.names, what, text))


def _tree_path(key: str) -> tuple[Path, Field]:
    return _run(select_grammar.tree_path, "tree path", key)


def _window_path(path: str) -> Path:
    if not path:
        return ()
    inner, field = _tree_path(path)
    return (*inner, field.name)


def _order(part: Part) -> tuple[Path, tuple[OrderTerm, ...]]:
    path, _ = _tree_path(part.key)
    return path, tuple(_run(select_grammar.order_terms, "order", part.text))


def _filter(part: Part) -> tuple[Path, Filter]:
    path, field = _tree_path(part.key)
    negated, operation = _run(filter_grammar.operation, "filter", part.text)
    return path, _numbered(Filter(field, operation, negated), part)


def _logic(part: Part) -> tuple[Path, Condition]:
    words = _run(filter_grammar.logic_path, "logic path", part.key)
    operator = f"not.{words[-1]}" if "not" in words else words[-1]
    path = tuple(word for word in words[:-1] if word != "not")
    condition = _run(filter_grammar.logic_tree, "logic tree", part.text, operator + part.text)
    return path, _numbered(condition, part)


def _numbered[C: Filter | Logic](condition: C, part: Part) -> C:
    """The condition with its operands at the slots that `skim` counted."""
    if part.slots is None:
        return condition
    if len(filter_grammar.operands(condition)) != part.slots:
        raise NotAligned
    slots = iter(range(part.slot, part.slot + part.slots))
    return _renumber(condition, lambda: next(slots))


def _renumber[C: Filter | Logic](condition: C, next_slot: Callable[[], int]) -> C:
    replace = msgspec.structs.replace
    if isinstance(condition, Logic):
        return replace(condition, terms=tuple(_renumber(term, next_slot) for term in condition.terms))
    operation = condition.operation
    if isinstance(operation, IsTest):
        return condition
    return replace(condition, operation=replace(operation, operand=Operand("", next_slot())))


def without_slots(parts: Sequence[Part]) -> list[Part]:
    """The parts with all their text as form."""
    return [part if part.kind == "argument" else part._replace(slots=None) for part in parts]
