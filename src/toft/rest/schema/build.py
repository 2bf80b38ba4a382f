"""Pure: rows of the catalogue become the schema cache: views get the keys that they show, and every foreign
key becomes the relationships that it allows, in both directions and across junctions."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from toft.rest.schema.facts import Facts, RoutineRow, TableRow
from toft.rest.schema.model import (
    Cardinality,
    Column,
    ForeignKey,
    Junction,
    MediaHandler,
    Name,
    Parameter,
    Relationship,
    Routine,
    SchemaCache,
    Table,
    Volatility,
)
from toft.rest.schema.rules import ColumnRef, read_origins, trace

_UPDATE, _INSERT, _DELETE = 4, 8, 16
_ISOLATION = "default_transaction_isolation"


def build(facts: Facts, schemas: Sequence[str]) -> SchemaCache:
    """The schema cache for the exposed `schemas`."""
    views = _views(facts)
    keys = {row.oid: row.columns for row in facts.primary_keys}
    tables = {Name(row.schema, row.name): _table(row) for row in facts.tables}
    for view in views:
        name = view.name
        if name in tables and (key := _view_key(view, keys)):
            tables[name] = _with_key(tables[name], key)
    roles = {row.role: row.settings for row in facts.roles}
    return SchemaCache(
        version=facts.version,
        tables=tables,
        relationships=_relationships(facts, views, tables, set(schemas)),
        routines=_routines(facts),
        representations={(row.source, row.target): row.function for row in facts.representations},
        handlers=_handlers(facts),
        timezones=frozenset(),
        role_settings={
            role: kept
            for role, settings in roles.items()
            if (kept := tuple((name, value) for name, value in settings if name != _ISOLATION))
        },
        role_isolation={
            role: value for role, settings in roles.items() for name, value in settings if name == _ISOLATION
        },
        reads_headers=facts.reads_headers,
    )


# --- tables ---------------------------------------------------------------------------------------------


def _table(row: TableRow) -> Table:
    columns = {
        name: Column(name, kind, nominal, nullable, default, length, tuple(labels), comment)
        for name, kind, nominal, nullable, default, length, labels, comment, _ in row.columns
    }
    return Table(
        row.schema,
        row.name,
        columns,
        primary_key=tuple(row.primary_key),
        is_view=row.kind in {"v", "m"},
        is_insertable=bool(row.events & _INSERT),
        is_updatable=bool(row.events & _UPDATE),
        is_deletable=bool(row.events & _DELETE),
        description=row.comment,
    )


def _with_key(table: Table, key: tuple[str, ...]) -> Table:
    return Table(
        table.schema,
        table.name,
        table.columns,
        key,
        table.is_view,
        table.is_insertable,
        table.is_updatable,
        table.is_deletable,
        table.description,
    )


# --- views ----------------------------------------------------------------------------------------------


class _View:
    """A view of an exposed schema and the base columns that it shows, by their names in the view."""

    def __init__(self, name: Name, oid: int, shown: dict[ColumnRef, list[str]]) -> None:
        self.name = name
        self.oid = oid
        self.shown = shown

    def spellings(self, columns: Iterable[ColumnRef]) -> Iterator[tuple[str, ...]]:
        """Every way to name all these base columns in the view; none when one of them is not shown."""
        return itertools.product(*(self.shown.get(column, ()) for column in columns))


def _views(facts: Facts) -> list[_View]:
    origins = {row.oid: read_origins(row.rule) for row in facts.views}
    found: list[_View] = []
    for row in facts.views:
        if row.is_exposed:
            names = dict(row.columns)
            shown = {
                base: [names[number] for number in numbers if number in names]
                for base, numbers in trace(origins, row.oid).items()
            }
            found.append(_View(Name(row.schema, row.name), row.oid, shown))
    return found


def _view_key(view: _View, keys: Mapping[int, Sequence[tuple[str, int]]]) -> tuple[str, ...]:
    """The columns that show a base table's whole primary key, the first name of each."""
    key: list[str] = []
    for oid in dict.fromkeys(oid for oid, _ in view.shown):
        columns = keys.get(oid, ())
        spelling = next(view.spellings((oid, number) for _, number in columns), None) if columns else None
        if spelling is not None:
            key.extend(spelling)
    return tuple(key)


