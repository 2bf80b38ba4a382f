"""Pure: what to do about a server's error in a migration, in one sentence, where we know better than it.

Most of these say in what a Supabase database differs from a plain one, or a migration from a psql script.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from toft.pg.sqlstate import PostgresError

_EXTENSION_FUNCTIONS = re.compile(
    r"(?:uuid_generate_v[1345]\w*|uuid_nil|crypt|gen_salt|digest|hmac|gen_random_bytes|pgp_\w+|similarity"
    r"|word_similarity|unaccent|sign|verify|url_encode|earth_distance|ll_to_earth|cosine_distance|l2_distance)\b"
)
_MANAGED = r"(?:auth|storage|realtime|vault|extensions|graphql|graphql_public)"


def advise(
    error: PostgresError, statement: str, *, refusal: str | None = None, search_path: str | None = None
) -> str:
    """One sentence, without a full stop."""
    if refusal is not None:
        return (
            f"{refusal}; Toft runs such statements for you only where they cannot reach beyond the database"
        )
    if search_path == "" and error.sqlstate in {"42P01", "42883", "42704"}:
        return (
            "an earlier file leaves search_path empty, and the Supabase CLI runs seeds with it: "
            "write `public.` before the name, or end that file with `reset all`"
        )
    for known in _BY_SQLSTATE.get(error.sqlstate, ()):
        if sentence := known(error, statement):
            return sentence
    if error.hint:
        return error.hint[0].lower() + error.hint[1:].rstrip(".")
    return "mend the statement and run again"


def _unknown_type(error: PostgresError, statement: str) -> str | None:
    name = re.fullmatch(r'type "([^".]+)" does not exist', error.message)
    if name is None:
        return None
    if name[1] == "vector":
        return (
            "write `create extension if not exists vector with schema extensions` in an earlier file, "
            "and the type as `extensions.vector`"
        )
    return f"if an extension brings this type, write `extensions.{name[1]}`"


def _unknown_function(error: PostgresError, statement: str) -> str | None:
    name = re.match(r"function (?:\w+\.)?([\w]+)\(", error.message)
    if name and name[1].startswith("uuid_generate_v4"):
        return "write `gen_random_uuid()`, which needs no extension, or `extensions.uuid_generate_v4()`"
    if name and _EXTENSION_FUNCTIONS.match(name[1]):
        return f"extensions live in their own schema: write `extensions.{name[1]}(...)`"
    return None


def _no_extension(error: PostgresError, statement: str) -> str | None:
    name = re.match(r'extension "([^"]+)" is not available', error.message)
    if name is None:
        return None
    if name[1] == "vector":
        return (
            "set `major_version = 18` under `[db]` in supabase/config.toml: Toft brings pgvector for that one"
        )
    return (
        f"this Postgres does not have {name[1]}: leave the line out, or set TOFT_PG_BINDIR to a Postgres "
        "that has it; `toft doctor` lists what each engine has"
    )


def _extension_not_trusted(error: PostgresError, statement: str) -> str | None:
    if error.message.startswith("permission denied to create extension"):
        return "the hosted platform offers no such extension to `postgres` either"
    return None


def _managed_schema(error: PostgresError, statement: str) -> str | None:
    if re.search(rf"schema {_MANAGED}\b", error.message) or (
        "must be owner" in error.message and re.search(rf"\b{_MANAGED}\.", statement)
    ):
        return (
            "the services own this schema, and the hosted platform refuses it as well: "
            "keep your own tables and functions in `public` or a schema of your own"
        )
    return None


def _create_role(error: PostgresError, statement: str) -> str | None:
    if re.search(
        r"permission denied to (?:create|alter|drop|rename) role|must have CREATEROLE", error.message
    ):
        return (
            "before Postgres 16 Toft makes roles for you where it can read the statement: "
            "write it out (no `execute format(...)`), or set `major_version` to 17 or later"
        )
    if "grant role" in error.message or "admin option" in error.message:
        return "`postgres` can grant only those roles that it made, here as on the hosted platform"
    return None


def _superuser_only(error: PostgresError, statement: str) -> str | None:
    if "event trigger" in error.message:
        return "event triggers need a superuser: Toft cannot make one safely, leave the statement out"
    if "foreign-data wrapper" in error.message:
        return "foreign data wrappers need a superuser: use `create extension postgres_fdw`"
    if "permission denied to set parameter" in error.message:
        return "this setting belongs to the server; the hosted platform refuses it as well"
    return None


def _history(error: PostgresError, statement: str) -> str | None:
    if not statement and ("supabase_migrations" in error.message or "schema_migrations" in error.message):
        return "the file leaves another role set: end it with `reset role`"
    return None


def _same_version(error: PostgresError, statement: str) -> str | None:
    if not statement and error.constraint == "schema_migrations_pkey":
        return "another file has the same version (the digits before `_`): give this one a later time"
    return None


def _at_the_end(error: PostgresError, statement: str) -> str | None:
    if statement:
        return None
    return "a deferred constraint is checked when the file is committed: mend the rows or their order"


def _unsafe_enum(error: PostgresError, statement: str) -> str | None:
    return "a new enum value can be used only after a commit: move what uses it into the next file"


def _no_transaction_block(error: PostgresError, statement: str) -> str | None:
    return (
        "a migration is sent as a pipeline, which is no transaction block: "
        "write `begin;` and `commit;` around the file's statements"
    )


def _in_transaction_block(error: PostgresError, statement: str) -> str | None:
    return "move the statement into a file of its own"


def _several_commands(error: PostgresError, statement: str) -> str | None:
    if "multiple commands" in error.message:
        return (
            "the Supabase CLI does not see where a statement ends here, most often after a backslash before "
            "a quote: write `''` instead of `\\'`"
        )
    return None


def _psql_variable(error: PostgresError, statement: str) -> str | None:
    if error.message in {'syntax error at or near ":"', 'syntax error at or near ":\'"'}:
        return "if this is a variable of psql, write its value"
    return None


def _unknown_relation(error: PostgresError, statement: str) -> str | None:
    if re.search(r'relation "(?:auth|storage|realtime)\.', error.message):
        return "the service does not have this table; see what it has with `toft psql`"
    return "a later file makes it, or it was made by hand in the dashboard: `supabase db pull` writes it down"


def _timeout(error: PostgresError, statement: str) -> str | None:
    if "statement timeout" in error.message:
        return "`set statement_timeout = 0` in the file, or make the statement do less"
    return None


def _wal_level(error: PostgresError, statement: str) -> str | None:
    if "wal_level" in error.message or "replication slot" in error.message:
        return "logical decoding is off in a lease: leave the statement out"
    return None


type _Advice = Callable[[PostgresError, str], str | None]

_BY_SQLSTATE: dict[str, tuple[_Advice, ...]] = {
    "0A000": (_no_extension, _wal_level),
    "22023": (_superuser_only,),
    "23503": (_at_the_end,),
    "23505": (_same_version, _at_the_end),
    "25001": (_in_transaction_block,),
    "25P01": (_no_transaction_block,),
    "42501": (_history, _extension_not_trusted, _managed_schema, _superuser_only, _create_role),
    "42601": (_several_commands, _psql_variable),
    "42704": (_unknown_type,),
    "42883": (_unknown_function,),
    "42P01": (_unknown_relation,),
    "55000": (_wal_level,),
    "55P04": (_unsafe_enum,),
    "57014": (_timeout,),
}
