"""A refusal of the daemon becomes the same exception here that was raised there."""

from __future__ import annotations

from toft.errors.daemon import DaemonUnreachable
from toft.errors.shape import ToftError, from_json
from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.protocol.plain_json import Json


def from_problem(problem: dict[str, Json]) -> ToftError:
    """The error that a problem+json object tells of."""
    from toft.errors import catalogue

    del catalogue  # it was imported to define every error, so that its code is known
    return from_json({**problem})


def from_answer(status: int, body: bytes) -> ToftError:
    """The error that an answer of this status and body tells of."""
    try:
        return from_problem(plain_json.as_object(plain_json.decode(body)))
    except ValueError:
        return DaemonUnreachable(cause=f"it answered with status {status}")
