"""Pure: read nodes as SELECTs; each embed is a lateral join on the SELECT of its child."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toft.rest.plan.nodes import (
    Embed,
    EmbedShape,
    EmbedTest,
    Group,
    OrderPlan,
    ReadNode,
    SelectPlan,
    Source,
    SpreadColumn,
    Where,
)
from toft.rest.render.fragment import (
    Parameters,
    aggregate,
    column,
    condition,
    field,
    ident,
    named,
    qualified,
    select_item,
)
from toft.rest.schema.model import Name


def select(node: ReadNode, parameters: Parameters) -> str:
    """The rows of a node, with its embeds."""
    qualifier = node.source.qualifier
    items = [select_item(qualifier, item) for item in (*node.selects, *node.hidden)]
    if not node.selects and not node.embeds:
        items.insert(0, column(qualifier, "*"))
    for embed in node.embeds:
        items += _embedded(embed)
    joins = "".join(_join(embed, parameters) for embed in node.embeds)
    conditions = [condition(qualifier, where, parameters) for where in node.where]
    conditions += _ties(node.source)
    return (
        f"SELECT {', '.join(items)} FROM {_from(node.source)}{joins}"
        f"{_where(conditions)}{_group_by(node)}{_order_by(qualifier, node.order)}{_limit(node, parameters)}"
    )


def count(node: ReadNode, parameters: Parameters) -> str:
    """One row for each row that the node has, were there no window."""
    qualifier = node.source.qualifier
    embeds = {embed.join: embed for embed in node.embeds}
    conditions = [_count_condition(qualifier, where, embeds, parameters) for where in node.where]
    conditions += _ties(node.source)
    conditions += [_exists(embed, parameters) for embed in node.embeds if embed.is_inner]
    return f"SELECT 1 FROM {_from(node.source)}{_where(conditions)}"


def _exists(embed: Embed, parameters: Parameters) -> str:
    return f"EXISTS ({count(embed.node, parameters)})"


def _count_condition(qualifier: Name, where: Where, embeds: dict[str, Embed], parameters: Parameters) -> str:
    """As in the SELECT, but nothing is joined here: an embed is asked for its rows by EXISTS."""
    if isinstance(where, EmbedTest):
        return f"{'' if where.wants_rows else 'NOT '}{_exists(embeds[where.join], parameters)}"
    if isinstance(where, Group):
        joined = (" OR " if where.is_or else " AND ").join(
            _count_condition(qualifier, term, embeds, parameters) for term in where.terms
        )
        return f"{'NOT ' if where.negated else ''}({joined})"
    return condition(qualifier, where, parameters)


# --- clauses --------------------------------------------------------------------------------------------


def _from(source: Source) -> str:
    shown = qualified(source.relation)
    junction = ""
    if source.tie is not None:
        relationship, parent = source.tie.relationship, source.tie.parent
        if relationship.function is not None:
            # The cast chooses among overloads, since a CTE's rows have no type of their own.
            row = f"{ident(parent.name)}::{qualified(relationship.origin)}"
            shown = f"{qualified(relationship.function)}({row})"
        if relationship.junction is not None:
            junction = f", {qualified(relationship.junction.table)}"
    alias = "" if source.alias is None else f" AS {ident(source.alias)}"
    return f"{shown}{alias}{junction}"


def _ties(source: Source) -> Iterator[str]:
    """The conditions that tie a child's rows to its parent's."""
    if source.tie is None:
        return
    relationship, parent = source.tie.relationship, source.tie.parent
    junction = relationship.junction
    if junction is not None:
        for inside, outside in junction.target_columns:
            yield f"{column(source.qualifier, outside)} = {column(junction.table, inside)}"
        for inside, outside in junction.origin_columns:
            yield f"{column(junction.table, inside)} = {column(parent, outside)}"
    for here, there in relationship.columns:
        yield f"{column(source.qualifier, there)} = {column(parent, here)}"


def _where(conditions: Iterable[str]) -> str:
    joined = " AND ".join(conditions)
    return f" WHERE {joined}" if joined else ""


def _order_by(qualifier: Name, order: Iterable[OrderPlan]) -> str:
    terms = ", ".join(_order_term(qualifier, term) for term in order)
    return f" ORDER BY {terms}" if terms else ""


def _order_term(qualifier: Name, term: OrderPlan) -> str:
    shown = field(qualifier if term.relation is None else Name("", term.relation), term.field)
    if term.direction is not None:
        shown += f" {term.direction.upper()}"
    if term.nulls is not None:
        shown += f" NULLS {term.nulls.upper()}"
    return shown


def _limit(node: ReadNode, parameters: Parameters) -> str:
    """The window. A limit that the client gives has been cut to what the server allows."""
    clause = ""
    window = node.window
    if window is not None and window.limit is not None:
        clause = f" LIMIT {parameters.operand(window.limit)}"
    elif node.max_rows is not None:
        clause = f" LIMIT {node.max_rows}"
    if window is not None and window.offset is not None:
        clause += f" OFFSET {parameters.operand(window.offset)}"
    return clause


def _group_by(node: ReadNode) -> str:
    spreads = [item for embed in node.embeds for item in embed.spread]
    if not any(item.aggregate for item in (*node.selects, *spreads)):
        return ""
    terms = [_group_term(node.source.qualifier, item) for item in node.selects if not item.aggregate]
    for embed in node.embeds:
        if embed.shape.is_spread:
            terms += [
                column(Name("", embed.join), item.alias or item.name)
                for item in embed.spread
                if not item.aggregate
            ]
        elif not embed.is_empty:
            terms.append(ident(embed.name))
    return f" GROUP BY {', '.join(terms)}" if terms else ""


def _group_term(qualifier: Name, item: SelectPlan) -> str:
    return ident(item.alias) if item.alias is not None else field(qualifier, item.field)


# --- embeds ---------------------------------------------------------------------------------------------


def _embedded(embed: Embed) -> Iterator[str]:
    """The columns of an embed in its parent's SELECT."""
    join = ident(embed.join)
    if embed.shape.is_spread:
        for item in embed.spread:
            shown = column(Name("", embed.join), item.name)
            yield named(aggregate(shown, item.aggregate, item.aggregate_cast), item.alias)
    elif embed.is_empty:
        return
    elif embed.shape is EmbedShape.OBJECT:
        yield f"row_to_json({join}.*)::jsonb AS {ident(embed.name)}"
    else:
        yield f"COALESCE({join}.{join}, '[]') AS {ident(embed.name)}"


def _join(embed: Embed, parameters: Parameters) -> str:
    kind = "INNER" if embed.is_inner else "LEFT"
    join = ident(embed.join)
    child = select(embed.node, parameters)
    if embed.shape in {EmbedShape.OBJECT, EmbedShape.SPREAD_ONE}:
        return f" {kind} JOIN LATERAL ({child}) AS {join} ON TRUE"
    items = [f"json_agg({join})::jsonb AS {join}"]
    items += [_spread_array(embed, item) for item in embed.spread]
    on = f"{join} IS NOT NULL" if embed.is_inner else "TRUE"
    return f" {kind} JOIN LATERAL (SELECT {', '.join(items)} FROM ({child}) AS {join}) AS {join} ON {on}"


def _spread_array(embed: Embed, item: SpreadColumn) -> str:
    """A column of a to-many spread as an array, in the child's order."""
    own = Name("", embed.join)
    ordered = f"{column(own, item.name)}{_order_by(own, embed.spread_order)}"
    return f"COALESCE(json_agg({ordered}), '[]')::jsonb AS {ident(item.alias or item.name)}"
