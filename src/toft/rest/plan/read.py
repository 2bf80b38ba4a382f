"""Pure: the tree of read nodes: `select=` and everything that hangs on its resources, resolved.

The request's parts are first laid on a tree of drafts, one per resource; then each draft learns its
relationship, and from the leaves up they become `ReadNode`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from toft.rest.errors import aggregates_disabled, not_embedded, not_implemented, related_order
from toft.rest.plan.embed import find_relationship
from toft.rest.plan.nodes import (
    Embed,
    EmbedShape,
    EmbedTest,
    FieldPlan,
    Group,
    OrderPlan,
    ReadNode,
    SelectPlan,
    Source,
    SpreadColumn,
    Test,
    Where,
)
from toft.rest.request import (
    Condition,
    Field,
    Filter,
    IsTest,
    IsValue,
    Logic,
    OrderTerm,
    Path,
    Query,
    SelectEmbed,
    SelectField,
    SelectItem,
    TextSearch,
    Window,
)
from toft.rest.schema.model import Cardinality, Name, Relationship, SchemaCache, Table

#: the statement's own rows, when something was done before reading: a name that error texts show
SOURCE: Final = Name("", "pgrst_source")


def plan_read(
    schema: SchemaCache,
    query: Query,
    root: Name,
    *,
    from_source: bool,
    is_write: bool,
    max_rows: int | None,
    allows_aggregates: bool,
) -> ReadNode:
    """The read tree over `root`, or over the statement's own rows under its name.

    Of a write's filters only those on embeds count here. Raises PGRST108, 118, 123, 127, 200, 201.
    """
    draft = _Draft(root.name, query.select)
    draft.source = Source(SOURCE, Name("", root.name), root.name) if from_source else Source(root, root)
    draft.table = schema.table(root)
    _lay_out(draft, query, is_write=is_write)
    _relate(draft, schema, root.schema)
    planner = _Planner(schema, None if is_write else max_rows)
    node = planner.node(draft, is_grouped=False)
    if not allows_aggregates and any(_has_aggregate(each) for each in draft.walk()):
        raise aggregates_disabled()
    return node


class _Draft:
    """A resource of the request while its plan is made."""

    def __init__(self, target: str, items: Sequence[SelectItem], depth: int = 0) -> None:
        self.target = target
        self.depth = depth
        self.selects = [item for item in items if isinstance(item, SelectField)]
        self.embeds = [item for item in items if isinstance(item, SelectEmbed)]
        self.children = [_Draft(embed.target, embed.items, depth + 1) for embed in self.embeds]
        self.embed: SelectEmbed | None = None
        for child, embed in zip(self.children, self.embeds, strict=True):
            child.embed = embed
        self.conditions: list[Condition] = []
        self.order: tuple[OrderTerm, ...] = ()
        self.window: Window | None = None
        # Known once it is related:
        self.source: Source | None = None
        self.table: Table | None = None
        self.join = ""

    @property
    def name(self) -> str:
        """What the client calls it."""
        return (self.embed.alias if self.embed is not None else None) or self.target

    @property
    def shape(self) -> EmbedShape:
        assert self.embed is not None
        is_to_one = self.relationship.cardinality.is_to_one
        if self.embed.is_spread:
            return EmbedShape.SPREAD_ONE if is_to_one else EmbedShape.SPREAD_MANY
        return EmbedShape.OBJECT if is_to_one else EmbedShape.ARRAY

    @property
    def relationship(self) -> Relationship:
        assert self.source is not None
        assert self.source.relationship is not None
        return self.source.relationship

    @property
    def is_empty(self) -> bool:
        """Nothing of it, or of what is in it, is selected."""
        return not self.selects and all(child.is_empty for child in self.children)

    def walk(self) -> Iterator[_Draft]:
        yield self
        for child in self.children:
            yield from child.walk()

    def find(self, path: Path) -> _Draft:
        """The draft at `path`, by alias or target name. Raises PGRST108."""
        here = self
        for step in path:
            for child in here.children:
                if step in {child.target, child.name}:
                    here = child
                    break
            else:
                raise not_embedded(step)
        return here


def _has_aggregate(draft: _Draft) -> bool:
    return any(item.aggregate is not None for item in draft.selects)


# --- laying out -----------------------------------------------------------------------------------------


def _lay_out(root: _Draft, query: Query, *, is_write: bool) -> None:
    for path, found in query.filters:
        if path or not is_write:
            root.find(path).conditions.append(found)
    for path, order in query.order:
        root.find(path).order = order
    for path, window in query.windows:
        if not is_write:
            root.find(path).window = window
    for path, condition in query.logic:
        if path or not is_write:
            root.find(path).conditions.append(condition)


def _relate(parent: _Draft, schema: SchemaCache, in_schema: str) -> None:
    """Find each child's relationship, from the root down."""
    assert parent.source is not None
    origin = parent.source.alias if parent.depth == 0 and parent.source.alias else None
    if origin is None:
        origin = parent.source.relation.name
    for child in parent.children:
        embed = child.embed
        assert embed is not None
        found = find_relationship(schema, in_schema, origin, embed.target, embed.hint)
        child.source = _source(found, child.depth, parent.source.qualifier)
        child.table = schema.table(found.target)
        child.join = f"{found.origin.name}_{child.name}_{child.depth}"
        _relate(child, schema, in_schema)


