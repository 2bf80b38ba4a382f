"""Pure: what exists in the database, as far as the Data API cares. Immutable, and shared by all requests."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec


class Name(msgspec.Struct, frozen=True, order=True):
    """A qualified name; no schema means a name that is local to the statement."""

    schema: str
    name: str


class Column(msgspec.Struct, frozen=True):
    """A column of a relation.

    type: of its values in a record (domains over built-in types show the base). nominal_type: as declared.
    default: the expression for a missing value, None for none and for generated columns.
    """

    name: str
    type: str
    nominal_type: str
    is_nullable: bool = True
    default: str | None = None
    max_length: int | None = None
    enum: tuple[str, ...] = ()
    description: str | None = None


class Table(msgspec.Struct, frozen=True):
    """A relation of an exposed schema: table, partitioned or foreign table, view, materialised view."""

    schema: str
    name: str
    columns: dict[str, Column]
    primary_key: tuple[str, ...] = ()
    is_view: bool = False
    is_insertable: bool = False
    is_updatable: bool = False
    is_deletable: bool = False
    description: str | None = None


class ForeignKey(msgspec.Struct, frozen=True):
    """A constraint, or what is left of one on a view that shows its columns. is_unique: at most one row of
    `table` per referenced row."""

    constraint: str
    table: Name
    columns: tuple[str, ...]
    foreign: Name
    foreign_columns: tuple[str, ...]
    is_unique: bool = False
    is_view: bool = False
    is_foreign_view: bool = False


class Cardinality(enum.Enum):
    """How many rows of the target belong to a row of the origin, and the reverse."""

    MANY_TO_ONE = "many-to-one"
    ONE_TO_MANY = "one-to-many"
    ONE_TO_ONE = "one-to-one"
    MANY_TO_MANY = "many-to-many"
    COMPUTED_ONE = "computed-one"
    COMPUTED_MANY = "computed-many"

    @property
    def is_to_one(self) -> bool:
        """At most one row of the target."""
        return self in _TO_ONE


_TO_ONE = {Cardinality.MANY_TO_ONE, Cardinality.ONE_TO_ONE, Cardinality.COMPUTED_ONE}


class Junction(msgspec.Struct, frozen=True, order=True):
    """The table in the middle of a many-to-many relationship. Pairs are (column of it, column outside)."""

    table: Name
    constraint: str
    foreign_constraint: str
    origin_columns: tuple[tuple[str, str], ...]
    target_columns: tuple[tuple[str, str], ...]


class Relationship(msgspec.Struct, frozen=True):
    """A way from `origin` to `target`. columns: pairs (column of origin, column of target).

    constraint: the foreign key's name; empty for computed and many-to-many. function: of a computed one.
    """

    origin: Name
    target: Name
    cardinality: Cardinality
    constraint: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    junction: Junction | None = None
    function: Name | None = None
    is_self: bool = False
    #: a one-to-one relationship seen from the side that is referenced
    is_reverse: bool = False
    is_origin_view: bool = False
    is_target_view: bool = False


class Volatility(enum.Enum):
    """pg_proc.provolatile."""

    IMMUTABLE = "i"
    STABLE = "s"
    VOLATILE = "v"


class Parameter(msgspec.Struct, frozen=True):
    """An input of a function. record_type: its type in a record, where fixed lengths are left out."""

    name: str
    type: str
    record_type: str
    is_required: bool
    is_variadic: bool


class Routine(msgspec.Struct, frozen=True):
    """A function. returns: the type's name, or the relation's when its rows are a relation's."""

    oid: int
    schema: str
    name: str
    parameters: tuple[Parameter, ...]
    returns: Name
    is_set: bool
    is_composite: bool
    is_domain: bool
    volatility: Volatility
    description: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    isolation: str | None = None

    @property
    def returns_scalar(self) -> bool:
        """One value that is no row."""
        return not self.is_set and not self.is_composite

    @property
    def returns_scalars(self) -> bool:
        """A set of values that are no rows."""
        return self.is_set and not self.is_composite

    @property
    def returns_row(self) -> bool:
        """One row."""
        return not self.is_set and self.is_composite

    @property
    def returns_void(self) -> bool:
        """Nothing."""
        return not self.is_set and self.returns == _VOID

    @property
    def signature(self) -> str:
        """How error texts show it."""
        shown = ", ".join(f"{parameter.name} => {parameter.type}" for parameter in self.parameters)
        return f"{self.schema}.{self.name}({shown})"


_VOID = Name("pg_catalog", "void")


class MediaHandler(msgspec.Struct, frozen=True):
    """A function that makes bytes of a media type out of rows.

    target: the relation whose rows it takes, or the function whose result already is the bytes; None: any.
    """

    function: Name
    target: Name | None
    media_type: str
    sent_as: str


class SchemaCache(msgspec.Struct, frozen=True):
    """Everything above, of one version of one database, for the exposed schemas."""

    version: str
    tables: dict[Name, Table]
    relationships: dict[Name, tuple[Relationship, ...]]
    routines: dict[Name, tuple[Routine, ...]]
    #: (source type, target type) → the function that converts, quoted
    representations: dict[tuple[str, str], str]
    #: (target or None, media type) → handler
    handlers: dict[tuple[Name | None, str], MediaHandler]
    timezones: frozenset[str]
    #: role → settings of `ALTER ROLE … SET`, isolation excepted
    role_settings: dict[str, tuple[tuple[str, str], ...]]
    role_isolation: dict[str, str]
    #: whether something in the database may read request.headers or request.cookies
    reads_headers: bool = True

    def table(self, name: Name) -> Table | None:
        """The relation of that name, if it is exposed."""
        return self.tables.get(name)

    @property
    def names_by_schema(self) -> Mapping[str, list[str]]:
        """Names of relations, for suggestions."""
        found: dict[str, list[str]] = {}
        for name in self.tables:
            found.setdefault(name.schema, []).append(name.name)
        return found
