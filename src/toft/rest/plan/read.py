"""Pure: the tree of read nodes: `select=` and everything that hangs on its resources, resolved.

The request's parts are first laid on a tree of drafts, one per resource; each draft then finds its place in
the schema and is a resource; from the leaves up these become `ReadNode`s.
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
    Tie,
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

_JSON_TYPES: Final = {"json", "jsonb"}
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
    _lay_out(draft, query, is_write=is_write)
    source = Source(SOURCE, Name("", root.name), root.name) if from_source else Source(root, root)
    resource = _relate(draft, source, schema, root)
    node = _Planner(schema, None if is_write else max_rows).node(resource)
    if not allows_aggregates and any(each.has_aggregate for each in draft.walk()):
        raise aggregates_disabled()
    return node


# --- drafts: what the request says of each resource -----------------------------------------------------


class _Draft:
    """A resource of the request, before its relationship is known."""

    def __init__(self, name: str, items: Sequence[SelectItem]) -> None:
        #: what the client calls it
        self.name = name
        self.selects = [item for item in items if isinstance(item, SelectField)]
        self.children = [
            (embed, _Draft(embed.alias or embed.target, embed.items))
            for embed in items
            if isinstance(embed, SelectEmbed)
        ]
        self.conditions: list[Condition] = []
        self.order: tuple[OrderTerm, ...] = ()
        self.window: Window | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing of it, or of what is in it, is selected."""
        return not self.selects and all(child.is_empty for _, child in self.children)

    @property
    def has_aggregate(self) -> bool:
        return any(item.aggregate is not None for item in self.selects)

    def walk(self) -> Iterator[_Draft]:
        yield self
        for _, child in self.children:
            yield from child.walk()

    def find(self, path: Path) -> _Draft:
        """The draft at `path`, by alias or target name. Raises PGRST108."""
        here = self
        for step in path:
            for embed, child in here.children:
                if step in {embed.target, child.name}:
                    here = child
                    break
            else:
                raise not_embedded(step)
        return here


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


# --- resources: drafts with their place in the schema ---------------------------------------------------


class _Resource(msgspec.Struct, frozen=True):
    """A draft, where its rows come from, and the resources embedded in it."""

    draft: _Draft
    source: Source
    table: Table | None
    children: list[_Embedded]


class _Embedded(msgspec.Struct, frozen=True):
    """A resource in its parent, joined as `join`."""

    resource: _Resource
    embed: SelectEmbed
    shape: EmbedShape
    join: str

    @property
    def name(self) -> str:
        return self.resource.draft.name


def _relate(
    draft: _Draft, source: Source, schema: SchemaCache, relation: Name, *, depth: int = 0
) -> _Resource:
    """Find the relationships of all that is embedded, from the root down. Raises PGRST200 and PGRST201."""
    children: list[_Embedded] = []
    for embed, child in draft.children:
        found = find_relationship(schema, relation.schema, relation.name, embed.target, embed.hint)
        resource = _relate(
            child, _source(found, depth + 1, source.qualifier), schema, found.target, depth=depth + 1
        )
        join = f"{found.origin.name}_{child.name}_{depth + 1}"
        children.append(_Embedded(resource, embed, _shape(embed, found), join))
    return _Resource(draft, source, schema.table(relation), children)


def _shape(embed: SelectEmbed, found: Relationship) -> EmbedShape:
    is_to_one = found.cardinality.is_to_one
    if embed.is_spread:
        return EmbedShape.SPREAD_ONE if is_to_one else EmbedShape.SPREAD_MANY
    return EmbedShape.OBJECT if is_to_one else EmbedShape.ARRAY


def _source(found: Relationship, depth: int, parent: Name) -> Source:
    if found.cardinality is Cardinality.MANY_TO_MANY:
        # It is joined with its junction, where plain names are unambiguous.
        return Source(found.target, found.target, tie=Tie(found, parent))
    alias = f"{found.target.name}_{depth}"
    return Source(found.target, Name("", alias), alias, Tie(found, parent))


# --- nodes ----------------------------------------------------------------------------------------------


class _Hoisted(msgspec.Struct, frozen=True):
    """An aggregate that a to-one spread leaves to its parent."""

    aggregate: str
    cast: str | None
    alias: str | None


type _HoistedByName = dict[str, _Hoisted]


