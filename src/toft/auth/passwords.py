"""Passwords: rules, hashing and checking. The work is done by a few threads, never on the event loop.

bcrypt releases the interpreter's lock; more threads than cores would only make everybody wait longer.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import argon2
import bcrypt
import msgspec

from toft.auth.errors import AuthError, bad_request, weak_password
from toft.world import Entropy

LONGEST_BYTES = 72
SHORTEST_ALLOWED = 6

_COST = b"$2a$10$"
#: of the hashing threads: half the share of a thread that competes with them
_NICENESS = 3
_BCRYPT_ALPHABET = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE64_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO_BCRYPT = bytes.maketrans(_BASE64_ALPHABET, _BCRYPT_ALPHABET)

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = "0123456789"
_SYMBOLS = "!@#$%^&*()_+-=[]{};'\\:\"|<>?,./`~"
#: the values of `password_requirements`: at least one character of each set
_REQUIRED_SETS: dict[str, tuple[str, ...]] = {
    "": (),
    "letters_digits": (_LOWER + _UPPER, _DIGITS),
    "lower_upper_letters_digits": (_LOWER, _UPPER, _DIGITS),
    "lower_upper_letters_digits_symbols": (_LOWER, _UPPER, _DIGITS, _SYMBOLS),
}


class Rules(msgspec.Struct, frozen=True):
    """What a new password must have."""

    shortest: int = SHORTEST_ALLOWED
    required_sets: tuple[str, ...] = ()


def make_rules(minimum_length: int, requirements: str) -> Rules:
    """The rules that `[auth]` of config.toml asks for; a minimum below six is raised to six."""
    return Rules(max(minimum_length, SHORTEST_ALLOWED), _REQUIRED_SETS.get(requirements, ()))


def find_weakness(password: str, rules: Rules) -> AuthError | None:
    """Why this password would be refused, or None."""
    messages: list[str] = []
    reasons: list[str] = []
    if len(password.encode()) < rules.shortest:
        messages.append(f"Password should be at least {rules.shortest} characters.")
        reasons.append("length")
    if any(not set(password) & set(group) for group in rules.required_sets):
        sets = ", ".join(rules.required_sets)
        messages.append(f"Password should contain at least one character of each: {sets}.")
        reasons.append("characters")
    return weak_password(" ".join(messages), reasons) if reasons else None


def check_new_password(password: str, rules: Rules) -> None:
    """Raise `AuthError` for a password that may not be set."""
    if len(password.encode()) > LONGEST_BYTES:
        raise bad_request(f"Password cannot be longer than {LONGEST_BYTES} characters")
    if "\0" in password:
        raise bad_request("Password must not contain a NUL character")
    if (weakness := find_weakness(password, rules)) is not None:
        raise weakness


class PasswordWork:
    """A few threads that hash and compare. One per process, shared by all backends of a worker."""

    def __init__(self, entropy: Entropy, threads: int = 2) -> None:
        self._entropy = entropy
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="password", initializer=_step_back)
        #: what a password is compared with when there is no user, so that the time tells nothing
        self._nobody = ""

    async def hash(self, password: str) -> str:
        """A fresh bcrypt hash."""
        salt = _COST + _encode_salt(self._entropy.bytes(16))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, _hash, password, salt)

    async def matches(self, password: str, stored: str) -> bool:
        """Whether the password is the one that was hashed; never for an empty or unknown kind of hash."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, _matches, password, stored)

    async def pretend(self, password: str) -> None:
        """Spend the time of a comparison."""
        if not self._nobody:
            self._nobody = await self.hash("nobody")
        await self.matches(password, self._nobody)

    def close(self) -> None:
        """Let the threads end; work that has not begun is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _step_back() -> None:
    """This thread's work is long and can wait a little; everybody else's is short and should not."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def is_known_hash(stored: str) -> bool:
    """Whether this is a hash that a password can be compared with."""
    return stored.startswith(("$2a$", "$2b$", "$2y$", "$argon2i$", "$argon2id$"))


def _encode_salt(raw: bytes) -> bytes:
    return base64.b64encode(raw).rstrip(b"=").translate(_TO_BCRYPT)


def _hash(password: str, salt: bytes) -> str:
    return bcrypt.hashpw(password.encode(), salt).decode()


def _matches(password: str, stored: str) -> bool:
    raw = password.encode()
    if stored.startswith("$argon2"):
        try:
            return argon2.PasswordHasher().verify(stored, raw)
        except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
            return False
    if not is_known_hash(stored) or len(raw) > LONGEST_BYTES or b"\0" in raw:
        return False
    try:
        return bcrypt.checkpw(raw, stored.encode())
    except ValueError:
        return False