# --- relationships --------------------------------------------------------------------------------------


def _relationships(
    facts: Facts, views: Sequence[_View], tables: Mapping[Name, Table], schemas: Collection[str]
) -> dict[Name, tuple[Relationship, ...]]:
    keys = list(_foreign_keys(facts, views))
    detected: dict[tuple[Name, Name], list[Relationship]] = defaultdict(list)
    for relationship in itertools.chain(_direct(keys), _many_to_many(keys, tables)):
        detected[relationship.origin, relationship.target].append(relationship)
    for row in facts.computed:
        origin, target, function = Name(*row.origin), Name(*row.target), Name(*row.function)
        cardinality = Cardinality.COMPUTED_ONE if row.is_single else Cardinality.COMPUTED_MANY
        computed = Relationship(origin, target, cardinality, function=function, is_self=origin == target)
        # One that is named like a target stands for all detected ways to it.
        detected[origin, function] = [computed]
    by_origin: dict[Name, list[Relationship]] = defaultdict(list)
    for relationship in itertools.chain.from_iterable(detected.values()):
        if _is_exposed(relationship, schemas):
            by_origin[relationship.origin].append(relationship)
    return {origin: tuple(sorted(found, key=_order)) for origin, found in by_origin.items()}


def _is_exposed(relationship: Relationship, schemas: Collection[str]) -> bool:
    names = [relationship.origin, relationship.target]
    if relationship.junction is not None:
        names.append(relationship.junction.table)
    return all(name.schema in schemas for name in names)


_RANKS = {
    Cardinality.ONE_TO_MANY: 0,
    Cardinality.MANY_TO_ONE: 1,
    Cardinality.ONE_TO_ONE: 2,
    Cardinality.MANY_TO_MANY: 3,
    Cardinality.COMPUTED_ONE: 4,
    Cardinality.COMPUTED_MANY: 5,
}


def _order(relationship: Relationship) -> tuple[object, ...]:
    """The order in which candidates are listed."""
    junction = relationship.junction
    return (
        relationship.function is not None,
        relationship.target,
        relationship.is_self,
        _RANKS[relationship.cardinality],
        relationship.constraint,
        relationship.columns,
        (junction,) if junction is not None else (),
    )


def _foreign_keys(facts: Facts, views: Sequence[_View]) -> Iterator[ForeignKey]:
    """Each constraint on its tables, and on every view that shows its columns, at either end or both."""
    showing: dict[int, list[_View]] = defaultdict(list)
    for view in views:
        for oid in {oid for oid, _ in view.shown}:
            showing[oid].append(view)
    for row in facts.foreign_keys:
        here = list(_ends(row.oid, Name(*row.table), [(n, a) for n, a, _, _ in row.columns], showing))
        there = list(
            _ends(row.foreign_oid, Name(*row.foreign), [(n, a) for _, _, n, a in row.columns], showing)
        )
        for (table, columns, is_view), (foreign, foreign_columns, is_foreign_view) in itertools.product(
            here, there
        ):
            yield ForeignKey(
                row.constraint,
                table,
                columns,
                foreign,
                foreign_columns,
                row.is_unique,
                is_view,
                is_foreign_view,
            )


def _ends(
    oid: int, table: Name, columns: Sequence[tuple[str, int]], showing: Mapping[int, Sequence[_View]]
) -> Iterator[tuple[Name, tuple[str, ...], bool]]:
    yield table, tuple(name for name, _ in columns), False
    for view in showing.get(oid, ()):
        for spelling in view.spellings((oid, number) for _, number in columns):
            yield view.name, spelling, True


