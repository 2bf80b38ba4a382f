"""SCRAM: the RFC's own conversation, and servers that lie."""

from __future__ import annotations

import base64

import pytest

from toft.pg.login import Login, LoginRefused
from toft.pg.scram import ScramClient, ScramFailed, verifier

# RFC 7677, section 3. Its messages name a user; Postgres and we leave the name empty, so the proofs differ.
NONCE = base64.b64decode("rOprNGfwEbeRWgbNEkqO")
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="


def test_verifier_of_known_password() -> None:
    """The verifier is the one that Postgres itself stores for this password, salt and count."""
    assert verifier("pencil", base64.b64decode(SALT), 4096) == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"
        "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


def challenge(nonce: str, iterations: str = "4096", salt: str = SALT) -> bytes:
    return f"r={nonce},s={salt},i={iterations}".encode()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff\xfe",
        challenge("stranger"),
        challenge("rOprNGfwEbeRWgbNEkqO"),
        challenge("rOprNGfwEbeRWgbNEkqOmore", iterations="0"),
        challenge("rOprNGfwEbeRWgbNEkqOmore", iterations="99999999"),
        challenge("rOprNGfwEbeRWgbNEkqOmore", iterations="x"),
        challenge("rOprNGfwEbeRWgbNEkqOmore", salt="!"),
    ],
)
def test_bad_challenge(said: bytes) -> None:
    """A malformed challenge, a foreign nonce and absurd costs are refused."""
    client = ScramClient("pencil", NONCE)
    client.first()
    with pytest.raises(ScramFailed):
        client.reply(said)


def test_server_must_prove_itself() -> None:
    """A server that does not know the verifier is not believed, nor one that skips its proof."""
    login = Login("me", "pencil", NONCE)
    assert login.reply(b"\0\0\0\x0aSCRAM-SHA-256\0\0") is not None
    assert login.reply(b"\0\0\0\x0b" + challenge("rOprNGfwEbeRWgbNEkqOmore")) is not None
    with pytest.raises(LoginRefused):
        login.reply(b"\0\0\0\0")
    with pytest.raises(LoginRefused):
        login.reply(b"\0\0\0\x0cv=" + base64.b64encode(b"x" * 32))


def test_unknown_method() -> None:
    """A log-in method that we do not speak is refused in words."""
    with pytest.raises(LoginRefused, match="method"):
        Login("me", "pencil", NONCE).reply(b"\0\0\0\x07")


def test_no_password_in_repr() -> None:
    """Neither the conversation nor its state prints the password."""
    login = Login("me", "pencil", NONCE)
    login.reply(b"\0\0\0\x0aSCRAM-SHA-256\0\0")
    assert "pencil" not in repr(login) + repr(ScramClient("pencil", NONCE))