class _Planner:
    def __init__(self, schema: SchemaCache, max_rows: int | None) -> None:
        self._schema = schema
        self._max_rows = max_rows

    def node(self, resource: _Resource) -> ReadNode:
        """The node of the root."""
        node, _ = self._node(resource, None, is_grouped=False)
        return node

    def _node(
        self, resource: _Resource, here: _Embedded | None, *, is_grouped: bool
    ) -> tuple[ReadNode, _HoistedByName]:
        """The node, and what it leaves to its parent to aggregate. `here`: how it stands in its parent."""
        draft = resource.draft
        shape = None if here is None else here.shape
        is_grouped = is_grouped or draft.has_aggregate or shape is EmbedShape.SPREAD_MANY
        is_spread = shape is not None and shape.is_spread
        selects = self._selects(resource, is_grouped=is_grouped, is_spread=is_spread)
        is_lifting = shape is EmbedShape.SPREAD_ONE
        embeds: list[Embed] = []
        hoisted: _HoistedByName = {}
        for child in resource.children:
            embed, from_child = self._embed(child, is_grouped=is_grouped, is_lifting=is_lifting)
            embeds.append(embed)
            hoisted |= from_child
        if is_lifting:
            selects, own = _hoist(selects)
            hoisted |= own
        order = tuple(self._order(resource, term) for term in draft.order)
        hidden: tuple[SelectPlan, ...] = ()
        if here is not None and shape is EmbedShape.SPREAD_MANY:
            _refuse_aggregates(selects, embeds)
            hidden = tuple(_hidden(here.join, number, term) for number, term in enumerate(order, 1))
            order = ()
        node = ReadNode(
            resource.source,
            tuple(selects),
            tuple(self._where(resource, condition) for condition in draft.conditions),
            order,
            draft.window,
            self._max_rows,
            tuple(embeds),
            hidden,
        )
        return node, hoisted

    def _embed(self, child: _Embedded, *, is_grouped: bool, is_lifting: bool) -> tuple[Embed, _HoistedByName]:
        """The embed; its aggregates are applied in the parent, unless that lifts them further up."""
        node, hoisted = self._node(child.resource, child, is_grouped=is_grouped)
        spread = list(_spread_columns(node)) if child.shape.is_spread else []
        if not is_lifting:
            spread = [_aggregated(column, hoisted.get(column.name)) for column in spread]
        draft = child.resource.draft
        spread_order = tuple(
            OrderPlan(FieldPlan(hidden.alias or ""), term.direction, term.nulls)
            for hidden, term in zip(node.hidden, draft.order, strict=False)
        )
        embed = Embed(
            node,
            child.name,
            child.join,
            child.shape,
            child.embed.is_inner,
            draft.is_empty,
            tuple(spread),
            spread_order,
        )
        return embed, hoisted if is_lifting else {}

    # Fields.

    def _selects(self, resource: _Resource, *, is_grouped: bool, is_spread: bool) -> list[SelectPlan]:
        table = resource.table
        expands = is_grouped or self._has_representation(table)
        planned: list[SelectPlan] = []
        for item in resource.draft.selects:
            is_star = item.field.name == "*"
            if is_star and item.aggregate is None and expands and table is not None:
                fields = (self._output(table, Field(name)) for name in table.columns)
                planned.extend(_named(SelectPlan(field, cast=item.cast), is_spread) for field in fields)
                continue
            field = self._output(table, item.field)
            if is_star and item.aggregate == "count" and is_spread:
                field = msgspec.structs.replace(field, is_whole_row=True)
            plan = SelectPlan(field, item.alias, item.cast, item.aggregate, item.aggregate_cast)
            planned.append(_named(plan, is_spread))
        return planned

    def _has_representation(self, table: Table | None) -> bool:
        known = self._schema.representations
        if not known or table is None:
            return False
        return any((column.nominal_type, "json") in known for column in table.columns.values())

    def _output(self, table: Table | None, field: Field) -> FieldPlan:
        nominal = _nominal_type(table, field.name)
        convert = self._schema.representations.get((nominal, "json"))
        return FieldPlan(field.name, field.path, nominal in _JSON_TYPES, convert=convert)

    def _order(self, resource: _Resource, term: OrderTerm) -> OrderPlan:
        field = FieldPlan(term.field.name, term.field.path)
        if term.relation is None:
            nominal = _nominal_type(resource.table, field.name)
            field = msgspec.structs.replace(field, is_json=nominal in _JSON_TYPES)
            return OrderPlan(field, term.direction, term.nulls)
        for child in resource.children:
            if child.name == term.relation:
                if child.shape not in {EmbedShape.OBJECT, EmbedShape.SPREAD_ONE}:
                    raise related_order(resource.source.relation.name, child.name)
                return OrderPlan(field, term.direction, term.nulls, child.join)
        raise not_embedded(term.relation)

    def _where(self, resource: _Resource, condition: Condition) -> Where:
        joins = {child.name: child.join for child in resource.children}
        return plan_condition(self._schema, resource.table, condition, joins)


def _named(plan: SelectPlan, is_spread: bool) -> SelectPlan:
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


def _refuse_aggregates(selects: Iterable[SelectPlan], embeds: Iterable[Embed]) -> None:
    lifted = (column.aggregate for embed in embeds for column in embed.spread)
    if any(item.aggregate for item in selects) or any(lifted):
        raise not_implemented("Aggregates are not implemented for one-to-many or many-to-many spreads.")


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
        is_json=nominal in _JSON_TYPES,
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


def _hoist(selects: Iterable[SelectPlan]) -> tuple[list[SelectPlan], _HoistedByName]:
    plain: list[SelectPlan] = []
    hoisted: _HoistedByName = {}
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
    ties = [embed.node.source.tie for embed in node.embeds]
    for found in (tie.relationship for tie in ties if tie is not None):
        if found.function is not None:
            # It may look at any of them.
            return ("*",)
        if found.junction is not None:
            names.update(outside for _, outside in found.junction.origin_columns)
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