def _direct(keys: Sequence[ForeignKey]) -> Iterator[Relationship]:
    """Each foreign key from its holder to what it references, and back."""
    for key in keys:
        is_self = key.table == key.foreign
        there = tuple(zip(key.columns, key.foreign_columns, strict=True))
        back = tuple(zip(key.foreign_columns, key.columns, strict=True))
        forth = Cardinality.ONE_TO_ONE if key.is_unique else Cardinality.MANY_TO_ONE
        reverse = Cardinality.ONE_TO_ONE if key.is_unique else Cardinality.ONE_TO_MANY
        yield Relationship(
            key.table,
            key.foreign,
            forth,
            key.constraint,
            there,
            is_self=is_self,
            is_origin_view=key.is_view,
            is_target_view=key.is_foreign_view,
        )
        yield Relationship(
            key.foreign,
            key.table,
            reverse,
            key.constraint,
            back,
            is_self=is_self,
            is_reverse=True,
            is_origin_view=key.is_foreign_view,
            is_target_view=key.is_view,
        )


def _many_to_many(keys: Sequence[ForeignKey], tables: Mapping[Name, Table]) -> Iterator[Relationship]:
    """Two foreign keys of one table lead from one end to the other when its primary key holds both."""
    by_table: dict[Name, list[ForeignKey]] = defaultdict(list)
    for key in keys:
        if not key.is_unique:
            by_table[key.table].append(key)
    for junction, held in by_table.items():
        table = tables.get(junction)
        primary = set(table.primary_key) if table is not None else set[str]()
        fitting = [key for key in held if primary.issuperset(key.columns)]
        for near, far in itertools.permutations(fitting, 2):
            if near.constraint != far.constraint:
                yield _across(junction, near, far)


def _across(junction: Name, near: ForeignKey, far: ForeignKey) -> Relationship:
    return Relationship(
        near.foreign,
        far.foreign,
        Cardinality.MANY_TO_MANY,
        junction=Junction(
            junction,
            near.constraint,
            far.constraint,
            tuple(zip(near.columns, near.foreign_columns, strict=True)),
            tuple(zip(far.columns, far.foreign_columns, strict=True)),
        ),
        is_self=near.foreign == far.foreign,
        is_origin_view=near.is_foreign_view,
        is_target_view=far.is_foreign_view,
    )


# --- functions ------------------------------------------------------------------------------------------


def _routines(facts: Facts) -> dict[Name, tuple[Routine, ...]]:
    overloads: dict[Name, list[Routine]] = defaultdict(list)
    for row in facts.routines:
        overloads[Name(row.schema, row.name)].append(_routine(row))
    return {
        name: tuple(sorted(found, key=lambda routine: (len(routine.parameters), routine.signature)))
        for name, found in overloads.items()
    }


def _routine(row: RoutineRow) -> Routine:
    settings = tuple((name, value) for name, _, value in (text.partition("=") for text in row.settings))
    isolation = next((value.lower() for name, value in settings if name == _ISOLATION), None)
    return Routine(
        row.oid,
        row.schema,
        row.name,
        tuple(Parameter(*parameter) for parameter in row.parameters),
        Name(*row.returns),
        row.is_set,
        row.is_composite,
        row.is_domain,
        Volatility(row.volatility),
        row.comment,
        settings,
        isolation,
    )


def _handlers(facts: Facts) -> dict[tuple[Name | None, str], MediaHandler]:
    found: dict[tuple[Name | None, str], MediaHandler] = {}
    for row in facts.handlers:
        target = Name(*row.target) if row.target is not None else None
        media_type = row.media_type.lower()
        sent_as = "application/octet-stream" if media_type == "*/*" else row.media_type
        found[target, media_type] = MediaHandler(Name(*row.function), target, media_type, sent_as)
    return found
