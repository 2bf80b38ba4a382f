"""Pure: errors about what is done with databases."""

from __future__ import annotations

from toft.errors.shape import ToftError


class DatabaseUnreachable(ToftError):
    code = "TOFT-DATABASE-UNREACHABLE"
    status = 502
    message = "no connection to {place}: {cause}"
    remedy = "check host, port, user and password, or name a lease instead"


class DatabaseRefused(ToftError):
    code = "TOFT-DATABASE-REFUSED"
    status = 422
    message = "{doing}: {cause} (SQLSTATE {sqlstate})"
    remedy = "{advice}"


class FindingsRefused(ToftError):
    code = "TOFT-DATABASE-FINDINGS"
    status = 422
    exit_status = 1
    message = "{count} findings of level {level} or above"
    remedy = "mend them, or let them pass with `--fail-on none`"


class ToolMissing(ToftError):
    code = "TOFT-DATABASE-TOOL"
    status = 501
    message = "{tool} is not there: {cause}"
    remedy = "{advice}"
