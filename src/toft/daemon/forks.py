"""The part of the control API that is about a lease's whole backend: fork, checkpoint, restore, reset."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from toft.backends import fork
from toft.backends.context import Context
from toft.backends.snapshots import Snapshot
from toft.backends.take import Taken
from toft.errors.daemon import BadRequest
from toft.http.message import Request
from toft.protocol import fork as wire
from toft.protocol.lease import Lease

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class ForkApi:
    """Answers with messages. `describe` words a lease that was just taken."""

    def __init__(self, context: Context, describe: Callable[[Taken], Lease]) -> None:
        self._context = context
        self._describe = describe

    async def fork(self, request: Request, names: dict[str, str], message: wire.ForkLease) -> wire.Forks:
        begun = self._context.clock.mono()
        forked = await fork.fork(self._context, names["id"], message)
        return wire.Forks(
            parent=names["id"],
            forks=[self._describe(taken) for taken in forked.taken],
            bytes=forked.captured.copied.bytes,
            is_shared=forked.captured.copied.is_shared,
            pause_ms=forked.captured.pause_ms,
            took_ms=(self._context.clock.mono() - begun) * 1000,
        )

    async def create(
        self, request: Request, names: dict[str, str], message: wire.CreateCheckpoint
    ) -> wire.Checkpoint:
        if message.name is not None and not _NAME.fullmatch(message.name):
            raise BadRequest(
                cause="a checkpoint's name has up to 64 letters, digits, `.`, `_` and `-`, the first no sign"
            )
        return _checkpoint(await fork.checkpoint(self._context, names["id"], message.name))

    async def list(self, request: Request, names: dict[str, str], message: None) -> wire.Checkpoints:
        lease = self._context.leases.get(names["id"])
        return wire.Checkpoints([_checkpoint(known) for known in self._context.snapshots.of_lease(lease.id)])

    async def restore(self, request: Request, names: dict[str, str], message: None) -> wire.Returned:
        name = unquote(names["name"])
        took = await fork.restore(self._context, names["id"], name)
        return wire.Returned(lease=names["id"], to=name, took_ms=took)

    async def delete(self, request: Request, names: dict[str, str], message: None) -> None:
        fork.forget(self._context, names["id"], unquote(names["name"]))

    async def reset(self, request: Request, names: dict[str, str], message: None) -> wire.Returned:
        took = await fork.reset(self._context, names["id"])
        return wire.Returned(lease=names["id"], to="template", took_ms=took)

    def methods(self) -> dict[str, Any]:
        """Its routes by name."""
        return {
            "fork_lease": self.fork,
            "create_checkpoint": self.create,
            "list_checkpoints": self.list,
            "restore_checkpoint": self.restore,
            "delete_checkpoint": self.delete,
            "reset_lease": self.reset,
        }


def _checkpoint(snapshot: Snapshot) -> wire.Checkpoint:
    return wire.Checkpoint(
        name=snapshot.name,
        created_at=snapshot.created_at,
        bytes=snapshot.size_bytes,
        pause_ms=snapshot.pause_ms,
    )
