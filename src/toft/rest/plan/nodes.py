"""Pure: what will be asked of the database, with every name resolved and no value in it."""

from __future__ import annotations

import enum

import msgspec

from toft.rest.request import Act, JsonStep, Media, Operand, Operation, Preferences, Window
from toft.rest.schema.model import Column, Name, Parameter, Relationship, Routine, Volatility


class FieldPlan(msgspec.Struct, frozen=True):
    """A column of the node's relation, or something inside its json.

    is_json: arrows apply to it as it is. searches: it is compared as text search, in `language`.
    convert: the function between the column's domain and the outside, quoted; on output it wraps the column,
    in a filter the value.
    """

    name: str
    path: tuple[JsonStep, ...] = ()
    is_json: bool = False
    searches: bool = False
    language: str | None = None
    convert: str | None = None
    is_whole_row: bool = False


class Test(msgspec.Struct, frozen=True):
    """A condition on a field."""

    field: FieldPlan
    operation: Operation
    negated: bool = False


class EmbedTest(msgspec.Struct, frozen=True):
    """Whether an embed has rows; `join` is its alias among the joins."""

    join: str
    wants_rows: bool


class Group(msgspec.Struct, frozen=True):
    """Conditions joined by AND or OR."""

    is_or: bool
    negated: bool
    terms: tuple[Where, ...]


type Where = Test | EmbedTest | Group


class SelectPlan(msgspec.Struct, frozen=True):
    """A column of the result. relation: alias of the joined embed that has it, None for the node's own."""

    field: FieldPlan
    alias: str | None = None
    cast: str | None = None
    aggregate: str | None = None
    aggregate_cast: str | None = None
    relation: str | None = None


class OrderPlan(msgspec.Struct, frozen=True):
    """A term of ORDER BY; `relation` as in `SelectPlan`."""

    field: FieldPlan
    direction: str | None = None
    nulls: str | None = None
    relation: str | None = None


class SpreadColumn(msgspec.Struct, frozen=True):
    """A column that a spread lifts out of its child's result."""

    name: str
    aggregate: str | None = None
    aggregate_cast: str | None = None
    alias: str | None = None


class EmbedShape(enum.Enum):
    """What an embed becomes in its parent's row."""

    OBJECT = "object"
    ARRAY = "array"
    SPREAD_ONE = "spread-one"
    SPREAD_MANY = "spread-many"

    @property
    def is_spread(self) -> bool:
        """Whether its columns stand in the parent's row."""
        return self in {EmbedShape.SPREAD_ONE, EmbedShape.SPREAD_MANY}


class Embed(msgspec.Struct, frozen=True):
    """A related resource: joined as `join`, shown as `name` unless it is spread or selects nothing."""

    node: ReadNode
    name: str
    join: str
    shape: EmbedShape
    is_inner: bool
    is_empty: bool = False
    spread: tuple[SpreadColumn, ...] = ()
    spread_order: tuple[OrderPlan, ...] = ()


class Tie(msgspec.Struct, frozen=True):
    """What ties a child's rows to a row of its parent, whose columns are qualified by `parent`."""

    relationship: Relationship
    parent: Name


class Source(msgspec.Struct, frozen=True):
    """Where a node's rows come from: a relation or the statement's own CTE, tied to a parent or not.

    qualifier: what its columns are qualified by.
    """

    relation: Name
    qualifier: Name
    alias: str | None = None
    tie: Tie | None = None


class ReadNode(msgspec.Struct, frozen=True):
    """One resource of the request with what is asked of it."""

    source: Source
    selects: tuple[SelectPlan, ...] = ()
    where: tuple[Where, ...] = ()
    order: tuple[OrderPlan, ...] = ()
    window: Window | None = None
    max_rows: int | None = None
    embeds: tuple[Embed, ...] = ()
    #: order terms of a to-many spread, selected besides so that the aggregate can use them
    hidden: tuple[SelectPlan, ...] = ()


class TypedColumn(msgspec.Struct, frozen=True):
    """A column of the payload. convert: as in `FieldPlan`, from json to the column's domain."""

    column: Column
    type: str
    convert: str | None = None

    @property
    def name(self) -> str:
        return self.column.name


class MutatePlan(msgspec.Struct, frozen=True):
    """INSERT, UPDATE or DELETE. conflict: the target of ON CONFLICT; empty for none."""

    act: Act
    table: Name
    columns: tuple[TypedColumn, ...] = ()
    is_object: bool = False
    fills_defaults: bool = False
    where: tuple[Where, ...] = ()
    returning: tuple[str, ...] = ()
    conflict: tuple[str, ...] = ()
    merges: bool = False
    counts_inserts: bool = False
    primary_key: tuple[str, ...] = ()


class CallPlan(msgspec.Struct, frozen=True):
    """A function call. arguments: value of each parameter that is given one by one; None: from the body."""

    routine: Routine
    parameters: tuple[Parameter, ...] = ()
    arguments: dict[str, tuple[Operand, ...]] | None = None
    is_object: bool = False
    takes_body: bool = False
    returning: tuple[str, ...] = ()


class Maker(msgspec.Struct, frozen=True):
    """Who makes the body out of the rows. kind: json, single, csv, geojson, none."""

    kind: str
    nulls_stripped: bool = False


class CustomMaker(Maker, frozen=True, kw_only=True):
    """A function of the user's, over rows of `target`; None: over any."""

    kind: str = "custom"
    function: Name
    target: Name | None


class Plan(msgspec.Struct, frozen=True):
    """All that is known before the values: what to read, and how to answer."""

    act: Act
    #: the relation or function of the URL
    name: Name
    media: Media
    maker: Maker
    preferences: Preferences
    read: ReadNode
    is_head: bool = False
    has_profile: bool = False
    max_rows: int | None = None
    #: preferences that are told as applied
    applied: tuple[str, ...] = ()

    @property
    def counts_rows(self) -> bool:
        """Whether all rows are counted, not only those of the page."""
        return self.preferences.count in {"exact", "estimated"}

    @property
    def is_singular(self) -> bool:
        """Whether anything but exactly one row is an error."""
        return self.media.kind == "object"

    @property
    def is_read_only(self) -> bool:
        """Whether the transaction may not write."""
        return True


class WritePlan(Plan, frozen=True, kw_only=True):
    """Rows are changed first, and what comes back is read."""

    mutate: MutatePlan

    @property
    def is_read_only(self) -> bool:
        return False


class InvokePlan(Plan, frozen=True, kw_only=True):
    """A function is called first, and what it returns is read."""

    call: CallPlan

    @property
    def is_read_only(self) -> bool:
        return self.act is Act.CALL_READ or self.call.routine.volatility is not Volatility.VOLATILE
