"""Pure: what the text of a migration lets one expect on a database in use: locks, rewrites, lost data.

Statements about tables that the same set of files makes are left out: nobody waits for those, and they are
empty. A finding says what the statement does; how long that takes depends on rows that are not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from toft.database.finding import Finding
from toft.database.parse import Fact, facts_of
from toft.database.safety_rules import RULES
from toft.migrate.batches import decide_sending
from toft.migrate.cut import cut
from toft.migrate.lex import first_token
from toft.migrate.place import line_and_column
from toft.migrate.project import SqlFile
from toft.migrate.psql_commands import Understood, understand


class _Statement(msgspec.Struct, frozen=True):
    file: SqlFile
    line: int
    facts: tuple[Fact, ...]


def look_at(files: Iterable[SqlFile], known_tables: Iterable[str]) -> list[Finding]:
    """What the rules find. known_tables: those that were there before, as `schema.name`."""
    existing = set(known_tables)
    findings: list[Finding] = []
    for file in files:
        statements = list(_read(file))
        findings += _of_psql(file)
        for statement in statements:
            for fact in statement.facts:
                if fact.table is None or fact.table in existing:
                    findings += _judge(statement, fact.rule, fact.object)
        findings += _of_whole(file, statements, existing)
    return findings


def _read(file: SqlFile) -> Iterator[_Statement]:
    for piece in cut(file.text):
        line, _ = line_and_column(file.text, piece.start + first_token(piece.text))
        yield _Statement(file, line, tuple(facts_of(piece.text)))


def _judge(statement: _Statement, rule: str, about: str) -> Iterator[Finding]:
    if rule not in RULES:
        return  # a fact that only counts together with others
    level, category, message, remedy = RULES[rule]
    yield Finding(
        rule=rule,
        level=level,
        category=category,
        file=statement.file.path,
        line=statement.line,
        object=about,
        message=message.format(object=about),
        remedy=remedy,
    )


def _of_psql(file: SqlFile) -> Iterator[Finding]:
    found = understand(file.text)
    if not isinstance(found, Understood):
        return
    places = [(start, "psql-command", command) for start, command in found.passed_over]
    places += [(rows.start, "copy-stdin", "COPY") for rows in found.rows]
    for start, rule, about in sorted(places):
        line, _ = line_and_column(file.text, start)
        yield from _judge(_Statement(file, line, ()), rule, about)


def _of_whole(file: SqlFile, statements: list[_Statement], existing: set[str]) -> Iterator[Finding]:
    """What only shows when a file is looked at as a whole."""
    mode = decide_sending(file.text, cut(file.text)).mode.value
    facts = [(statement, fact) for statement in statements for fact in statement.facts]
    locking = [(s, f) for s, f in facts if f.locks and (f.table is None or f.table in existing)]
    writing = [(s, f) for s, f in facts if f.rule == "writes-rows" and f.table in existing]
    has_timeout = any(f.rule == "sets-lock-timeout" for _, f in facts)
    if locking and not has_timeout:
        yield from _judge(locking[0][0], "lock-timeout-missing", locking[0][1].object)
    if locking and writing and mode == "one":
        yield from _judge(writing[0][0], "data-and-ddl-mixed", writing[0][1].object)
    if mode == "split" and len(statements) > 1:
        for statement, fact in facts:
            if fact.rule == "concurrently":
                yield from _judge(statement, "concurrent-in-company", fact.object)
    if mode != "one":
        for statement, fact in facts:
            if fact.rule == "creates" and len(statements) > 1:
                yield from _judge(statement, "not-idempotent", fact.object)
    yield from _of_steps(facts)
    yield from _of_transactions(statements)


def _of_steps(facts: list[tuple[_Statement, Fact]]) -> Iterator[Finding]:
    """Two steps that should be in two files."""
    unvalidated = {fact.object for _, fact in facts if fact.rule == "adds-not-valid"}
    for statement, fact in facts:
        if fact.rule == "validates" and fact.object in unvalidated:
            yield from _judge(statement, "validate-same-file", fact.object)
    values = [fact.object for _, fact in facts if fact.rule == "enum-value"]
    for value in values:
        label = value.rpartition(".")[2]
        for statement, fact in facts:
            if fact.rule == "uses-text" and label in fact.object.split("\0"):
                yield from _judge(statement, "enum-in-use", value)
                break


def _of_transactions(statements: list[_Statement]) -> Iterator[Finding]:
    begun: _Statement | None = None
    for statement in statements:
        for fact in statement.facts:
            if fact.rule == "begins":
                begun = statement
            elif fact.rule == "ends":
                begun = None
    if begun is not None:
        yield from _judge(begun, "open-transaction", "begin")
