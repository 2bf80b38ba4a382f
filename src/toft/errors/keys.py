"""Pure: errors about signing keys."""

from __future__ import annotations

from toft.errors.shape import ToftError


class KeyNotFound(ToftError):
    code = "TOFT-KEY-NOT-FOUND"
    status = 404
    message = "lease `{lease}` has no key `{kid}`"
    remedy = "`toft keys list` shows those that it has"


class KeyInUse(ToftError):
    code = "TOFT-KEY-IN-USE"
    status = 409
    message = "key `{kid}` is the one that signs, so it cannot be revoked"
    remedy = (
        "`toft keys rotate` first; the tokens that it has signed go on being accepted until it is revoked"
    )
