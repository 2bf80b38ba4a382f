"""Pure: the control API as a table: method, path, what is sent, what is answered.

`daemon/api.py` serves exactly these routes. In local mode the socket's permissions are the right to all of
them; the credential of a lease is asked for where a lease changes hands.
"""

from __future__ import annotations

from typing import Any

import msgspec

from toft.protocol.fork import Checkpoint, Checkpoints, CreateCheckpoint, ForkLease, Forks, Returned
from toft.protocol.keys import RotateKeys, SigningKeys
from toft.protocol.lease import CreateLease, HoldLease, Lease, LeaseSummary, RenewLease
from toft.protocol.push import PushReport, PushWish
from toft.protocol.worker import LogLine


class Greeting(msgspec.Struct, frozen=True):
    """Who answers on this socket."""

    version: str
    pid: int
    home: str
    started_at: str


class Leases(msgspec.Struct, frozen=True):
    """The live leases, oldest first."""

    leases: list[LeaseSummary]


class EngineCard(msgspec.Struct, frozen=True):
    """An engine as doctor shows it."""

    id: str
    major: int
    version: str
    source: str
    bin_dir: str
    extensions: list[str]
    notes: list[str]


class Engines(msgspec.Struct, frozen=True):
    """The engines of this machine, best first."""

    engines: list[EngineCard]


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """End the daemon. purge: with every lease, template and file of its home."""

    purge: bool = False


class Stopped(msgspec.Struct, frozen=True):
    """What the daemon left: `leases` still live for the grace, for the next daemon to adopt."""

    stopped: bool
    leases: int


class LeaseLog(msgspec.Struct, frozen=True):
    """What a lease's services and its Postgres have said about faults, oldest first."""

    lease: str
    lines: list[LogLine]


class Gc(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Throw away what nothing uses. templates: also the cached templates that no live backend came from."""

    templates: bool = False


class Collected(msgspec.Struct, frozen=True):
    """What a collection removed."""

    backends: int
    templates: int
    projects: int
    bytes: int


class Metrics(msgspec.Struct, frozen=True):
    """Counters since the daemon's start, and what there is now."""

    counters: dict[str, float]
    gauges: dict[str, float]
    #: template key → {"ready", "starting", "cloned", "waiting"}
    pools: dict[str, dict[str, int]]


class Route(msgspec.Struct, frozen=True):
    """One operation. `{name}` in the path is one segment; streams: the answer may be lines of JSON."""

    name: str
    method: str
    path: str
    request: Any = None
    answer: Any = None
    status: int = 200
    streams: bool = False
    max_body_bytes: int = 64 * 1024


ROUTES: tuple[Route, ...] = (
    Route("hello", "GET", "/v1/hello", answer=Greeting),
    Route("put_project", "PUT", "/v1/projects/{digest}", status=204, max_body_bytes=512 * 1024 * 1024),
    Route("create_lease", "POST", "/v1/leases", request=CreateLease, answer=Lease, status=201, streams=True),
    Route("list_leases", "GET", "/v1/leases", answer=Leases),
    Route("show_lease", "GET", "/v1/leases/{id}", answer=Lease),
    Route("hold_lease", "POST", "/v1/leases/{id}/hold", request=HoldLease, streams=True),
    Route("renew_lease", "POST", "/v1/leases/{id}/renew", request=RenewLease, answer=Lease),
    Route("release_lease", "DELETE", "/v1/leases/{id}", status=204),
    Route("fork_lease", "POST", "/v1/leases/{id}/fork", request=ForkLease, answer=Forks, status=201),
    Route("push_project", "POST", "/v1/leases/{id}/push", request=PushWish, answer=PushReport),
    Route("reset_lease", "POST", "/v1/leases/{id}/reset", answer=Returned),
    Route("list_checkpoints", "GET", "/v1/leases/{id}/checkpoints", answer=Checkpoints),
    Route(
        "create_checkpoint",
        "POST",
        "/v1/leases/{id}/checkpoints",
        request=CreateCheckpoint,
        answer=Checkpoint,
        status=201,
    ),
    Route("restore_checkpoint", "POST", "/v1/leases/{id}/checkpoints/{name}/restore", answer=Returned),
    Route("delete_checkpoint", "DELETE", "/v1/leases/{id}/checkpoints/{name}", status=204),
    Route("show_log", "GET", "/v1/leases/{id}/log", answer=LeaseLog),
    Route("list_keys", "GET", "/v1/leases/{id}/keys", answer=SigningKeys),
    Route("rotate_keys", "POST", "/v1/leases/{id}/keys", request=RotateKeys, answer=SigningKeys),
    Route("revoke_key", "DELETE", "/v1/leases/{id}/keys/{kid}", answer=SigningKeys),
    Route("list_engines", "GET", "/v1/engines", answer=Engines),
    Route("collect", "POST", "/v1/gc", request=Gc, answer=Collected),
    Route("stop", "POST", "/v1/stop", request=Stop, answer=Stopped),
    Route("show_metrics", "GET", "/v1/metrics", answer=Metrics),
)


class NoRoute(Exception):
    """Nothing answers this method and path. `allowed` names the methods that the path has, if any."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        super().__init__("no route")
        self.allowed = allowed


def find_route(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route of a request and the values of its path's names.

    >>> route, names = find_route("DELETE", "/v1/leases/lease_1")
    >>> route.name, names
    ('release_lease', {'id': 'lease_1'})
    """
    segments = path.split("/")
    allowed: list[str] = []
    for route in ROUTES:
        names = _match(route.path.split("/"), segments)
        if names is None:
            continue
        if route.method == method:
            return route, names
        allowed.append(route.method)
    raise NoRoute(tuple(allowed))


def _match(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    names: dict[str, str] = {}
    for want, got in zip(pattern, segments, strict=True):
        if want.startswith("{"):
            if not got:
                return None
            names[want[1:-1]] = got
        elif want != got:
            return None
    return names
