"""Pure: the values of a request, as the client meant it and before the schema is known.

A client's values (what stands behind an operator, a page's limits, a body) are not in these trees: an
`Operand` says which of the request's values goes there, so that one plan serves every request of a shape.
"""

from __future__ import annotations

import enum

import msgspec


class Act(enum.StrEnum):
    """What the request does, from method and path."""

    READ = "read"
    INSERT = "insert"
    UPDATE = "update"
    UPSERT_ONE = "upsert-one"
    DELETE = "delete"
    CALL_READ = "call-read"
    CALL = "call"
    INSPECT_ROOT = "inspect-root"
    DESCRIBE_RELATION = "describe-relation"
    DESCRIBE_ROUTINE = "describe-routine"
    DESCRIBE_ROOT = "describe-root"

    @property
    def is_write(self) -> bool:
        """Whether it changes rows of a relation."""
        return self in {Act.INSERT, Act.UPDATE, Act.UPSERT_ONE, Act.DELETE}

    @property
    def is_call(self) -> bool:
        """Whether it calls a function."""
        return self in {Act.CALL_READ, Act.CALL}


# --- columns -------------------------------------------------------------------------------------------


class JsonStep(msgspec.Struct, frozen=True):
    """One arrow into a json value: `->key`, `->>key`, `->0`."""

    operand: str
    is_index: bool
    as_text: bool


class Field(msgspec.Struct, frozen=True):
    """A column, or something inside its json value."""

    name: str
    path: tuple[JsonStep, ...] = ()


# --- filters -------------------------------------------------------------------------------------------


class Operand(msgspec.Struct, frozen=True):
    """A client's value. `slot` is its place among the values of the request, None when the text is part of
    the shape."""

    text: str
    slot: int | None = None


class IsValue(enum.Enum):
    """What may stand behind `is.`; the value is the SQL."""

    NULL = "NULL"
    NOT_NULL = "NOT NULL"
    TRUE = "TRUE"
    FALSE = "FALSE"
    UNKNOWN = "UNKNOWN"


class Compare(msgspec.Struct, frozen=True):
    """`eq.value` and its like; `quantifier` is any, all or None."""

    operator: str
    operand: Operand
    quantifier: str | None = None


class InList(msgspec.Struct, frozen=True):
    """`in.(a,b)`. The operand is the list as an array literal."""

    operand: Operand


class IsTest(msgspec.Struct, frozen=True):
    """`is.null` and its like."""

    value: IsValue


class IsDistinct(msgspec.Struct, frozen=True):
    """`isdistinct.value`."""

    operand: Operand


class TextSearch(msgspec.Struct, frozen=True):
    """`fts(language).words` and its like."""

    operator: str
    operand: Operand
    language: str | None = None


type Operation = Compare | InList | IsTest | IsDistinct | TextSearch


class Filter(msgspec.Struct, frozen=True):
    """A condition on one field."""

    field: Field
    operation: Operation
    negated: bool = False


class Logic(msgspec.Struct, frozen=True):
    """`and(...)` or `or(...)`."""

    is_or: bool
    negated: bool
    terms: tuple[Filter | Logic, ...]


type Condition = Filter | Logic
type Path = tuple[str, ...]


# --- select and order ----------------------------------------------------------------------------------


class SelectField(msgspec.Struct, frozen=True):
    """A column in `select=`; the field's name is `*` for all of them."""

    field: Field
    alias: str | None = None
    cast: str | None = None
    aggregate: str | None = None
    aggregate_cast: str | None = None


class SelectEmbed(msgspec.Struct, frozen=True):
    """A related resource in `select=`."""

    target: str
    items: tuple[SelectItem, ...]
    alias: str | None = None
    hint: str | None = None
    is_inner: bool = False
    is_spread: bool = False


type SelectItem = SelectField | SelectEmbed


class OrderTerm(msgspec.Struct, frozen=True):
    """One term of `order=`; with `relation` it orders by a column of a to-one embed."""

    field: Field
    direction: str | None = None
    nulls: str | None = None
    relation: str | None = None


# --- the query string ----------------------------------------------------------------------------------


class Window(msgspec.Struct, frozen=True):
    """Which rows of a resource: is there a limit, is there an offset, and at which slots."""

    limit: Operand | None = None
    offset: Operand | None = None


class Query(msgspec.Struct, frozen=True):
    """The query string, parsed. Paths name the embed that a part belongs to; () is the root."""

    select: tuple[SelectItem, ...]
    filters: tuple[tuple[Path, Filter], ...] = ()
    logic: tuple[tuple[Path, Condition], ...] = ()
    order: tuple[tuple[Path, tuple[OrderTerm, ...]], ...] = ()
    windows: tuple[tuple[Path, Window], ...] = ()
    columns: tuple[str, ...] | None = None
    on_conflict: tuple[str, ...] | None = None
    arguments: tuple[tuple[str, Operand], ...] = ()


# --- headers -------------------------------------------------------------------------------------------


class Media(msgspec.Struct, frozen=True):
    """A media type that the server knows how to treat; `text` is how it is written in Content-Type.

    kind: json, geojson, csv, text, xml, openapi, form, octets, any, other, array-stripped, object, plan.
    """

    kind: str
    text: str
    nulls_stripped: bool = False
    plan_of: Media | None = None
    plan_format: str = "text"
    plan_options: tuple[str, ...] = ()


class Preferences(msgspec.Struct, frozen=True):
    """The Prefer header. `unknown` are those that `handling=strict` refuses."""

    resolution: str | None = None
    missing: str | None = None
    representation: str | None = None
    count: str | None = None
    transaction: str | None = None
    handling: str | None = None
    timezone: str | None = None
    max_affected: int | None = None
    unknown: tuple[str, ...] = ()

    @property
    def is_strict(self) -> bool:
        """Whether what cannot be honoured is an error."""
        return self.handling == "strict"


class Payload(msgspec.Struct, frozen=True):
    """What the body's form is. The bytes travel beside it.

    keys: the columns or arguments that it names, sorted. is_object: one JSON object, not an array of them.
    is_raw: it goes whole to a function's single unnamed parameter.
    arguments: names of a form body's fields, in the order of the values that follow those of the query.
    """

    keys: tuple[str, ...] = ()
    is_object: bool = False
    is_raw: bool = False
    arguments: tuple[tuple[str, Operand], ...] | None = None


class RestRequest(msgspec.Struct, frozen=True):
    """One request as the plan needs it: everything but the values."""

    act: Act
    schema: str
    name: str
    query: Query
    preferences: Preferences
    accepts: tuple[Media, ...]
    content: Media
    payload: Payload | None = None
    is_head: bool = False
    #: a Content-Profile header is due: it was asked for, or there is more than one schema
    has_profile: bool = False
