"""Pure: "perhaps you meant": names that are close to one that was not found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

#: what tables and functions need so that a guess does not reveal unrelated names
CLOSE: Final = 0.75
LOOSE: Final = 0.33
_CANDIDATES: Final = 50


def closest(wanted: str, names: Iterable[str], least: float) -> str | None:
    """The name most like `wanted`, if it is at least so like it (1 is equal).

    >>> closest("film", ["films", "directors"], LOOSE)
    'films'
    >>> closest("noclosealternative", ["films", "directors"], LOOSE) is None
    True
    """
    found = _ranked(wanted, names, least)
    return found[0][1] if found else None


def closest_other(wanted: str, names: Iterable[str]) -> str | None:
    """As `closest`, but nothing when `wanted` itself is among the names: then something else is wrong."""
    found = closest(wanted, names, LOOSE)
    return None if found is not None and found.lower() == wanted.lower() else found


def _ranked(wanted: str, names: Iterable[str], least: float) -> list[tuple[float, str]]:
    distinct = sorted(set(names))
    for size in (3, 2):
        grams = _grams(wanted, size)
        scored = [(score, name) for name in distinct if (score := _likeness(grams, _grams(name, size))) > 0]
        if not scored:
            continue
        scored.sort(key=lambda pair: -pair[0])
        again = [(_edit_likeness(name.lower(), wanted.lower()), name) for _, name in scored[:_CANDIDATES]]
        again.sort(key=lambda pair: -pair[0])
        kept = [pair for pair in again if pair[0] >= least]
        if kept:
            return kept
    return []


def _grams(text: str, size: int) -> Counter[str]:
    letters = "".join(char for char in text.lower() if char.isalnum() or char in " ,")
    padded = f"-{letters}-"
    padded += "-" * (size - len(padded))
    return Counter(padded[at : at + size] for at in range(len(padded) - size + 1))


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    shared = sum(count * other[gram] for gram, count in one.items())
    if not shared:
        return 0
    return shared / math.sqrt(sum(n * n for n in one.values()) * sum(n * n for n in other.values()))


def _edit_likeness(one: str, other: str) -> float:
    if not one and not other:
        return 1
    previous = list(range(len(other) + 1))
    for row, char in enumerate(one, 1):
        current = [row]
        for column, target in enumerate(other, 1):
            current.append(
                min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (char != target))
            )
        previous = current
    return 1 - previous[-1] / max(len(one), len(other))
