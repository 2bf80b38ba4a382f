"""`toft db …`: what one does with a lease's database besides using it."""

from __future__ import annotations

from toft.cli import wish
from toft.cli.argv import Usage
from toft.cli.push import push, push_flags

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
}