def _source(found: Relationship, depth: int, parent: Name) -> Source:
    if found.cardinality is Cardinality.MANY_TO_MANY:
        # It is joined with its junction, where plain names are unambiguous.
        return Source(found.target, found.target, None, found, parent)
    alias = f"{found.target.name}_{depth}"
    return Source(found.target, Name("", alias), alias, found, parent)


# --- making nodes ---------------------------------------------------------------------------------------


class _Hoisted(msgspec.Struct, frozen=True):
    """An aggregate that a to-one spread leaves to its parent."""

    aggregate: str
    cast: str | None
    alias: str | None


class _Planner:
    def __init__(self, schema: SchemaCache, max_rows: int | None) -> None:
        self._schema = schema
        self._max_rows = max_rows

    def node(self, draft: _Draft, *, is_grouped: bool) -> ReadNode:
        node, _ = self._node(draft, is_grouped)
        return node

    def _node(self, draft: _Draft, is_grouped: bool) -> tuple[ReadNode, dict[str, _Hoisted]]:
        """The node, and what it leaves to its parent to aggregate, by the name of its column."""
        assert draft.source is not None
        shape = draft.shape if draft.embed is not None else None
        is_grouped = is_grouped or _has_aggregate(draft) or shape is EmbedShape.SPREAD_MANY
        selects = self._selects(draft, is_grouped=is_grouped)
        embeds: list[Embed] = []
        from_children: dict[str, _Hoisted] = {}
        for child in draft.children:
            embed, hoisted = self._embed(child, is_grouped, lifts=shape is EmbedShape.SPREAD_ONE)
            embeds.append(embed)
            from_children |= hoisted
        to_parent: dict[str, _Hoisted] = {}
        if shape is EmbedShape.SPREAD_ONE:
            selects, to_parent = _hoist(selects)
            to_parent |= from_children
        order = tuple(self._order(draft, term) for term in draft.order)
        hidden: tuple[SelectPlan, ...] = ()
        if shape is EmbedShape.SPREAD_MANY:
            if any(item.aggregate for item in selects) or any(c.aggregate for e in embeds for c in e.spread):
                raise not_implemented(
                    "Aggregates are not implemented for one-to-many or many-to-many spreads."
                )
            hidden = tuple(_hidden(draft.join, number, term) for number, term in enumerate(order, 1))
            order = ()
        node = ReadNode(
            draft.source,
            tuple(selects),
            tuple(self._where(draft, condition) for condition in draft.conditions),
            order,
            draft.window,
            self._max_rows,
            tuple(embeds),
            hidden,
        )
        return node, to_parent

    def _embed(self, child: _Draft, is_grouped: bool, *, lifts: bool) -> tuple[Embed, dict[str, _Hoisted]]:
        """The embed; its aggregates are applied in the parent, unless the parent `lifts` them further."""
        node, hoisted = self._node(child, is_grouped)
        assert child.embed is not None
        shape = child.shape
        spread = list(_spread_columns(node)) if shape.is_spread else []
        if not lifts:
            spread = [_aggregated(column, hoisted.get(column.name)) for column in spread]
        spread_order = tuple(
            OrderPlan(FieldPlan(hidden.alias or ""), term.direction, term.nulls)
            for hidden, term in zip(node.hidden, child.order, strict=False)
        )
        embed = Embed(
            node,
            child.name,
            child.join,
            shape,
            child.embed.is_inner,
            child.is_empty,
            tuple(spread),
            spread_order,
        )
        return embed, hoisted if lifts else {}

    # Fields.

    def _selects(self, draft: _Draft, *, is_grouped: bool) -> list[SelectPlan]:
        is_spread = draft.embed is not None and draft.embed.is_spread
        expands = is_grouped or self._has_representation(draft.table)
        planned: list[SelectPlan] = []
        for item in draft.selects:
            if item.field.name == "*" and item.aggregate is None and expands and draft.table is not None:
                fields = (self._output(draft, Field(name)) for name in draft.table.columns)
                planned.extend(self._named(SelectPlan(field, cast=item.cast), is_spread) for field in fields)
                continue
            field = self._output(draft, item.field)
            if item.field.name == "*" and item.aggregate == "count" and is_spread:
                field = msgspec.structs.replace(field, is_whole_row=True)
            plan = SelectPlan(field, item.alias, item.cast, item.aggregate, item.aggregate_cast)
            planned.append(self._named(plan, is_spread))
        return planned

    def _has_representation(self, table: Table | None) -> bool:
        known = self._schema.representations
        return (
            bool(known)
            and table is not None
            and any((column.nominal_type, "json") in known for column in table.columns.values())
        )

    def _named(self, plan: SelectPlan, is_spread: bool) -> SelectPlan:
        """Give it the name that it has in the answer, where SQL would give another."""
        if plan.alias is not None:
            return plan
        alias = None
        if plan.aggregate is not None:
            alias = plan.aggregate if is_spread else None
        elif plan.field.path:
            alias = _name_of_path(plan.field)
        elif plan.field.convert is not None:
            alias = plan.field.name
        return plan if alias is None else msgspec.structs.replace(plan, alias=alias)

    def _output(self, draft: _Draft, field: Field) -> FieldPlan:
        nominal = _nominal_type(draft.table, field.name)
        convert = self._schema.representations.get((nominal, "json"))
        return FieldPlan(field.name, field.path, nominal in {"json", "jsonb"}, convert=convert)

    def _order(self, draft: _Draft, term: OrderTerm) -> OrderPlan:
        if term.relation is None:
            nominal = _nominal_type(draft.table, term.field.name)
            field = FieldPlan(term.field.name, term.field.path, nominal in {"json", "jsonb"})
            return OrderPlan(field, term.direction, term.nulls)
        for child in draft.children:
            if child.name == term.relation:
                if not child.relationship.cardinality.is_to_one:
                    assert draft.source is not None
                    raise related_order(draft.source.relation.name, child.name)
                return OrderPlan(
                    FieldPlan(term.field.name, term.field.path), term.direction, term.nulls, child.join
                )
        raise not_embedded(term.relation)

    def _where(self, draft: _Draft, condition: Condition) -> Where:
        return plan_condition(
            self._schema, draft.table, condition, {child.name: child.join for child in draft.children}
        )


