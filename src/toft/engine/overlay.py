"""Which extension files of ours are laid over a server's own: stand-ins for what it lacks, and control files
of real ones that anybody may create.

Reads the files in `extensions/` and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources


@cache
def our_files() -> Mapping[str, bytes]:
    """Control files and scripts of our stand-ins, and `trusted.txt`."""
    folder = resources.files("toft.engine") / "extensions"
    return {
        entry.name: entry.read_bytes()
        for entry in folder.iterdir()
        if entry.name.endswith((".control", ".sql")) or entry.name == "trusted.txt"
    }


@cache
def trusted_names() -> frozenset[str]:
    """Extensions that `postgres` may create although their authors did not mark them so."""
    lines = our_files()["trusted.txt"].decode().splitlines()
    return frozenset(name for line in lines if (name := line.partition("#")[0].strip()))


def overlay(real: Mapping[str, str], broken: Collection[str] = ()) -> dict[str, bytes]:
    """What to lay over a server's extension folder: name → content.

    real: the server's control files by extension. broken: those whose library cannot be loaded. A stand-in
    never hides a real extension that works.
    """
    working = real.keys() - set(broken)
    files = {
        f"{name}.control": trust(real[name]).encode()
        for name in working & trusted_names()
        if trust(real[name]) != real[name]
    }
    stand_ins = {name.removesuffix(".control") for name in our_files() if name.endswith(".control")}
    for name, content in our_files().items():
        extension = name.removesuffix(".control").partition("--")[0]
        if extension in stand_ins - working:
            files[name] = content
    return files


def trust(control: str) -> str:
    """The text of a control file with `trusted = true`: the server then runs its script as the superuser for
    anybody with CREATE on the database. Unchanged when that is so already, or no superuser is needed.

    >>> print(trust("comment = 'x'\\ntrusted = false\\n"), end="")
    comment = 'x'
    trusted = true
    """
    if re.search(r"^\s*(trusted\s*=\s*true|superuser\s*=\s*false)", control, re.MULTILINE):
        return control
    kept = [line for line in control.splitlines() if line.partition("=")[0].strip() != "trusted"]
    return "\n".join([*kept, "trusted = true", ""])
