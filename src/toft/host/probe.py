"""What this machine can do, found by trying. For doctor, and for choosing a confinement."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from toft.host import processes
from toft.host.confine import Confinement, Method, confine
from toft.host.files import can_reflink

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_NOBODY = 65534


class Finding(msgspec.Struct, frozen=True):
    """One thing that this machine has or lacks. mend: the one command or step that brings it."""

    name: str
    is_there: bool
    detail: str
    mend: str | None = None


def findings(home: Path) -> list[Finding]:
    """What doctor tells about the machine, besides the engines. `home` must exist."""
    return [
        _bubblewrap(),
        _user_namespaces(),
        _setpriv(),
        _sharing(home),
        _space(home),
        _gvisor(),
        _kvm(),
    ]


@cache
def tool(name: str) -> str | None:
    """The full path of a program of the system."""
    return shutil.which(name, path=_PATH)


def choose_method() -> Method:
    """The strongest confinement that works here."""
    if _bubblewrap().is_there:
        return "bubblewrap"
    return "setpriv" if os.geteuid() == 0 and _setpriv().is_there else "none"


def _bubblewrap() -> Finding:
    """By running it as a postmaster would be."""
    name = "bubblewrap"
    wrapper, setpriv, true = tool("bwrap"), tool("setpriv"), tool("true")
    if wrapper is None or true is None:
        return Finding(
            name, False, "not installed: backends share the file system", "apt-get install bubblewrap"
        )
    uid = _NOBODY if os.geteuid() == 0 else None
    if uid is not None and setpriv is None:
        return Finding(name, False, "it needs setpriv, which is missing", "apt-get install util-linux")
    shown = [str(path) for path in system_libraries()]
    walls = Confinement(
        method="bubblewrap",
        uid=uid,
        read_only=(true, *(path for path in shown if not Path(path).is_symlink())),
        links=tuple((path, str(Path(path).readlink())) for path in shown if Path(path).is_symlink()),
        has_devices=True,
        bubblewrap=wrapper,
        setpriv=setpriv or "",
    )
    answer = processes.run(confine(walls, [true]), seconds=10)
    if answer.status == 0:
        return Finding(name, True, wrapper)
    cause = answer.errors.strip() or f"it ended with status {answer.status}"
    return Finding(name, False, cause, None if uid is not None else _allow_user_namespaces())


def _user_namespaces() -> Finding:
    name = "user namespaces"
    unshare, setpriv, true = tool("unshare"), tool("setpriv"), tool("true")
    if unshare is None or true is None or (os.geteuid() == 0 and setpriv is None):
        return Finding(name, False, "cannot be tried", "apt-get install util-linux")
    walls = Confinement(method="setpriv", uid=_NOBODY if os.geteuid() == 0 else None, setpriv=setpriv or "")
    answer = processes.run(confine(walls, [unshare, "--user", "--map-root-user", true]), seconds=10)
    if answer.status == 0:
        return Finding(name, True, "any user may make one")
    return Finding(name, False, answer.errors.strip(), _allow_user_namespaces())


def _allow_user_namespaces() -> str | None:
    """The command for the switch that forbids them, of those that distributions have."""
    for switch, forbids, allows in (
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "10000"),
    ):
        path = Path("/proc/sys", *switch.split("."))
        if path.exists() and path.read_text().strip() == forbids:
            return f"sysctl -w {switch}={allows}"
    return None


def _setpriv() -> Finding:
    """As root by becoming somebody else."""
    path, true = tool("setpriv"), tool("true")
    if path is None or true is None:
        return Finding("setpriv", False, "not installed", "apt-get install util-linux")
    walls = Confinement(method="setpriv", uid=_NOBODY if os.geteuid() == 0 else None, setpriv=path)
    answer = processes.run(confine(walls, [true]), seconds=10)
    return Finding("setpriv", answer.status == 0, answer.errors.strip() or path)


def _sharing(home: Path) -> Finding:
    name = "reflink"
    if can_reflink(home):
        return Finding(name, True, f"files under {home} can share blocks")
    return Finding(name, False, f"files under {home} are copied; that is as quick for small databases")


def _space(home: Path) -> Finding:
    free = shutil.disk_usage(home).free
    detail = f"{free / (1 << 30):.1f} GiB free under {home}"
    if free >= 1 << 30:
        return Finding("disk", True, detail)
    return Finding("disk", False, detail, "toft gc")


def _gvisor() -> Finding:
    path = tool("runsc")
    if path is None:
        return Finding("gVisor", False, "no runsc", "install runsc from gvisor.dev")
    answer = processes.run([path, "--version"], seconds=10)
    return Finding("gVisor", answer.status == 0, answer.output.partition("\n")[0] or answer.errors.strip())


_KVM_CREATE_VM = 0xAE01
_KVM_CREATE_VCPU = 0xAE41


def _kvm() -> Finding:
    """By making a virtual machine: the device may be there and of no use."""
    name = "KVM"
    opened: list[int] = []
    try:
        opened.append(os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC))
        opened.append(fcntl.ioctl(opened[-1], _KVM_CREATE_VM, 0))
        opened.append(fcntl.ioctl(opened[-1], _KVM_CREATE_VCPU, 0))
    except FileNotFoundError:
        return Finding(name, False, "no /dev/kvm: virtual machines are emulated, which is slower")
    except PermissionError:
        return Finding(name, False, "/dev/kvm is not yours to use", "usermod -aG kvm $USER")
    except OSError as error:
        return Finding(name, False, f"/dev/kvm is there but of no use: {error.strerror}")
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return Finding(name, True, "virtual machines can be made")


#: Folders with the shared libraries and data that a program of this system needs, and their cache.
_SYSTEM = (
    "/usr/lib",
    "/usr/lib64",
    "/lib",
    "/lib64",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/nix/store",
)


def system_libraries() -> tuple[Path, ...]:
    """Folders, files and links that a confined program must see to be loaded."""
    return tuple(Path(name) for name in _SYSTEM if os.path.lexists(name))


def missing_libraries(files: Sequence[Path], lib_dirs: Sequence[Path]) -> dict[Path, tuple[str, ...]]:
    """For each program or library that could not be loaded: the names that it lacks."""
    ldd = shutil.which("ldd", path="/usr/bin:/bin")
    if ldd is None:
        return {}
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "LD_LIBRARY_PATH": ":".join(map(str, lib_dirs))}
    missing: dict[Path, tuple[str, ...]] = {}
    for file in files:
        answer = processes.run([ldd, str(file)], environment)
        names = re.findall(r"^\s*(\S+) => not found", answer.output, re.MULTILINE)
        if names:
            missing[file] = tuple(dict.fromkeys(names))
    return missing


def has_locale(name: str) -> bool:
    """Whether the C library knows this locale."""
    answer = processes.run(["/usr/bin/env", f"LC_ALL={name}", "locale", "charmap"], {"PATH": "/usr/bin:/bin"})
    return answer.status == 0 and not answer.errors and answer.output.strip() == "UTF-8"


#: Where Debian's rule below gives another name.
_PACKAGES = {
    "libcrypto.so.3": "libssl3",
    "libz.so.1": "zlib1g",
    "libxml2.so.2": "libxml2",
    "libpam.so.0": "libpam0g",
    "libk5crypto.so.3": "libk5crypto3",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libicuuc.so.72": "libicu72",
    "libicudata.so.72": "libicu72",
    "libicui18n.so.72": "libicu72",
    "libxslt.so.1": "libxslt1.1",
}


def package_for(library: str) -> str:
    """The Debian package of a shared library: `libfoo.so.3` is in libfoo3, `libfoo2.so.3` in libfoo2-3."""
    if library in _PACKAGES:
        return _PACKAGES[library]
    name, _, version = library.partition(".so.")
    if name.startswith("libpython"):
        return name
    name = re.sub(r"^libicu\w+$", "libicu", name).replace("_", "-").lower()
    major = version.split(".")[0]
    return f"{name}-{major}" if name[-1:].isdigit() and major else name + major
