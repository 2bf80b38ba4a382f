"""`toft inspect SUBJECT`: what goes on in a lease's database."""

from __future__ import annotations

from toft.cli.argv import Flag, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context

_SUBJECTS = {
    "locks": "Locks, and who waits for whom.",
    "connections": "Connections by user and program.",
    "statements": "The statements that took longest, from pg_stat_statements.",
    "tables": "Rows, sizes and scans of tables.",
    "indexes": "Sizes and scans of indexes.",
    "cache": "How much was found in memory.",
    "transactions": "Open transactions, oldest first.",
    "storage": "Objects and bytes of buckets.",
}


def _inspect(context: Context) -> int:
    from toft.cli.inspecting import inspect

    return inspect(context)


USAGE = {
    name: (
        Usage(
            f"toft inspect {name}",
            prose,
            (Flag("db-url", "Another database than a lease's.", "URL"),),
            "[LEASE]",
            most=1,
        ),
        _inspect,
    )
    for name, prose in _SUBJECTS.items()
}
