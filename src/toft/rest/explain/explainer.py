"""Explains a refusal, by asking the catalogue as the role that was refused.

It never makes anything worse: when it cannot tell, or fails itself, the error stays as it is.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from toft.http.message import HeaderList, Response
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.wire import Result, Statement
from toft.rest.errors import RestError
from toft.rest.explain import facts, words
from toft.rest.explain.blame import Blame, read_refusal
from toft.rest.explain.facts import Relation
from toft.rest.explain.judge import (
    Command,
    Verdict,
    judge,
    question,
    rows_of_insert,
    rows_of_update,
    tests_of,
)
from toft.rest.explain.words import Explanation
from toft.rest.options import RestOptions
from toft.rest.parse.headers import parse_accept
from toft.rest.parse.skim import Asked, meaning
from toft.rest.plan.plan import Allowance, make_plan
from toft.rest.plan.suggest import CLOSE, closest
from toft.rest.prepared import prepare
from toft.rest.request import Act, Field, Payload, Preferences, RestRequest, SelectField
from toft.rest.schema.model import Name, SchemaCache, Table
from toft.rest.work import Sender, Work, aside_work, fill
from toft.world import Entropy

_KEPT: Final = 200
_COLUMN: Final = re.compile(r"Could not find the '(.*)' column of '(.*)' in the schema cache")
_COMMANDS: Final[dict[Act, Command]] = {
    Act.INSERT: "INSERT",
    Act.UPSERT_ONE: "INSERT",
    Act.UPDATE: "UPDATE",
    Act.DELETE: "DELETE",
}
_EVERYTHING: Final = (SelectField(Field("*")),)
_READS_AT_MOST: Final = Allowance(max_rows=100)
_answers = msgspec.json.Decoder(list[list[bool]] | None)


class Case(msgspec.Struct, frozen=True):
    """A request that failed: who asked, what, and in which schema."""

    sender: Sender
    asked: Asked
    schema: SchemaCache

    @property
    def role(self) -> str:
        return self.sender.caller.role

    @property
    def command(self) -> Command:
        return _COMMANDS.get(self.asked.target.act, "SELECT")


class Explainer:
    """Makes explanations and keeps the latest.

    link: what stands before an explanation's name, if there is a place where they can be read.
    """

    def __init__(
        self,
        run: Callable[[Work], Awaitable[list[Result]]],
        options: RestOptions,
        entropy: Entropy,
        link: str | None,
    ) -> None:
        self._run = run
        self._options = options
        self._entropy = entropy
        self._link = link
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def find(self, name: str) -> bytes | None:
        """A kept explanation, as JSON."""
        return self._kept.get(name)

    async def explain(self, case: Case, error: RestError, cause: PostgresError | None) -> None:
        """Add to the error what can be found out about it."""
        try:
            found = await self._find_out(case, error, cause)
        except (RestError, PostgresError, ConnectionLost, Unreachable, msgspec.DecodeError, ValueError):
            return
        if found is None:
            return
        error.hint = found.hint if error.hint is None else f"{error.hint.removesuffix('.')}. {found.hint}"
        error.headers += self._keep({"code": error.code, "message": error.message}, found)

    async def tell(self, case: Case, response: Response) -> None:
        """Link a trial's answer to what decided which rows it is about."""
        try:
            relation = await self._relation(case, case.asked.target.name)
        except (RestError, PostgresError, ConnectionLost, Unreachable, msgspec.DecodeError):
            return
        if relation is not None and not case.asked.target.act.is_call:
            response.headers += self._keep({}, words.allowed(relation, case.role, case.command))

    def _keep(self, told: dict[str, Any], found: Explanation) -> HeaderList:
        if self._link is None:
            return []
        name = self._entropy.bytes(12).hex()
        self._kept[name] = msgspec.json.encode(told | msgspec.to_builtins(found))
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return [(b"toft-explain", f'<{self._link}{name}>; rel="describedby"'.encode())]

    async def _find_out(
        self, case: Case, error: RestError, cause: PostgresError | None
    ) -> Explanation | None:
        if cause is not None and cause.sqlstate == "42501":
            blame = read_refusal(cause.message)
            return None if blame is None else await self._refused(case, blame)
        if cause is not None and cause.sqlstate == "42P10":
            return await self._no_conflict(case)
        match error.code:
            case "PGRST204":
                return self._no_column(case, error)
            case "PGRST205":
                return await self._no_relation(case)
            case "PGRST202":
                routines = await self._ask(case, facts.ROUTINES, case.asked.target.name, facts.routines)
                return words.unknown_routine(
                    case.asked.target.name, case.role, routines, self._options.schemas
                )
            case _:
                return None

    # 42501

    async def _refused(self, case: Case, blame: Blame) -> Explanation | None:
        role = case.role
        if blame.kind == "schema":
            return words.schema_denied(blame.name, role)
        if blame.kind == "function":
            routines = await self._ask(case, facts.ROUTINES, blame.name, facts.routines)
            denied = [each for each in routines if not (each.may_execute and each.may_use_schema)]
            return words.routine_denied(denied[0], role) if denied else None
        relation = await self._relation(case, blame.name)
        if relation is None:
            return None
        meant, _ = meaning(case.asked)
        is_own = (relation.schema, relation.name) == (case.asked.target.schema, case.asked.target.name)
        if blame.kind in ("table", "sequence"):
            if relation.kind != "S" and not is_own and not case.asked.target.act.is_call:
                # An embed, or what a trigger touches: that much is sure.
                return words.right_missing(relation, role, "SELECT", ("SELECT",))
            return words.right_missing(relation, role, case.command, _needed(case.command, meant))
        if blame.kind == "using":
            return words.replaced_row_refused(relation, role, blame.policy)
        if not is_own or not case.asked.target.act.is_write:
            return words.row_refused(relation, role, "INSERT", Verdict("INSERT", (), (), is_known=False))
        return words.row_refused(
            relation, role, case.command, await self._verdict(case, meant, relation, blame)
        )

    async def _verdict(self, case: Case, meant: RestRequest, relation: Relation, blame: Blame) -> Verdict:
        command = case.command
        must_be_seen = "SELECT" in _needed(command, meant)
        tests = tests_of(relation, command, must_be_seen=must_be_seen)
        groups: tuple[Command, ...] = (command, "SELECT") if must_be_seen else (command,)
        named = tuple(test for test in tests if test.policy.name == blame.policy)
        if named:
            return Verdict(named[0].command, tuple(tests), named[:1], is_known=True)
        verdict = judge(groups, tests, None)
        if verdict.is_known or meant.payload is None:
            return verdict
        table = case.schema.tables[Name(case.asked.target.schema, case.asked.target.name)]
        try:
            rows, values = await self._new_rows(case, meant, table)
            results = await self._aside(case, Statement(question(table, rows, tests).encode(), values))
            answers = _answers.decode(results[0].rows[0][0] or b"null")
        except (RestError, PostgresError, msgspec.DecodeError):
            answers = None
        return judge(groups, tests, answers)

    async def _new_rows(self, case: Case, meant: RestRequest, table: Table) -> tuple[str, tuple[bytes, ...]]:
        """SQL for the rows that the request would have made, and its values."""
        payload, body = meant.payload or Payload(), case.asked.body
        if case.command == "INSERT":
            rows = b"[%b]" % body if payload.is_object else body
            return rows_of_insert(table, payload.keys), (rows,)
        read = msgspec.structs.replace(
            meant,
            act=Act.READ,
            query=msgspec.structs.replace(
                meant.query, select=_EVERYTHING, order=(), windows=(), columns=None
            ),
            preferences=Preferences(),
            accepts=parse_accept(None),
            payload=None,
        )
        prepared = prepare(make_plan(case.schema, read, _READS_AT_MOST))
        results = await self._aside(case, fill(prepared.main, case.asked, None))
        return rows_of_update(table), (body, results[0].rows[0][2] or b"[]")

    # Others

    async def _no_conflict(self, case: Case) -> Explanation | None:
        meant, _ = meaning(case.asked)
        relation = await self._relation(case, case.asked.target.name)
        if relation is None or meant.query.on_conflict is None:
            return None
        return words.no_unique_index(relation, case.role, meant.query.on_conflict)

    def _no_column(self, case: Case, error: RestError) -> Explanation | None:
        table = case.schema.table(Name(case.asked.target.schema, case.asked.target.name))
        found = _COLUMN.fullmatch(error.message)
        if table is None or found is None:
            return None
        return words.unknown_column(table.name, found[1], case.role, list(table.columns))

    async def _no_relation(self, case: Case) -> Explanation | None:
        name, schemas = case.asked.target.name, self._options.schemas
        found = await self._ask(case, facts.RELATIONS, name, facts.relations)
        near = closest(name, case.schema.names_by_schema.get(case.asked.target.schema, []), CLOSE)
        suggested = None if near is None or found else await self._relation(case, near)
        others: tuple[tuple[str, str], ...] = ()
        if not found and suggested is None:
            array = "{" + ",".join(f'"{schema}"' for schema in schemas) + "}"
            others = await self._ask(case, facts.OTHER_NAMES, array, facts.other_names)
        return words.unknown_relation(name, case.role, found, suggested, schemas, others)

    async def _relation(self, case: Case, name: str) -> Relation | None:
        """The relation of that name: in the schema that was asked, or the only one there is."""
        found = await self._ask(case, facts.RELATIONS, name, facts.relations)
        own = [relation for relation in found if relation.schema == case.asked.target.schema]
        return (own or [*found, None])[0] if own or len(found) < 2 else None

    async def _ask[T](self, case: Case, sql: bytes, value: str, decoder: msgspec.json.Decoder[T]) -> T:
        [result] = await self._aside(case, Statement(sql, (value.encode("utf-8", "replace"),)))
        return decoder.decode(result.rows[0][0] or b"[]")

    async def _aside(self, case: Case, statement: Statement) -> list[Result]:
        return await self._run(aside_work(case.sender, case.asked, case.schema, self._options, (statement,)))


def _needed(command: Command, meant: RestRequest) -> Sequence[Command]:
    """The privileges of a request: reading too, where rows come back or are searched for."""
    if command == "SELECT":
        return ("SELECT",)
    needed: list[Command] = [command]
    is_merge = meant.preferences.resolution == "merge-duplicates" or meant.act is Act.UPSERT_ONE
    if is_merge:
        needed.append("UPDATE")
    is_searched = command != "INSERT" and bool(meant.query.filters or meant.query.logic)
    returns = meant.preferences.representation in {"representation", "headers-only"}
    if returns or is_searched or meant.preferences.resolution is not None or is_merge:
        needed.append("SELECT")
    return needed
