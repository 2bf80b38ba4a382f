"""The act that leaves nothing of a backend: ports, processes, files, record."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from toft.backends.acts.create import running_of, unwatch
from toft.backends.backend import Attachment, Backend
from toft.backends.context import Context
from toft.backends.gateway import WorkerLost
from toft.engine import postmaster
from toft.host.files import remove_tree


async def destroy(context: Context, backend: Backend) -> None:
    """Cut connections off and stop the postmaster at the same time; then the files, then the record."""
    unwatch(context, backend)
    await asyncio.gather(_detach(context, backend), _stop(context, backend))
    context.trash.throw(context.places.backend(backend.id))
    remove_tree(context.places.socket_folder(backend.id))
    with context.store.transaction() as tx:
        context.estate.drop(tx, backend.id)


async def _detach(context: Context, backend: Backend) -> None:
    if context.estate.seen(backend.id).attachment is Attachment.NONE:
        return
    with suppress(WorkerLost):
        await context.gateway.detach(backend.id)
    context.estate.see(backend.id, attachment=Attachment.NONE)


async def _stop(context: Context, backend: Backend) -> None:
    running = running_of(backend)
    if running is not None:
        await postmaster.stop(running, "immediate")
    context.estate.see(backend.id, is_running=False)
