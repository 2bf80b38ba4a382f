"""Pure: the patterns of `sql_paths`, matched against the paths of a bundle.

As in the Supabase CLI: `*` and `?` stop at `/`, `[a-z]` and `[^a-z]` are classes, a backslash takes the next
character as it is, `**` means `*`; a folder stands for all `.sql` files under it; matches of a pattern come
sorted, and a file comes once, where the first pattern has it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import msgspec

_PART = re.compile(r"\*+|\?|\[(\^?)((?:\\.|[^\]\\])+)\]|\\(.)|(.)", re.DOTALL)


class Expansion(msgspec.Struct, frozen=True):
    """Paths in the order to use them, and the patterns that match nothing."""

    paths: tuple[str, ...]
    unmatched: tuple[str, ...]


def expand(patterns: Iterable[str], paths: Collection[str], base: str = "supabase") -> Expansion:
    """Patterns are relative to the folder `base`."""
    found: dict[str, None] = {}
    unmatched: list[str] = []
    for pattern in patterns:
        matches = sorted(_match(pattern, paths, base), key=lambda path: path.encode())
        if not matches:
            unmatched.append(pattern)
        found.update(dict.fromkeys(matches))
    return Expansion(tuple(found), tuple(unmatched))


def _match(pattern: str, paths: Collection[str], base: str) -> list[str]:
    """A file that the pattern names counts whatever it is called; of a folder only the `.sql` files do."""
    if not pattern or pattern.startswith("/"):
        return []
    try:
        regexp = re.compile(_translate(normalise(f"{base}/{pattern}")))
    except re.error:  # a class like [z-a]
        return []
    found = ((path, regexp.match(path)) for path in paths)
    return [path for path, match in found if match and (match.end() == len(path) or path.endswith(".sql"))]


def _translate(pattern: str) -> str:
    """A regular expression that matches the path itself or a folder above it."""
    parts: list[str] = []
    for part in _PART.finditer(pattern):
        sign = part[0]
        if sign.startswith("*"):
            parts.append("[^/]*")
        elif sign == "?":
            parts.append("[^/]")
        elif part[2]:
            members = re.sub(r"\\(.)|([\[\]\\&~|])", lambda found: "\\" + (found[1] or found[2]), part[2])
            parts.append(f"[{part[1]}{members}]")
        else:
            parts.append(re.escape(part[3] or part[4]))
    return "".join(parts) + r"(?=/|\Z)"


def normalise(path: str) -> str:
    """`a/./b/../c` → `a/c`; a path that leaves the project keeps its leading `..`."""
    kept: list[str] = []
    for part in path.split("/"):
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part not in ("", "."):
            kept.append(part)
    return "/".join(kept)
