"""Acts that stop a postmaster whose backend stays: sleep, and refuse after it broke."""

from __future__ import annotations

from toft.backends.acts.create import running_of, unwatch
from toft.backends.backend import Attachment, Backend
from toft.backends.context import Context
from toft.engine import postmaster
from toft.telemetry.events import BackendSlept


async def sleep(context: Context, backend: Backend) -> None:
    """Hold new connections back first, so that none meets a server that is going down."""
    await context.gateway.set_awake(backend.id, is_awake=False)
    context.estate.see(backend.id, attachment=Attachment.ASLEEP)
    unwatch(context, backend)
    running = running_of(backend)
    if running is not None:
        await postmaster.stop(running, "fast")
        context.estate.change(backend.id, pid=None, pid_ticks=None)
    context.estate.see(backend.id, is_running=False)
    context.tell(BackendSlept(backend=backend.id))


async def refuse(context: Context, backend: Backend) -> None:
    """Answer every connection with the cause, and stop what runs."""
    seen = context.estate.seen(backend.id)
    if seen.attachment is not Attachment.NONE:
        await context.gateway.set_awake(backend.id, is_awake=False, failure=backend.failure)
        context.estate.see(backend.id, attachment=Attachment.REFUSING)
    unwatch(context, backend)
    running = running_of(backend)
    if running is not None:
        await postmaster.stop(running, "immediate")
        context.estate.change(backend.id, pid=None, pid_ticks=None)
    context.estate.see(backend.id, is_running=False)
