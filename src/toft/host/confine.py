"""Pure: what a process may see and who it runs as, turned into a command line.

Three methods. `bubblewrap`: an empty root with only what is listed, own process, IPC and network
namespaces; as root the user id is changed by setpriv inside. `setpriv`: another user id, no new
privileges, which only root can give. `none`: as we are, or as `uid` says. All namespaces together cost a
start about 4 ms, setpriv 1.5; leaving single ones out saves less than 0.3 ms each, so none is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Literal, assert_never

import msgspec

type Method = Literal["bubblewrap", "setpriv", "none"]


class Confinement(msgspec.Struct, frozen=True):
    """The walls around one process.

    method: see above. uid: user and group to become; only root can, and None stays.
    read_only, writable: paths shown at their own place. links: (place, target) of symbolic links.
    placed: (source, place) of files shown somewhere else, read-only.
    shares_network: keep the host's network, for a process that serves on it.
    dies_with_parent: gets SIGQUIT when the thread that started it ends. Not with bubblewrap: its launcher,
    the parent then, has no right to signal another user's process.
    has_devices: a small /dev and the process's own /proc, for interpreters.
    """

    method: Method
    uid: int | None = None
    read_only: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    placed: tuple[tuple[str, str], ...] = ()
    writable: tuple[str, ...] = ()
    shares_network: bool = False
    has_devices: bool = False
    dies_with_parent: bool = False
    bubblewrap: str = "/usr/bin/bwrap"
    setpriv: str = "/usr/bin/setpriv"


def confine(walls: Confinement, argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` behind these walls."""
    match walls.method:
        case "bubblewrap":
            return [*_bubblewrap(walls), *_become(walls), *argv]
        case "setpriv" | "none":
            return [*_become(walls), *argv]
        case _:
            assert_never(walls.method)


def renounce(argv: Sequence[str], kept: str, setpriv: str = "/usr/bin/setpriv") -> list[str]:
    """The command line that runs `argv` as root with one capability left and no way to another."""
    return [
        setpriv,
        f"--bounding-set=-all,+{kept}",
        "--inh-caps=-all",
        "--ambient-caps=-all",
        "--no-new-privs",
        "--",
        *argv,
    ]


def _become(walls: Confinement) -> list[str]:
    if walls.uid is None:
        until = _until_death(walls)
        return [walls.setpriv, *until, "--"] if until else []
    who = str(walls.uid)
    return [
        walls.setpriv,
        *_until_death(walls),
        f"--reuid={who}",
        f"--regid={who}",
        "--clear-groups",
        "--no-new-privs",
        "--inh-caps=-all",
        "--",
    ]


def _until_death(walls: Confinement) -> list[str]:
    """The kernel forgets it when the user changes, so setpriv says it after that."""
    return ["--pdeathsig=QUIT"] if walls.dies_with_parent and walls.method != "bubblewrap" else []


def _bubblewrap(walls: Confinement) -> list[str]:
    line = [walls.bubblewrap, "--unshare-ipc", "--unshare-pid", "--as-pid-1"]
    if not walls.shares_network:
        line.append("--unshare-net")
    if walls.uid is None:
        line.append("--unshare-user")
    else:
        line += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    if walls.has_devices:
        line += ["--dev", "/dev", "--proc", "/proc"]
    mounts = _mounts(walls)
    links = dict(walls.links)
    for folder in _folders_above([*mounts, *links], mounts):
        line += ["--dir", folder]
    for place, target in links.items():
        line += ["--symlink", target, place]
    for place, (source, how) in mounts.items():
        line += [how, source, place]
    return [*line, "--chdir", "/", "--"]


def _mounts(walls: Confinement) -> dict[str, tuple[str, str]]:
    """place → (source, option), outer places before inner ones."""
    shown = {path: (path, "--ro-bind") for path in walls.read_only}
    if walls.uid is not None:
        shown[walls.setpriv] = (walls.setpriv, "--ro-bind")
    shown |= {place: (source, "--ro-bind") for source, place in walls.placed}
    shown |= {path: (path, "--bind") for path in walls.writable}
    kept: dict[str, tuple[str, str]] = {}
    for place, (source, how) in sorted(shown.items()):
        is_shown_already = how == "--ro-bind" and source == place and _is_below(place, kept)
        if not is_shown_already:
            kept[place] = (source, how)
    return kept


def _folders_above(places: Iterable[str], mounts: Iterable[str]) -> list[str]:
    """Folders to make first: bubblewrap would make them for its own eyes only."""
    above = {str(parent) for place in places for parent in PurePosixPath(place).parents}
    return sorted(
        folder for folder in above - {"/"} if folder not in mounts and not _is_below(folder, mounts)
    )


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(folder + "/") for folder in folders)