def plan_condition(
    schema: SchemaCache, table: Table | None, condition: Condition, joins: dict[str, str]
) -> Where:
    """A filter or logic tree on `table`; `joins` are the embeds that `is.null` can ask for."""
    if isinstance(condition, Logic):
        terms = tuple(plan_condition(schema, table, term, joins) for term in condition.terms)
        return Group(condition.is_or, condition.negated, terms)
    field, operation = condition.field, condition.operation
    if isinstance(operation, IsTest) and operation.value is IsValue.NULL and not field.path:
        join = joins.get(field.name)
        if join is not None:
            return EmbedTest(join, wants_rows=condition.negated)
    return Test(_compared(schema, table, condition), operation, condition.negated)


def _compared(schema: SchemaCache, table: Table | None, condition: Filter) -> FieldPlan:
    field, operation = condition.field, condition.operation
    column = table.columns.get(field.name) if table is not None else None
    nominal = column.nominal_type if column is not None else ""
    searches = isinstance(operation, TextSearch) and column is not None and column.type != "tsvector"
    return FieldPlan(
        field.name,
        field.path,
        is_json=nominal in {"json", "jsonb"},
        searches=searches,
        language=operation.language if isinstance(operation, TextSearch) else None,
        convert=schema.representations.get(("text", nominal)),
    )


