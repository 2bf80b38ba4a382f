"""`toft db …`: what one does with a lease's database besides using it."""

from __future__ import annotations

from toft.cli import wish
from toft.cli.argv import Flag, Usage
from toft.cli.push import push, push_flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context


def _test_migration(context: Context) -> int:
    from toft.cli.trial import test_migration

    return test_migration(context)


def _advisors(context: Context) -> int:
    from toft.cli.inspecting import advisors

    return advisors(context)


def _lint(context: Context) -> int:
    from toft.cli.inspecting import lint

    return lint(context)


def _diff(context: Context) -> int:
    from toft.cli.inspecting import diff

    return diff(context)


def _types(context: Context) -> int:
    from toft.cli.inspecting import types

    return types(context)


def _check_query(context: Context) -> int:
    from toft.cli.inspecting import check_query

    return check_query(context)


_FAIL_ON = Flag("fail-on", "Exit status 1 from this level on: none, info, warn, error.", "LEVEL")
_URL = Flag("db-url", "Another database than a lease's.", "URL")
_DIR = Flag("dir", "The project's folder, if not this one or one above.", "DIR")
_MIGRATIONS = Flag("migrations", "Another folder of migrations than supabase/migrations.", "DIR")
USAGE = {
    "push": (
        Usage(
            "toft db push",
            "Apply the migrations that a lease's database does not have yet, by the Supabase CLI's rules.",
            push_flags(wish.FLAGS),
            "[LEASE]",
            most=1,
            examples=("toft db push", "toft db push --dry-run", "toft db push --watch"),
        ),
        push,
    ),
    "test-migration": (
        Usage(
            "toft db test-migration",
            "Try migrations out on a copy that is thrown away: what changes, what it locks, rewrites\n"
            "and touches, who may do what afterwards, and whether it works from zero and twice.",
            (
                Flag("data", "Try it on a fork of this lease, with its data.", "LEASE"),
                Flag("format", "text (default), markdown or json.", "FORMAT"),
                _FAIL_ON,
                Flag("timeout", "Cancel what runs after so many seconds (300).", "SECONDS"),
                _DIR,
                _MIGRATIONS,
            ),
            "[FILE…]",
            most=1000,
            examples=(
                "toft db test-migration supabase/migrations/20260101000000_x.sql",
                "toft db test-migration --data my-lease --fail-on error",
            ),
        ),
        _test_migration,
    ),
    "advisors": (
        Usage(
            "toft db advisors",
            "Advice on security and speed, by what a database is.",
            (
                _FAIL_ON,
                Flag("schemas", "The schemas that the API serves (public,graphql_public).", "NAMES"),
                _URL,
            ),
            "[LEASE]",
            most=1,
        ),
        _advisors,
    ),
    "lint": (
        Usage(
            "toft db lint",
            "Check PL/pgSQL functions, statement by statement.",
            (_FAIL_ON, _URL),
            "[LEASE]",
            most=1,
        ),
        _lint,
    ),
    "diff": (
        Usage(
            "toft db diff",
            "The SQL that leads from one database to another: leases or URLs.",
            (),
            "FROM TO",
            least=2,
            most=2,
            examples=("toft db diff before after", "toft db diff my-lease postgresql://…"),
        ),
        _diff,
    ),
    "types": (
        Usage(
            "toft db types",
            "Types of a database for programs.",
            (
                Flag("lang", "typescript (default) or python.", "LANGUAGE"),
                Flag("schemas", "Which schemas (public).", "NAMES"),
                _URL,
            ),
            "[LEASE]",
            most=1,
            examples=("toft db types > src/database.types.ts",),
        ),
        _types,
    ),
    "check-query": (
        Usage(
            "toft db check-query",
            "Check a query without running it: parameters, columns, plan, and what each role of the\n"
            "API would get. `-` reads it from stdin.",
            (
                Flag("claims", "Claims of the user, for `authenticated`.", "JSON"),
                Flag("writes", "Not in a read-only transaction."),
                _URL,
            ),
            "[LEASE] SQL",
            least=1,
            most=2,
            examples=("toft db check-query 'select id, title from todos where owner = $1'",),
        ),
        _check_query,
    ),
}
