"""Pure, given the time: who a bearer's token says that they are, for a Data API that stands alone.

Upstream's rules: a plain secret checks HS256 only; a JWK, or each of a set, checks the algorithms of its
kind; a `kid` in the token narrows the choice. What counts as the role is found by a path into the claims.
"""

from __future__ import annotations

import base64
import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from toft.rest.errors import anonymous_disabled, no_jwt_secret
from toft.tokens.caller import Caller, TokenError, TokenFault
from toft.tokens.jwt import check_times, read_header

LEEWAY_SECONDS: Final = 30
#: the shortest secret that upstream starts with
SHORTEST_SECRET: Final = 32

_ALGORITHMS: Final = {
    "oct": ("HS256", "HS384", "HS512"),
    "RSA": ("RS256", "RS384", "RS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
_KINDS: Final[dict[str, type[OctKey | RSAKey | ECKey | OKPKey]]] = {
    "oct": OctKey,
    "RSA": RSAKey,
    "EC": ECKey,
    "OKP": OKPKey,
}
_ALL: Final = tuple(name for names in _ALGORITHMS.values() for name in names)
_registry = jws.JWSRegistry(algorithms=list(_ALL), strict_check_header=False)


class BadSecret(ValueError):
    """The configured secret cannot be used."""


class _VerifyingKey:
    """A key, the algorithms that it checks, and its name if it has one."""

    def __init__(self, key: Key, algorithms: Sequence[str], kid: str | None) -> None:
        self.key = key
        self.algorithms = algorithms
        self.kid = kid


def read_keys(secret: str, *, is_base64: bool) -> list[_VerifyingKey]:
    """The keys that a configured secret stands for: itself, a JWK, or a JWK set. Raises `BadSecret`."""
    if is_base64:
        padded = secret.strip().replace(".", "=").rstrip("=")
        try:
            raw = base64.b64decode(
                padded + "=" * (-len(padded) % 4), altchars=b"-_" if _is_url(padded) else None
            )
        except ValueError:
            raise BadSecret("jwt-secret is not base64") from None
    else:
        raw = secret.encode()
    jwk = _as_json(raw)
    if jwk is None:
        if len(raw) < SHORTEST_SECRET:
            raise BadSecret("The JWT secret must be at least 32 characters long.")
        return [_VerifyingKey(OctKey.import_key(raw), ("HS256",), None)]
    keys = cast("list[dict[str, Any]]", jwk["keys"]) if "keys" in jwk else [jwk]
    return [key for item in keys if (key := _import(item)) is not None]


def _is_url(text: str) -> bool:
    return "-" in text or "_" in text


def _as_json(raw: bytes) -> dict[str, Any] | None:
    try:
        decoded = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else None


def _import(jwk: dict[str, Any]) -> _VerifyingKey | None:
    """None for a key of a kind that is not known here: others of the set may still do."""
    kind, alg, kid = jwk.get("kty"), jwk.get("alg"), jwk.get("kid")
    if not isinstance(kind, str) or kind not in _KINDS:
        return None
    bare = {name: value for name, value in jwk.items() if name not in {"use", "key_ops", "ext", "alg", "kid"}}
    algorithms = (alg,) if isinstance(alg, str) and alg in _ALL else _ALGORITHMS[kind]
    return _VerifyingKey(_KINDS[kind].import_key(bare), algorithms, kid if isinstance(kid, str) else None)


class Bearers:
    """Judges tokens by the keys, the audience and the role path of one configuration."""

    def __init__(
        self,
        keys: Sequence[_VerifyingKey] | None,
        *,
        anon_role: str | None,
        audience: str | None,
        role_path: RolePath,
        kept: int,
    ) -> None:
        self._keys = keys
        self._anon_role = anon_role
        self._audience = audience
        self._role_path = role_path
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._max_kept = kept
        self.looked_at = self.hits = self.evictions = 0

    def identify(self, authorization: str | None, now: float) -> Caller:
        """Who bears this Authorization header. Raises PGRST300 and PGRST302."""
        token = _bearer(authorization)
        if token is None:
            if self._anon_role is None:
                raise anonymous_disabled()
            return self._caller({}, None)
        if self._keys is None:
            raise no_jwt_secret()
        try:
            claims = self._verified(token)
            # Upstream counts in whole seconds.
            check_times(claims, float(int(now)), LEEWAY_SECONDS + 1)
            self._check_audience(claims.get("aud"))
        except TokenError as error:
            return Caller(role="", claims={}, claims_json=b"{}", token=token, error=error)
        return self._caller(claims, token)

    def _caller(self, claims: dict[str, Any], token: str | None) -> Caller:
        role = find_role(claims, self._role_path) or self._anon_role
        if role is None:
            raise anonymous_disabled()
        claims = {**claims, "role": role}
        return Caller(role=role, claims=claims, claims_json=msgspec.json.encode(claims), token=token)

    def _verified(self, token: str) -> dict[str, Any]:
        claims = self._kept.get(token)
        self.looked_at += 1
        if claims is not None:
            self.hits += 1
            self._kept.move_to_end(token)
            return claims
        claims = self._open(token)
        if self._max_kept > 0:
            self._kept[token] = claims
            while len(self._kept) > self._max_kept:
                self._kept.popitem(last=False)
                self.evictions += 1
        return claims

    def _open(self, token: str) -> dict[str, Any]:
        header = read_header(token)
        alg, kid = header.get("alg"), header.get("kid")
        if not isinstance(alg, str) or alg.lower() == "none":
            raise TokenError(TokenFault.UNSECURED)
        if alg not in _ALL:
            raise TokenError(TokenFault.CRYPTO, "header")
        named = [key for key in self._keys or () if not isinstance(kid, str) or key.kid == kid]
        fitting = [key for key in named if alg in key.algorithms]
        if not fitting:
            raise TokenError(TokenFault.NO_KEY, "kid")
        for candidate in fitting:
            try:
                payload = jws.deserialize_compact(token, candidate.key, registry=_registry).payload
            except JoseError:
                continue
            except (ValueError, TypeError):
                raise TokenError(TokenFault.CRYPTO, "signature") from None
            claims = _as_json(payload)
            if claims is None:
                raise TokenError(TokenFault.CLAIMS)
            return claims
        raise TokenError(TokenFault.NO_KEY, "signature")

    def _check_audience(self, given: object) -> None:
        """Its type was looked at with the times."""
        if self._audience is None or given is None or given == []:
            return
        offered = cast("list[str]", given) if isinstance(given, list) else [given]
        if self._audience not in offered:
            raise TokenError(TokenFault.AUDIENCE, "aud")


def _bearer(authorization: str | None) -> str | None:
    if authorization is None:
        return None
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


# --- the role's place in the claims ---------------------------------------------------------------------


class Match(msgspec.Struct, frozen=True):
    """The first text of an array that compares so with `text`."""

    operator: str
    text: str


type RolePath = tuple[str | int | Match, ...]

_STEP: Final = re.compile(
    r'\.(?P<name>[A-Za-z0-9_$@]+)|\."(?P<quoted>[^"]*)"|\[(?P<index>[0-9]+)\]'
    r'|\[\?\(@\s*(?P<operator>==\^|==|!=|\^==|\*==)\s*"(?P<text>[^"]*)"\)\]$'
)


def parse_role_path(text: str) -> RolePath:
    """`.a."b c"[0]`, perhaps ending in `[?(@ == "text")]`. Raises `BadSecret` for what is no path.

    >>> parse_role_path('.realm.roles[?(@ ^== "app_")]')
    ('realm', 'roles', Match(operator='^==', text='app_'))
    """
    # The newer spelling begins with the root.
    text = text.removeprefix("$")
    path: list[str | int | Match] = []
    at = 0
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise BadSecret(f"jwt-role-claim-key cannot be read: {text}")
        if step["index"] is not None:
            path.append(int(step["index"]))
        elif step["operator"] is not None:
            path.append(Match(step["operator"], step["text"]))
        else:
            path.append(step["name"] if step["name"] is not None else step["quoted"])
        at = step.end()
    return tuple(path)


def find_role(claims: dict[str, Any], path: RolePath) -> str | None:
    """The value at the path; what is no text is its JSON."""
    here: Any = claims
    for step in path:
        match step:
            case Match():
                here = _first_match(here, step)
            case int() if isinstance(here, list):
                items = cast("list[Any]", here)
                here = items[step] if step < len(items) else None
            case str() if isinstance(here, dict):
                here = cast("dict[str, Any]", here).get(step)
            case _:
                here = None
        if here is None:
            return None
    return here if isinstance(here, str) else msgspec.json.encode(here).decode()


def _first_match(value: Any, wanted: Match) -> str | None:
    texts = (
        [text for text in cast("list[Any]", value) if isinstance(text, str)]
        if isinstance(value, list)
        else []
    )
    return next((text for text in texts if _fits(text, wanted)), None)


def _fits(text: str, wanted: Match) -> bool:
    match wanted.operator:
        case "==":
            return text == wanted.text
        case "!=":
            return text != wanted.text
        case "^==":
            return text.startswith(wanted.text)
        case "==^":
            return text.endswith(wanted.text)
        case _:
            return wanted.text in text
