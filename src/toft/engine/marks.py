"""Passwords of their own for clones, without a server: they are written where the template's verifiers lie.

A template gives each login role a verifier and remembers where in its pack that lies. All verifiers are as
long as each other, and the pages have no checksums, so a clone's are put in their place as it is unpacked: no
clone ever runs with a password of its template, and none has to be started to be given another.
"""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from toft.engine.bootstrap import SUPERUSER
from toft.engine.pack import Index
from toft.pg.connection import Connection
from toft.pg.quote import identifier, literal
from toft.pg.scram import verifier
from toft.world import Entropy

#: Login roles: every backend has a password of its own for each.
ROLES = (SUPERUSER, "postgres", "authenticator", "supabase_auth_admin", "supabase_storage_admin")

#: One is sound for passwords that nobody could guess at any speed.
_ITERATIONS = 1
#: Where shared catalogs lie. The log has verifiers too, which nobody reads again after a clean stop.
_SHARED = "global/"


def make_verifier(password: str, salt: bytes) -> str:
    """What a role's record says of a password that Toft drew itself."""
    return verifier(password, salt, _ITERATIONS)


async def lock(admin: Connection, password: str) -> dict[str, str]:
    """Give the superuser this password and the other login roles one that nobody knows; role → verifier."""
    verifiers: dict[str, str] = {}
    for role in ROLES:
        known = password if role == SUPERUSER else secrets.token_urlsafe(24)
        verifiers[role] = make_verifier(known, secrets.token_bytes(16))
    statements = [
        f"alter role {identifier(role)} password {literal(text)}" for role, text in verifiers.items()
    ]
    await admin.script(";".join(statements))
    return verifiers


def find_marks(packed: Path, index: Index, verifiers: Mapping[str, str]) -> dict[str, list[int]]:
    """Role → where in the pack its verifier lies. Raises LookupError with a role that has none there.

    When the server tidies a page up, a copy that nobody reads may stay behind in its free space.
    """
    marks: dict[str, list[int]] = {}
    with packed.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        for role, text in verifiers.items():
            marks[role] = [
                found
                for name, offset, used, _ in index.files
                if name.startswith(_SHARED)
                for found in _find_all(content, text.encode(), offset, offset + used)
            ]
            if not marks[role]:
                raise LookupError(role)
    return marks


def _find_all(content: mmap.mmap, wanted: bytes, start: int, end: int) -> Iterator[int]:
    while (start := content.find(wanted, start, end)) >= 0:
        yield start
        start += len(wanted)


def draw_patches(
    marks: Mapping[str, Sequence[int]], passwords: Mapping[str, str], entropy: Entropy
) -> list[tuple[int, bytes]]:
    """What to write where in the pack's content, so that a clone has these passwords."""
    patches: list[tuple[int, bytes]] = []
    for role, password in passwords.items():
        text = make_verifier(password, entropy.bytes(16)).encode()
        patches += [(at, text) for at in marks[role]]
    return patches
