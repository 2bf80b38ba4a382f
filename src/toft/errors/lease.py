"""Pure: errors about leases."""

from __future__ import annotations

from toft.errors.shape import ToftError


class LeaseNotFound(ToftError):
    code = "TOFT-LEASE-NOT-FOUND"
    status = 404
    message = "there is no live lease `{lease}`"
    remedy = "`toft lease list` shows the live ones"


class LeaseAmbiguous(ToftError):
    code = "TOFT-LEASE-AMBIGUOUS"
    status = 409
    message = "{count} leases are live, and none was named"
    remedy = "name one of those that `toft lease list` shows"


class LeaseEnded(ToftError):
    code = "TOFT-LEASE-ENDED"
    status = 410
    message = "lease `{lease}` has ended: {reason}"
    remedy = "take a new one with `toft lease create` or `toft run`"


class TtlOutOfRange(ToftError):
    code = "TOFT-LEASE-TTL"
    status = 400
    message = "a time to live of {ttl} is out of range"
    remedy = "give between {least} and {most}, like `--ttl 30m`"
