"""The walls around a gateway worker, which reads what strangers send.

As root's child it is a user of its own. It sees Python, what a program on the network reads of names and
certificates, the sockets of postmasters and the objects of backends: no state, no template, no home.
Postmasters let it in by its group. Where bubblewrap does not work, root's worker stays root with one right:
to reach postmasters.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from toft.backends.places import Places
from toft.host import probe
from toft.host.confine import Confinement, Method, confine, renounce

#: What a resolver and a TLS client read, where it is there.
_NETWORK = (
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/gai.conf",
    "/etc/localtime",
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/pki",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/usr/share/zoneinfo",
)


def worker_line(argv: Sequence[str], places: Places, method: Method, uid: int | None) -> tuple[str, ...]:
    """The command line that runs a worker behind its walls. uid: its user, when the daemon is root."""
    if method == "bubblewrap":
        return tuple(confine(_walls(places, uid), argv))
    setpriv = probe.tool("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        return tuple(argv)
    return tuple(renounce(argv, "dac_override", setpriv))


def _walls(places: Places, uid: int | None) -> Confinement:
    shown = [path for path in (*probe.system_libraries(), *map(Path, _NETWORK), *_python()) if path.exists()]
    links = [path for path in shown if path.is_symlink() and path in probe.system_libraries()]
    return Confinement(
        method="bubblewrap",
        uid=uid,
        read_only=(*(str(path) for path in shown if path not in links), str(places.sockets)),
        links=tuple((str(path), str(path.readlink())) for path in links),
        writable=(str(places.workers), str(places.backends)),
        shares_network=True,
        has_devices=True,
        bubblewrap=probe.tool("bwrap") or "bwrap",
        setpriv=probe.tool("setpriv") or "setpriv",
    )


def _python() -> list[Path]:
    """Where this interpreter and what it imports lie, links in between included."""
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    imported = {path for path in sys.path if Path(path).is_absolute()}
    executable = Path(sys.executable)
    hops = [executable]
    while executable.is_symlink():
        executable = executable.parent / executable.readlink()
        hops.append(executable)
    return [Path(path) for path in sorted({*prefixes, *imported} - {"/"})] + [hop.parent for hop in hops]
