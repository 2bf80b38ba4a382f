"""What this machine can do, found by trying. For doctor, and for choosing a confinement."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from toft.host import processes

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
    name = re.sub(r"^libicu\w+$", "libicu", name).replace("_", "-").lower()
    major = version.split(".")[0]
    return f"{name}-{major}" if name[-1:].isdigit() and major else name + major
