"""`toft keys list|rotate|revoke`: the keys that sign a lease's tokens."""

from __future__ import annotations

from toft.cli.argv import Flag, Usage
from toft.cli.leases import find_lease
from toft.errors.daemon import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.protocol.plain_json import Json

_ALGORITHMS = ("ES256", "RS256", "HS256")


def list_all(context: Context) -> int:
    """The keys, the newest first."""
    daemon = context.daemon()
    lease = find_lease(context, daemon, context.arguments.get("lease"))
    return _print(context, daemon.call("GET", f"/v1/leases/{lease}/keys"))


def rotate(context: Context) -> int:
    """Sign with a new key."""
    alg = (context.arguments.get("alg") or _ALGORITHMS[0]).upper()
    if alg not in _ALGORITHMS:
        raise UsageError(command=context.usage.name, cause=f"`--alg` takes one of {', '.join(_ALGORITHMS)}")
    daemon = context.daemon()
    lease = find_lease(context, daemon, context.arguments.get("lease"))
    return _print(context, daemon.call("POST", f"/v1/leases/{lease}/keys", {"alg": alg}))


def revoke(context: Context) -> int:
    """Accept nothing more that this key has signed."""
    daemon = context.daemon()
    lease = find_lease(context, daemon, context.arguments.get("lease"))
    kid = context.arguments.operands[0]
    return _print(context, daemon.call("DELETE", f"/v1/leases/{lease}/keys/{_escape(kid)}"))


def _print(context: Context, answer: dict[str, Json]) -> int:
    if context.show.is_json:
        context.show.data(answer)
        return 0
    keys = answer["keys"]
    rows = [
        [str(key["kid"]), str(key["alg"]), "signs" if key["signs"] else "verifies"]
        for key in (keys if isinstance(keys, list) else [])
        if isinstance(key, dict)
    ]
    context.show.table(["KEY", "ALGORITHM", "STATE"], rows)
    return 0


def _escape(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


_LEASE = Flag("lease", "Which one, by id or label, if there are several.", "LEASE")
USAGE = {
    "list": (Usage("toft keys list", "List the keys that sign and verify tokens.", (_LEASE,)), list_all),
    "rotate": (
        Usage(
            "toft keys rotate",
            "Sign with a new key from now on; tokens of the old ones stay valid until `revoke`.",
            (Flag("alg", "ES256 (default), RS256 or HS256.", "ALG"), _LEASE),
        ),
        rotate,
    ),
    "revoke": (
        Usage(
            "toft keys revoke",
            "Accept nothing more that a key has signed.",
            (_LEASE,),
            "KEY",
            least=1,
            most=1,
        ),
        revoke,
    ),
}
