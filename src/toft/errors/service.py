"""Pure: what commands meet at a backend's services, which keep upstream's shapes on the wire."""

from __future__ import annotations

from toft.errors.shape import ToftError


class ServiceUnreachable(ToftError):
    code = "TOFT-SERVICE-UNREACHABLE"
    status = 502
    message = "the backend at {url} does not answer: {cause}"
    remedy = "`toft lease list` shows whether it lives, `toft daemon logs` what happened"


class ServiceRefused(ToftError):
    code = "TOFT-SERVICE-REFUSED"
    status = 422
    message = "{service} refused: {cause}"
    remedy = "`toft logs` says more when a function, trigger or hook of the project was the reason"


class UserNotFound(ToftError):
    code = "TOFT-USER-NOT-FOUND"
    status = 404
    message = "there is no user `{user}`"
    remedy = "`toft user list` shows those that there are, `toft user create` makes one"


class MailNotFound(ToftError):
    code = "TOFT-MAIL-NOT-FOUND"
    status = 404
    message = "there is no mail `{mail}`"
    remedy = "`toft mail list` shows what came; the last thousand mails are kept"


class MailNotCome(ToftError):
    code = "TOFT-MAIL-NOT-COME"
    status = 408
    message = "no mail to `{to}` came within {seconds} s"
    remedy = "`toft mail list` shows what came instead; `--timeout` waits longer"


class MailUrlMissing(ToftError):
    code = "TOFT-MAIL-URL-MISSING"
    status = 400
    message = "TOFT_MAIL_URL is not set, so there is no mailbox to read"
    remedy = "run under `toft run`, or name the mailbox: `Mailbox(url)`"
