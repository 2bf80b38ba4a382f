"""Rate limits: counted per backend in memory, and only where the project wants to meet them.

A lease serves tests, which sign up by the hundred from one address. So `[auth.rate_limit]` is read, and
enforced when it says `enforce = true`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from toft.auth.errors import AuthError, too_soon
from toft.protocol.worker import AuthRateLimits
from toft.world import Clock

if TYPE_CHECKING:
    from toft.auth.call import Call

_FIVE_MINUTES: Final = 300.0
_HOUR: Final = 3600.0
#: addresses that are counted at a time; those that were quiet longest are forgotten first
_MOST_ADDRESSES: Final = 10_000


class Bucket:
    """Pure: so many at once, refilled evenly over a time."""

    __slots__ = ("_at", "_full", "_left", "_per_second")

    def __init__(self, count: int, seconds: float, now: float) -> None:
        self._full = float(count)
        self._left = float(count)
        self._per_second = count / seconds
        self._at = now

    def take(self, now: float) -> bool:
        """One less, if there is one."""
        self._left = min(self._full, self._left + max(now - self._at, 0) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Limits:
    """What one backend has had of each kind."""

    def __init__(self, limits: AuthRateLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    def count_request(self, call: Call, path: str) -> None:
        """Raise `AuthError` when this address has asked for it too often."""
        if not self._limits.enforce or call.is_admin():
            return
        method = call.request.method
        if path == "/signup" and not call.fields.get("email") and not call.fields.get("phone"):
            self._count("anonymous_users", call, self._limits.anonymous_users, _HOUR)
        elif (method, path) in _SIGN_INS:
            self._count("sign_in_sign_ups", call, self._limits.sign_in_sign_ups, _FIVE_MINUTES)
        elif path == "/token":
            kind = "web3" if call.query.get("grant_type") == "web3" else "token_refresh"
            self._count(kind, call, getattr(self._limits, kind), _FIVE_MINUTES)
        elif path == "/verify":
            self._count("token_verifications", call, self._limits.token_verifications, _FIVE_MINUTES)

    def count_mail(self, call: Call) -> None:
        """Raise `AuthError` when the project has sent its share of mails."""
        if self._limits.enforce and not self._take("email_sent", "", self._limits.email_sent, _HOUR):
            raise too_soon("over_email_send_rate_limit", "email rate limit exceeded")

    def count_text(self, call: Call) -> None:
        """Raise `AuthError` when the project has sent its share of text messages."""
        if self._limits.enforce and not self._take("sms_sent", "", self._limits.sms_sent, _HOUR):
            raise too_soon("over_sms_send_rate_limit", "SMS rate limit exceeded")

    def _count(self, kind: str, call: Call, count: int, seconds: float) -> None:
        if not self._take(kind, call.client_ip or "", count, seconds):
            raise AuthError(429, "over_request_rate_limit", "Request rate limit reached")

    def _take(self, kind: str, who: str, count: int, seconds: float) -> bool:
        now = self._clock.unix()
        bucket = self._buckets.get((kind, who))
        if bucket is None:
            bucket = self._buckets[kind, who] = Bucket(count, seconds, now)
            if len(self._buckets) > _MOST_ADDRESSES:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end((kind, who))
        return bucket.take(now)


_SIGN_INS: Final = frozenset(
    {
        ("POST", "/signup"),
        ("POST", "/otp"),
        ("POST", "/magiclink"),
        ("POST", "/recover"),
        ("POST", "/resend"),
        ("PUT", "/user"),
    }
)
