"""What a new daemon finds: which postmasters still live, what is attached, what lies around without a record.

Nothing is decided here but what belongs to nobody: that is ended and thrown away. The rest becomes sightings,
and the loop goes on where the earlier daemon stopped.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from toft.backends import keep
from toft.backends.acts import create
from toft.backends.backend import Attachment, Backend, Wish
from toft.backends.context import Context
from toft.backends.places import Places
from toft.engine import postmaster
from toft.host import processes
from toft.host.files import remove_tree
from toft.host.freeze import thaw
from toft.host.processes import Process
from toft.leases import lifecycle
from toft.protocol.lease import GRACE_SECONDS

_BOOT = "boot"
_HALF_MADE = "templates/.building-*/pgdata"


class Found(msgspec.Struct, frozen=True):
    """What was taken over, and what was cleaned up."""

    backends: int
    leases: int
    cleaned: int


def end_all(context: Context, reason: str) -> None:
    """End every lease."""
    for lease in context.leases.live():
        keep.end(context, lease, reason)


def adopt(context: Context, boot_id: str, attached: Mapping[str, tuple[int, int]]) -> Found:
    """Take over what an earlier daemon left. `attached`: backend → its ports at a living worker."""
    same_boot = _remember_boot(context, boot_id)
    context.templates.load()
    backends = context.estate.load()
    leases = context.leases.load()
    context.snapshots.load({lease.id for lease in leases})
    if same_boot:
        _give_grace(context)
    else:
        end_all(context, lifecycle.REBOOTED)
    working = _working_processes(context, "backends/*/pgdata", "trash/.*/pgdata", _HALF_MADE)
    for backend in backends:
        _see(context, backend, attached, working.pop(context.places.data(backend.id), []))
    cleaned = _end_strays(working) + _end_homeless(context.places)
    cleaned += _clean_folders(context, {backend.id for backend in backends})
    _end_orphaned_leases(context)
    context.trash.find()
    return Found(backends=len(backends), leases=len(context.leases.live()), cleaned=cleaned)


def clear_half_made(context: Context) -> None:
    """End what builders that died have left running, and throw away what they had begun."""
    families = _working_processes(context, _HALF_MADE)
    # Only now: a server that works for a builder has a new child at any moment.
    at_work = {process.pid for pid in context.jobs.pids() for process in processes.descendants(pid)}
    for path, family in families.items():
        _end_strays({path: [process for process in family if process.pid not in at_work]})
    if not context.templates.is_building():
        for path in context.places.home.glob(_HALF_MADE):
            context.trash.throw(path.parent)


def _remember_boot(context: Context, boot_id: str) -> bool:
    """Whether the state is of this boot; else its processes are gone and its monotonic times mean nothing."""
    rows = context.store.rows("SELECT value FROM fact WHERE name = ?", _BOOT)
    is_same = bool(rows) and rows[0][0] == boot_id
    if not is_same:
        with context.store.transaction() as tx:
            tx.execute(
                "INSERT INTO fact (name, value) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                _BOOT,
                boot_id,
            )
            tx.execute("UPDATE backend SET pid = NULL, pid_ticks = NULL, wish = 'gone'")
            tx.execute("UPDATE template SET used_mono = used_mono - 1e9 WHERE used_mono > -1e9")
    return is_same


def _give_grace(context: Context) -> None:
    now = context.clock.mono()
    with context.store.transaction() as tx:
        for lease in context.leases.live():
            adopted = lifecycle.adopt(lease, now, GRACE_SECONDS)
            if adopted != lease:
                context.leases.update(tx, adopted)


def _end_orphaned_leases(context: Context) -> None:
    for lease in context.leases.live():
        backend = context.estate.get(lease.backend_id)
        if backend is None or backend.wish is Wish.GONE:
            keep.end(context, lease, "its backend is no more")


def _see(
    context: Context, backend: Backend, attached: Mapping[str, tuple[int, int]], working: list[Process]
) -> None:
    ports = attached.get(backend.id)
    if ports is not None:
        if ports != (backend.http_port, backend.db_port):
            context.estate.change(backend.id, http_port=ports[0], db_port=ports[1])
        context.estate.see(backend.id, attachment=Attachment.UNTOLD)
    running = create.running_of(backend)
    if not backend.is_leased and backend.snapshot is not None:
        context.estate.change(backend.id, wish=Wish.GONE)  # a fork whom nobody waits for any more
    if running is not None and postmaster.is_alive(running):
        thaw(running)  # who copied it may have died in the middle
        create.watch(context, backend, running)
        return
    for process in working:  # orphans of a postmaster that was killed, or one that was never recorded
        processes.send(process, signal.SIGKILL)


def _working_processes(context: Context, *patterns: str) -> dict[Path, list[Process]]:
    """Processes whose working directory is a data directory of this home, by that directory."""
    places: dict[tuple[int, int], Path] = {}
    for pattern in patterns:
        for path in context.places.home.glob(pattern):
            with suppress(OSError):
                status = path.stat()
                places[status.st_dev, status.st_ino] = path
    found: dict[Path, list[Process]] = {}
    for pid in processes.all_pids() if places else ():
        with suppress(OSError):
            there = Path(f"/proc/{pid}/cwd").stat()
            path = places.get((there.st_dev, there.st_ino))
            process = processes.identify(pid) if path is not None else None
            if path is not None and process is not None:
                found.setdefault(path, []).append(process)
    return found


def _end_strays(working: Mapping[Path, list[Process]]) -> int:
    strays = [process for family in working.values() for process in family]
    for process in strays:
        processes.send(process, signal.SIGKILL)
    return len(strays)


def _end_homeless(places: Places) -> int:
    """End servers whose directory is gone, as when the home was removed under a daemon that was killed."""
    mark = os.fsencode(places.backends / "b_")
    count = 0
    for pid in processes.all_pids():
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            folders = [Path(os.fsdecode(word)) for word in words if word.startswith(mark)]
            process = processes.identify(pid) if folders and not folders[0].exists() else None
            count += len(processes.kill_tree(process)) if process is not None else 0
    return count


def builders_sockets(places: Places) -> list[Path]:
    """Socket folders of clusters that are, or were, made into templates."""
    return list(places.run.glob("t" + "[0-9a-f]" * 12))


def _clean_folders(context: Context, known: set[str]) -> int:
    """Throw away folders of backends that have no record, and their sockets."""
    cleaned = 0
    for path in context.places.backends.iterdir():
        if path.name not in known:
            context.trash.throw(path)
            cleaned += 1
    for path in context.places.sockets.iterdir():
        if path.name not in known:
            remove_tree(path)
            cleaned += 1
    for path in builders_sockets(context.places):
        remove_tree(path)
        cleaned += 1
    return cleaned
