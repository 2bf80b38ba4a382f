"""Pure: errors about backends."""

from __future__ import annotations

from toft.errors.shape import ToftError


class PortTaken(ToftError):
    code = "TOFT-BACKEND-PORT-TAKEN"
    status = 409
    message = "port {port} is in use by another process"
    remedy = "choose another, or leave the option out and Toft picks a free one"


class BackendFailed(ToftError):
    code = "TOFT-BACKEND-FAILED"
    status = 500
    message = "the backend did not start: {cause}"
    remedy = "`toft doctor` checks this machine; `toft daemon logs` has the whole story"


class DiskFull(ToftError):
    code = "TOFT-BACKEND-DISK-FULL"
    status = 507
    message = "no space left under {path}"
    remedy = "free some space, run `toft gc`, or point TOFT_HOME to a larger disk"


class TooManyBackends(ToftError):
    code = "TOFT-BACKEND-LIMIT"
    status = 503
    message = "this machine already runs {count} backends, its limit"
    remedy = "release a lease, or raise TOFT_MAX_BACKENDS"
