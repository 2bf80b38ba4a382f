"""Who asks at this door: the project's own access key, or a user's token signed with the anonymous key."""

from __future__ import annotations

import hmac

import msgspec

from toft.http.message import Request
from toft.storage.context import S3Keys, StorageContext
from toft.storage.errors import access_denied, word_token_error
from toft.storage.s3.errors import WrongSignature, unknown_key, wrong_signature
from toft.storage.s3.sigv4 import Signed, read_signed, verify
from toft.tokens.caller import Caller
from toft.tokens.identify import caller_of

_SERVICE_CLAIMS = {"role": "service_role"}


class Proven(msgspec.Struct, frozen=True):
    """A request whose signature holds. key: what else of it is signed with."""

    caller: Caller
    signed: Signed
    key: bytes


def prove(context: StorageContext, request: Request) -> Proven:
    """Who has signed this request. Raises `StorageError`."""
    signed = read_signed(request)
    for caller, secret in find_secrets(context, signed.access_key_id, signed.session_token):
        try:
            key = verify(signed, request, secret, context.clock.unix())
        except WrongSignature:
            continue
        if caller.error is not None:
            raise access_denied(word_token_error(caller.error))
        return Proven(caller, signed, key)
    raise wrong_signature()


def find_secrets(
    context: StorageContext, access_key_id: str, session_token: str | None
) -> list[tuple[Caller, str]]:
    """Whom this access key may stand for, with the secret that proves it. Raises `StorageError` for nobody.

    With a session token the token says who it is. Its secret is public, and so the key's id proves nothing
    and is not looked at: a project's name at the platform, anything here.
    """
    keys = context.s3_keys
    if session_token is not None:
        caller = caller_of(session_token, context.ring, context.clock.unix())
        return [(caller, secret) for secret in keys.anonymous_keys]
    if not hmac.compare_digest(access_key_id.encode(), keys.access_key_id.encode()):
        raise unknown_key()
    return [(service_caller(keys), keys.secret_access_key)]


def service_caller(keys: S3Keys) -> Caller:
    """Whoever has the project's access key."""
    return Caller(
        role="service_role",
        claims=_SERVICE_CLAIMS,
        claims_json=b'{"role":"service_role"}',
        token=keys.service_token,
        is_secret_key=True,
    )
