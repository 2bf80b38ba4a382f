"""Pure: what an error is about, as far as its text tells."""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

type Kind = Literal["policy", "using", "table", "sequence", "function", "schema"]

_POLICY: Final = re.compile(
    r'new row violates row-level security policy(?: "(?P<policy>.*)")?(?P<using> \(USING expression\))?'
    r' for table "(?P<name>.*)"'
)
_DENIED: Final = re.compile(
    r"permission denied for (?P<kind>table|view|materialized view|foreign table|relation|sequence|function"
    r"|procedure|schema) (?P<name>.*)"
)
_KINDS: Final[dict[str, Kind]] = {
    "sequence": "sequence",
    "function": "function",
    "procedure": "function",
    "schema": "schema",
}


class Blame(msgspec.Struct, frozen=True):
    """kind: policy, a row that may not be written; using, one that may not be replaced; else a missing right.

    name: of the object, without its schema. policy: the restrictive one that was named.
    """

    kind: Kind
    name: str
    policy: str | None = None


def read_refusal(message: str) -> Blame | None:
    """What a message of SQLSTATE 42501 is about; None when it is another matter.

    >>> read_refusal('new row violates row-level security policy for table "notes"')
    Blame(kind='policy', name='notes', policy=None)
    >>> read_refusal("permission denied for view old notes").name
    'old notes'
    """
    if (found := _POLICY.fullmatch(message)) is not None:
        return Blame("using" if found["using"] else "policy", found["name"], found["policy"])
    if (found := _DENIED.fullmatch(message)) is not None:
        return Blame(_KINDS.get(found["kind"], "table"), found["name"])
    return None
