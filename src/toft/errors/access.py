"""Pure: errors about who may do what."""

from __future__ import annotations

from toft.errors.shape import ToftError


class CredentialRefused(ToftError):
    code = "TOFT-ACCESS-CREDENTIAL"
    status = 403
    message = "the credential given for {subject} is not the right one"
    remedy = "use the credential that was returned when it was created"
