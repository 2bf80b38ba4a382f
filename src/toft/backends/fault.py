"""What went wrong, in the words of the catalogue: a full or read-only disk shows in many ways."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from toft.errors.backend import BackendFailed, DiskFull
from toft.errors.daemon import HomeUnusable
from toft.errors.engine import TemplateFailed
from toft.errors.shape import ToftError
from toft.host.files import is_disk_full
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable

_FULL = (errno.ENOSPC, errno.EDQUOT)
#: What servers and tools that ran out of space say of it is hidden in these, or is something else altogether.
_OF_OTHERS = (BackendFailed, TemplateFailed, PostgresError)


def explain(error: BaseException, home: Path, doing: str) -> ToftError:
    """The error that a user can act on. Ask while what was being made is still there.

    doing: what it was that failed, for an error that nobody expected.
    """
    if isinstance(error, DiskFull):
        return DiskFull(path=str(home))
    if isinstance(error, OSError) and error.errno in _FULL:
        return DiskFull(path=str(home))
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        return HomeUnusable(path=str(home), cause=os.strerror(errno.EROFS))
    if isinstance(error, _OF_OTHERS) and (os.strerror(errno.ENOSPC) in str(error) or is_disk_full(home)):
        return DiskFull(path=str(home))
    if isinstance(error, FileNotFoundError | TemplateFailed) and not (home / "backends").exists():
        return HomeUnusable(
            path=str(home), cause="it was removed under its daemon, which `toft daemon stop` ends"
        )
    if isinstance(error, PostgresError | ConnectionLost | Unreachable):
        return BackendFailed(cause=str(error))
    if isinstance(error, ToftError):
        return error
    return ToftError(cause=f"{doing}: {type(error).__name__}: {error}")
