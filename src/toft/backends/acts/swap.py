"""The act that puts another copy in the place of what a backend has: its template's, or a snapshot's.

The copy is made ready beside it first; then connections are held back, the server is stopped, and two renames
do it. Ports, keys and passwords stay. Starting the server again is the loop's ordinary work.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from toft.backends.acts.create import running_of, unwatch, worker_spec
from toft.backends.backend import TEMPLATE, Attachment, Backend
from toft.backends.chores import CloneTemplate, CopySnapshot
from toft.backends.context import Context
from toft.backends.gateway import WorkerLost
from toft.engine import postmaster
from toft.host.files import remove_tree
from toft.protocol.worker import Secrets


async def swap(context: Context, backend: Backend) -> None:
    """Bring what `backend.swap` says."""
    places = context.places
    wanted = backend.swap
    chore = (
        CloneTemplate(
            templates=places.templates,
            key=backend.template_key,
            folder=places.next(backend.id),
            uid=backend.uid,
            secrets=backend.secrets,
            objects_uid=context.knobs.worker_uid,
        )
        if wanted == TEMPLATE or wanted is None
        else CopySnapshot(context.snapshots.folder(wanted), places.next(backend.id), backend.uid)
    )
    await context.jobs.run(chore, Secrets)  # it keeps its own
    backend = msgspec.structs.replace(backend, edition=backend.edition + 1)
    await _halt(context, backend)
    for path in (places.data(backend.id), places.objects(backend.id)):
        context.trash.throw(path)
        (places.next(backend.id) / path.name).rename(path)
    remove_tree(places.next(backend.id))
    now = context.estate.get(backend.id)
    context.estate.change(
        backend.id,
        snapshot=None if wanted == TEMPLATE else wanted,
        swap=None if now is None or now.swap == wanted else now.swap,
        edition=backend.edition,
        is_primed=wanted == TEMPLATE or wanted is None,
        pid=None,
        pid_ticks=None,
    )


async def _halt(context: Context, backend: Backend) -> None:
    if context.estate.seen(backend.id).attachment is not Attachment.NONE:
        with suppress(WorkerLost):
            await context.gateway.attach(worker_spec(context, backend, is_awake=False))
            context.estate.see(backend.id, attachment=Attachment.ASLEEP)
    unwatch(context, backend)
    running = running_of(backend)
    if running is not None:
        await postmaster.stop(running, "immediate")
    context.estate.see(backend.id, is_running=False)
