"""Pure: the next act for a backend, from its record and what was seen of it.

One act at a time, and each brings the world one step nearer to the wish, so that it does not matter where an
earlier daemon stopped. `None` means that the backend rests in the wished state.
"""

from __future__ import annotations

import enum

from toft.backends.backend import Attachment, Backend, Sighting, Wish

#: A postmaster that ends by itself so often within `DEATHS_COUNT_SECONDS` will not be started again.
MOST_DEATHS = 3
DEATHS_COUNT_SECONDS = 60.0
#: So often within that time a port that another program has taken is tried for.
MOST_REFUSALS = 6


class Act(enum.Enum):
    """What can be done to a backend. All are idempotent."""

    CLONE = "clone"
    #: put another copy in the place of what it has
    SWAP = "swap"
    START = "start"
    #: give it passwords of its own
    PRIME = "prime"
    ATTACH = "attach"
    #: tell its worker that the postmaster runs
    TELL_AWAKE = "tell-awake"
    #: tell its worker to hold connections back, then stop the postmaster cleanly
    SLEEP = "sleep"
    #: give up: keep the cause in the record
    BREAK = "break"
    #: refuse connections with that cause, and stop what runs
    REFUSE = "refuse"
    DESTROY = "destroy"


def decide_act(backend: Backend, seen: Sighting) -> Act | None:
    """The next act, or None at rest."""
    if backend.wish is Wish.GONE:
        return Act.DESTROY
    if backend.failure is not None:
        is_done = seen.attachment in (Attachment.NONE, Attachment.REFUSING) and not seen.is_running
        return None if is_done else Act.REFUSE
    if not backend.is_cloned:
        return Act.CLONE
    if backend.swap is not None:
        return Act.SWAP
    if backend.wish is Wish.STARTED:
        return _towards_started(backend, seen)
    if backend.wish is Wish.ASLEEP:
        return _towards_asleep(seen)
    return None


def is_ready(backend: Backend, seen: Sighting) -> bool:
    """Whether it can be handed over."""
    return (
        backend.wish is Wish.STARTED
        and not backend.is_leased
        and backend.failure is None
        and decide_act(backend, seen) is None
    )


def _towards_started(backend: Backend, seen: Sighting) -> Act | None:
    if not seen.is_running:
        return Act.BREAK if seen.recent_deaths >= MOST_DEATHS else Act.START
    if not backend.is_primed:
        return Act.PRIME
    match seen.attachment:
        case Attachment.NONE:
            return Act.BREAK if seen.recent_deaths >= MOST_REFUSALS else Act.ATTACH
        case Attachment.AWAKE:
            return None
        case Attachment.UNTOLD | Attachment.ASLEEP | Attachment.REFUSING:
            return Act.TELL_AWAKE


def _towards_asleep(seen: Sighting) -> Act | None:
    if seen.attachment is Attachment.NONE:
        return Act.ATTACH
    if seen.attachment is not Attachment.ASLEEP or seen.is_running:
        return Act.SLEEP
    return None
