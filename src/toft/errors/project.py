"""Pure: errors about a project's files under supabase/."""

from __future__ import annotations

from toft.errors.shape import ToftError


class MigrationFailed(ToftError):
    code = "TOFT-PROJECT-MIGRATION"
    status = 422
    message = "{file}:{line}: {text} (SQLSTATE {sqlstate}, statement {statement})"
    remedy = "{advice}"

    @property
    def context(self) -> str:
        """The lines around the fault with a caret, then what Postgres added."""
        facts = {
            name: str(self.facts.get(name) or "") for name in ("excerpt", "detail", "hint", "where", "kept")
        }
        if facts["hint"].rstrip(".").lower() == self.hint.lower():
            facts["hint"] = ""  # our advice says it already
        said = [f"{name}: {facts[name]}" for name in ("detail", "hint", "where", "kept") if facts[name]]
        return "\n".join([facts["excerpt"], *said] if facts["excerpt"] else said)


class MigrationTimeout(ToftError):
    code = "TOFT-PROJECT-TIMEOUT"
    status = 408
    message = "{file} was not done after {seconds:g} seconds; its running statement was cancelled"
    remedy = "see what it waits for with `toft inspect locks`, or give it more time with `--timeout`"


class FileUnreadable(ToftError):
    code = "TOFT-PROJECT-FILE"
    status = 422
    message = "{file}:{line}: {cause}"
    remedy = "{advice}"


class MigrationsOutOfOrder(ToftError):
    code = "TOFT-PROJECT-ORDER"
    status = 409
    message = "{files} would be inserted before the last applied migration"
    remedy = "give them a later time, or use `--include-all`"


class HistoryUnknown(ToftError):
    code = "TOFT-PROJECT-HISTORY"
    status = 409
    message = "the database has applied {versions}, and there is no such file"
    remedy = "bring the files back, or `supabase migration repair --status reverted {versions}`"


class ProjectUnknown(ToftError):
    code = "TOFT-PROJECT-UNKNOWN"
    status = 404
    message = "the daemon has not seen project {digest} yet"
    remedy = "send its files first"
