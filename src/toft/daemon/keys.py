"""The part of the control API that is about a lease's signing keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from toft.backends import rekey
from toft.backends.context import Context
from toft.http.message import Request
from toft.protocol import keys as wire
from toft.protocol.worker import JwtKey


class KeysApi:
    """Answers with messages."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def list(self, request: Request, names: dict[str, str], message: None) -> wire.SigningKeys:
        return _cards(names["id"], rekey.keys_of(self._context, names["id"]))

    async def rotate(
        self, request: Request, names: dict[str, str], message: wire.RotateKeys
    ) -> wire.SigningKeys:
        return _cards(names["id"], await rekey.rotate(self._context, names["id"], message.alg))

    async def revoke(self, request: Request, names: dict[str, str], message: None) -> wire.SigningKeys:
        return _cards(names["id"], await rekey.revoke(self._context, names["id"], unquote(names["kid"])))

    def methods(self) -> dict[str, Any]:
        """Its routes by name."""
        return {"list_keys": self.list, "rotate_keys": self.rotate, "revoke_key": self.revoke}


def _cards(lease: str, keys: Sequence[JwtKey]) -> wire.SigningKeys:
    return wire.SigningKeys(lease, [wire.SigningKeyCard(key.kid, key.alg, key.signs) for key in keys])
