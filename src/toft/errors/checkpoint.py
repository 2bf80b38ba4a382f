"""Pure: errors about checkpoints and forks."""

from __future__ import annotations

from toft.errors.shape import ToftError


class CheckpointNotFound(ToftError):
    code = "TOFT-CHECKPOINT-NOT-FOUND"
    status = 404
    message = "lease `{lease}` has no checkpoint `{checkpoint}`"
    remedy = "`toft checkpoint list {lease}` shows those that it has"


class CheckpointExists(ToftError):
    code = "TOFT-CHECKPOINT-EXISTS"
    status = 409
    message = "lease `{lease}` already has a checkpoint `{checkpoint}`"
    remedy = "give another `--name`, or delete that one first"


class TooManyCheckpoints(ToftError):
    code = "TOFT-CHECKPOINT-LIMIT"
    status = 409
    message = "lease `{lease}` already has {most} checkpoints, as many as one may have"
    remedy = "delete one with `toft checkpoint delete`"


class PausedTooLong(ToftError):
    code = "TOFT-FORK-TOO-LARGE"
    status = 507
    message = "copying this database would stop it for more than {seconds} seconds; it was let go on"
    remedy = "put TOFT_HOME on a disk that shares blocks (XFS, btrfs), where a copy costs no time"


class ForkRefused(ToftError):
    code = "TOFT-FORK-COUNT"
    status = 400
    message = "{count} forks at once are not possible"
    remedy = "ask for 1 to {most}"