def _nominal_type(table: Table | None, name: str) -> str:
    column = table.columns.get(name) if table is not None else None
    return column.nominal_type if column is not None else ""


def _name_of_path(field: FieldPlan) -> str:
    """The last key; behind the last key there may be indexes."""
    keys = [step.operand for step in field.path if not step.is_index]
    return keys[-1] if keys else field.name


# --- spreads --------------------------------------------------------------------------------------------


def _spread_columns(node: ReadNode) -> Iterator[SpreadColumn]:
    for item in node.selects:
        yield SpreadColumn(item.alias or item.field.name)
    for embed in node.embeds:
        if embed.shape.is_spread:
            for column in embed.spread:
                yield SpreadColumn(column.alias or column.name)
        elif not embed.is_empty:
            yield SpreadColumn(embed.name)


def _hoist(selects: Iterable[SelectPlan]) -> tuple[list[SelectPlan], dict[str, _Hoisted]]:
    plain: list[SelectPlan] = []
    hoisted: dict[str, _Hoisted] = {}
    for item in selects:
        if item.aggregate is not None:
            name = item.alias or item.field.name
            hoisted[name] = _Hoisted(item.aggregate, item.aggregate_cast, item.alias)
            item = msgspec.structs.replace(item, aggregate=None, aggregate_cast=None)
        plain.append(item)
    return plain, hoisted


def _aggregated(column: SpreadColumn, hoisted: _Hoisted | None) -> SpreadColumn:
    if hoisted is None:
        return column
    return SpreadColumn(column.name, hoisted.aggregate, hoisted.cast, hoisted.alias)


def _hidden(join: str, number: int, term: OrderPlan) -> SelectPlan:
    return SelectPlan(term.field, alias=f"{join}_{term.field.name}_{number}", relation=term.relation)


# --- what a write or a call must give back --------------------------------------------------------------


def needed_columns(node: ReadNode, primary_key: Sequence[str]) -> tuple[str, ...]:
    """Columns of the statement's own rows that the read tree uses, sorted; `*` for all of them."""
    names = {item.field.name for item in node.selects}
    if "*" in names:
        return ("*",)
    relationships = [embed.node.source.relationship for embed in node.embeds]
    if any(found is not None and found.function is not None for found in relationships):
        # A function may look at any of them.
        return ("*",)
    for found in relationships:
        if found is not None and found.junction is not None:
            names.update(outside for _, outside in found.junction.origin_columns)
        elif found is not None:
            names.update(here for here, _ in found.columns)
    return tuple(sorted(names.union(primary_key)))


def filtered_columns(node: ReadNode) -> set[str]:
    """Columns that the conditions of the tree mention."""
    found: set[str] = set()
    for condition in node.where:
        found |= _mentioned(condition)
    for embed in node.embeds:
        found |= filtered_columns(embed.node)
    return found


def _mentioned(condition: Where) -> set[str]:
    if isinstance(condition, Group):
        return set[str]().union(*(_mentioned(term) for term in condition.terms))
    return {condition.field.name} if isinstance(condition, Test) else {condition.join}
