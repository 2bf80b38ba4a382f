"""Pure: which resource, in which schema, and what shall be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from toft.rest.errors import method_on_rpc, no_such_path, schema_not_exposed, unsupported_method
from toft.rest.request import Act

_RELATION_ACTS: Final = {
    "HEAD": Act.READ,
    "GET": Act.READ,
    "POST": Act.INSERT,
    "PATCH": Act.UPDATE,
    "PUT": Act.UPSERT_ONE,
    "DELETE": Act.DELETE,
    "OPTIONS": Act.DESCRIBE_RELATION,
}
_ROUTINE_ACTS: Final = {
    "HEAD": Act.CALL_READ,
    "GET": Act.CALL_READ,
    "POST": Act.CALL,
    "OPTIONS": Act.DESCRIBE_ROUTINE,
}
_ROOT_ACTS: Final = {
    "HEAD": Act.INSPECT_ROOT,
    "GET": Act.INSPECT_ROOT,
    "OPTIONS": Act.DESCRIBE_ROOT,
}
#: their schema is named by Content-Profile, the others' by Accept-Profile
WRITING_METHODS: Final = frozenset({"POST", "PATCH", "PUT", "DELETE"})


def parse_path(path: str) -> tuple[str, str]:
    """The kind of resource (root, relation, routine) and its name. Raises `RestError` PGRST125.

    >>> parse_path("/rpc/add%20them"), parse_path("/todos"), parse_path("/")
    (('routine', 'add them'), ('relation', 'todos'), ('root', ''))
    """
    pieces = path.removeprefix("/").split("/")
    match [unquote(piece, errors="surrogateescape") if "%" in piece else piece for piece in pieces]:
        case [""]:
            return "root", ""
        case [name]:
            return "relation", name
        case ["rpc", name]:
            return "routine", name
        case _:
            raise no_such_path()


def choose_act(kind: str, method: str) -> Act:
    """What `method` does to this kind of resource. Raises `RestError` PGRST101 or PGRST117."""
    if kind == "routine":
        if method not in _ROUTINE_ACTS:
            raise method_on_rpc(method)
        return _ROUTINE_ACTS[method]
    acts = _RELATION_ACTS if kind == "relation" else _ROOT_ACTS
    if method not in acts:
        raise unsupported_method(method)
    return acts[method]


def choose_schema(profile: str | None, exposed: Sequence[str]) -> tuple[str, bool]:
    """The schema, and whether the answer must name it. Raises `RestError` PGRST106."""
    if profile is None:
        return exposed[0], len(exposed) != 1
    if profile not in exposed:
        raise schema_not_exposed(profile, exposed)
    return profile, True
