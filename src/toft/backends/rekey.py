"""Signing keys of a lease, exchanged while it lives: a new one signs, the old ones verify until revoked."""

from __future__ import annotations

import asyncio

import msgspec

from toft.backends.acts.create import secrets_of, worker_spec
from toft.backends.backend import Attachment, Backend
from toft.backends.context import Context
from toft.backends.gateway import WorkerLost
from toft.backends.keep import backend_of
from toft.errors.keys import KeyInUse, KeyNotFound
from toft.protocol.keys import KeyAlgorithm
from toft.protocol.worker import JwtKey
from toft.tokens.keys import new_signing_key


def keys_of(context: Context, lease_id: str) -> tuple[JwtKey, ...]:
    """The keys of a live lease, the newest first."""
    return secrets_of(_backend(context, lease_id)).jwt_keys


async def rotate(context: Context, lease_id: str, alg: KeyAlgorithm) -> tuple[JwtKey, ...]:
    """Sign with a new key. An RSA key takes its time to be made, so a thread makes it."""
    made = await asyncio.to_thread(new_signing_key, context.entropy, alg)
    backend = _backend(context, lease_id)
    before = (msgspec.structs.replace(key, signs=False) for key in secrets_of(backend).jwt_keys)
    keys = (JwtKey(made.kid, made.alg, made.jwk, signs=True), *before)
    await _exchange(context, lease_id, backend, keys, rotated=made.kid)
    return keys


async def revoke(context: Context, lease_id: str, kid: str) -> tuple[JwtKey, ...]:
    """Forget a key: what it has signed is refused from now on. Raises `KeyNotFound`, `KeyInUse`."""
    backend = _backend(context, lease_id)
    known = {key.kid: key for key in secrets_of(backend).jwt_keys}
    if kid not in known:
        raise KeyNotFound(lease=lease_id, kid=kid)
    if known[kid].signs:
        raise KeyInUse(kid=kid)
    keys = tuple(key for key in known.values() if key.kid != kid)
    await _exchange(context, lease_id, backend, keys, revoked=kid)
    return keys


async def _exchange(
    context: Context, lease_id: str, backend: Backend, keys: tuple[JwtKey, ...], **what: str
) -> None:
    secrets = msgspec.structs.replace(secrets_of(backend), jwt_keys=keys)
    with context.store.transaction() as tx:
        backend = context.estate.change(backend.id, tx, secrets=secrets)
        context.ledger.append(tx, "keys.changed", lease_id, **what)
    attachment = context.estate.seen(backend.id).attachment
    if attachment not in (Attachment.AWAKE, Attachment.ASLEEP):
        return  # whoever attaches it takes the new keys along
    try:
        is_awake = attachment is Attachment.AWAKE
        await context.gateway.attach(worker_spec(context, backend, is_awake=is_awake))
    except WorkerLost:
        context.estate.see(backend.id, attachment=Attachment.NONE)


def _backend(context: Context, lease_id: str) -> Backend:
    return backend_of(context, context.leases.get(lease_id))
