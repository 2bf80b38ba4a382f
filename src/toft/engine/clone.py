"""A data directory of its own for a backend: a template, unpacked."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from toft.engine.marks import draw_patches
from toft.engine.pack import unpack
from toft.engine.template import Template, read_index
from toft.errors.backend import DiskFull
from toft.host.files import remove_tree
from toft.world import SystemEntropy


def clone(
    template: Template,
    dest: Path,
    owner_uid: int | None = None,
    passwords: Mapping[str, str] | None = None,
) -> None:
    """Make `dest`, a data directory like the template's, owned by `owner_uid`. `dest` must not exist.

    passwords: of the roles of `marks.ROLES`, in place of the template's. It appears whole or not at all.
    Raises DiskFull.
    """
    if dest.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(dest))
    partial = dest.with_name(f".{dest.name}.cloning")
    remove_tree(partial)
    patches = draw_patches(template.marks, passwords or {}, SystemEntropy())
    try:
        unpack(template.path, read_index(template), partial, owner_uid, patches)
        partial.rename(dest)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(path=str(dest.parent)) from None
        raise
    finally:
        remove_tree(partial)
