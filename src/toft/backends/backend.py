"""Pure: a backend as a value: its record (what is wished, who it is) and what was last seen of it."""

from __future__ import annotations

import enum

import msgspec

from toft.ids import BackendId, TemplateKey
from toft.protocol.worker import Secrets, ServiceSettings


class Wish(enum.Enum):
    """What a backend should be. It only ever moves down this list, but for `ASLEEP` and `STARTED`."""

    #: a directory at hand, to be started when somebody needs it
    CLONED = "cloned"
    #: its postmaster runs and its ports are open
    STARTED = "started"
    #: its ports are open; the next connection wakes it
    ASLEEP = "asleep"
    #: nothing of it is left
    GONE = "gone"


#: `Backend.swap`: back to the template.
TEMPLATE = "template"


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one backend; it exists from the wish until nothing is left.

    is_leased: it serves a lease, once in its life. uid: the user it runs under, None for ours. is_cloned:
    its directory is complete, and its secrets are made. is_primed: its own passwords are set. pid, pid_ticks:
    the postmaster as last started (the kernel's start time tells it from a later process of that number).
    failure: why it is broken for good. snapshot: what its directory was made from, when that was not its
    template. swap: a snapshot, or `TEMPLATE`, that shall take the place of what it has. edition: how often
    that has happened.
    """

    id: BackendId
    template_key: TemplateKey
    engine_id: str
    wish: Wish
    is_leased: bool = False
    http_port: int
    db_port: int
    uid: int | None
    settings: ServiceSettings
    secrets: Secrets | None = None
    is_cloned: bool = False
    is_primed: bool = False
    pid: int | None = None
    pid_ticks: int | None = None
    failure: str | None = None
    snapshot: str | None = None
    swap: str | None = None
    edition: int = 0
    created_at: str
    created_mono: float


class Attachment(enum.Enum):
    """What the gateway knows of a backend."""

    #: no worker serves it
    NONE = "none"
    #: its ports are open, but what its worker believes of the postmaster is not known (adopted)
    UNTOLD = "untold"
    AWAKE = "awake"
    ASLEEP = "asleep"
    #: connections are refused: it is broken
    REFUSING = "refusing"


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """What was last seen of a backend. recent_deaths: how often its postmaster ended by itself lately."""

    is_running: bool = False
    attachment: Attachment = Attachment.NONE
    recent_deaths: int = 0
