"""A data directory of its own for a backend: a template, unpacked."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from toft.engine.pack import unpack
from toft.engine.template import Template, read_index
from toft.errors.backend import DiskFull
from toft.host.files import remove_tree


def clone(template: Template, dest: Path, owner_uid: int | None = None) -> None:
    """Make `dest`, a data directory like the template's, owned by `owner_uid`. `dest` must not exist.

    It appears whole or not at all. Raises DiskFull.
    """
    if dest.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(dest))
    partial = dest.with_name(f".{dest.name}.cloning")
    remove_tree(partial)
    try:
        unpack(template.path, read_index(template), partial, owner_uid)
        partial.rename(dest)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(path=str(dest.parent)) from None
        raise
    finally:
        remove_tree(partial)
