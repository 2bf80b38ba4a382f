r"""Pure: which base columns a view's columns come from, read out of the rule that Postgres stores for it.

A rule's text is a tree of nodes in braces. The view's own columns are the target entries directly under the
outermost query, and each tells the table and column that it passes on.

>>> entry = r"{TARGETENTRY :expr {VAR :x 1} :resno 2 :resname a\} :resorigtbl 16400 :resorigcol 1}"
>>> rule = "({QUERY :targetList (" + entry + ")})"
>>> read_origins(rule)
{2: (16400, 1)}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

#: A backslash escapes one character, so that braces in names do not count.
_TOKEN: Final = re.compile(r"\\.|([{}])|:(resno|resorigtbl|resorigcol) (\d+)", re.DOTALL)
_ENTRY_DEPTH: Final = 2

type ColumnRef = tuple[int, int]


def read_origins(rule: str) -> dict[int, ColumnRef]:
    """Number of the view's column → the table's oid and column number, for those passed on as they are."""
    found: dict[int, ColumnRef] = {}
    depth = 0
    entry: dict[str, int] = {}
    for token in _TOKEN.finditer(rule):
        brace, name, number = token.groups()
        if brace == "{":
            depth += 1
            if depth == _ENTRY_DEPTH:
                entry = {}
        elif brace == "}":
            if depth == _ENTRY_DEPTH and entry.get("resorigtbl"):
                found[entry["resno"]] = (entry["resorigtbl"], entry["resorigcol"])
            depth -= 1
        elif name is not None and depth == _ENTRY_DEPTH:
            entry[name] = int(number)
    return found


def trace(origins: Mapping[int, Mapping[int, ColumnRef]], view: int) -> dict[ColumnRef, list[int]]:
    """Base column → the columns of `view` that show it, through views of views.

    Each view on the way counts as a table of its own, too.
    """
    shown: dict[ColumnRef, list[int]] = {}
    for number, reference in origins.get(view, {}).items():
        passed: set[ColumnRef] = set()
        step: ColumnRef | None = reference
        while step is not None and step not in passed:
            passed.add(step)
            shown.setdefault(step, []).append(number)
            step = origins.get(step[0], {}).get(step[1])
    return shown
