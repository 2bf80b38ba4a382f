"""Pure: what a look at a database or a migration has found, as a value."""

from __future__ import annotations

import msgspec

#: from harmless to serious
LEVELS = ("info", "warn", "error")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """rule: its stable name. source: `ours`, `catalogue` or `plpgsql_check`. new: it came with the migration.

    object: what it is about. message says what was seen, remedy what to do; both without a full stop.
    """

    rule: str
    source: str = "ours"
    level: str
    category: str
    file: str | None = None
    line: int | None = None
    object: str | None = None
    message: str
    remedy: str
    new: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """What makes two findings the same."""
        return self.rule, self.object or f"{self.file}:{self.line}"


def at_least(findings: list[Finding], level: str) -> list[Finding]:
    """Those of this level or above; none for `none`."""
    if level not in LEVELS:
        return []
    return [finding for finding in findings if LEVELS.index(finding.level) >= LEVELS.index(level)]
