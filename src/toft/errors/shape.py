"""Pure: the shape of a Toft error, and the two ways of writing it down.

An error class fixes its code, HTTP status, message and remedy as templates; whoever raises one gives
only the facts that fill them, so that no sentence is built at the place of the fault.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    type Fact = str | int | float | bool | None

#: `toft run` keeps the command's own exit status; failures of Toft itself use the shells' reserved ones.
EXIT_TOFT_FAILED = 125
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127


class ToftError(Exception):
    """A failure that a user can act on.

    Subclasses set `code` (stable, `TOFT-NOUN-WHAT`), `status` (HTTP), `message` and `remedy` (templates
    over the facts given by keyword) and, rarely, `exit_status`.
    """

    code: ClassVar[str] = "TOFT-INTERNAL"
    status: ClassVar[int] = 500
    exit_status: ClassVar[int] = EXIT_TOFT_FAILED
    message: ClassVar[str] = "something went wrong inside Toft: {cause}"
    remedy: ClassVar[str] = "look at `toft daemon logs`, and report it with that output"

    by_code: ClassVar[dict[str, type[ToftError]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        known = ToftError.by_code.setdefault(cls.code, cls)
        if known.__qualname__ != cls.__qualname__:
            raise TypeError(f"error code {cls.code} is defined twice")

    def __init__(self, **facts: Fact) -> None:
        self.facts = facts
        super().__init__(self.message.format(**facts))

    @property
    def hint(self) -> str:
        """What the user can do about it, one sentence."""
        return self.remedy.format(**self.facts)

    @property
    def context(self) -> str:
        """Lines that show where it happened, for people; empty for most errors."""
        return ""

    def to_json(self) -> dict[str, object]:
        """The problem+json members (RFC 9457) plus `code`, `remedy` and `facts`."""
        return {
            "type": f"https://toft.dev/errors/{self.code}",
            "title": str(self),
            "status": self.status,
            "code": self.code,
            "remedy": self.hint,
            "facts": self.facts,
        }


#: of errors that nobody expected
ToftError.by_code[ToftError.code] = ToftError


def from_json(problem: dict[str, object]) -> ToftError:
    """Turn problem+json back into the class that made it; an unknown code becomes a plain `ToftError`.

    The catalogue must have been imported for the look-up to find every class.
    """
    facts = problem.get("facts")
    known = ToftError.by_code.get(str(problem.get("code")))
    if known is not None and isinstance(facts, dict):
        try:
            return known(**facts)  # pyright: ignore[reportUnknownArgumentType] -- JSON; a wrong fact fails to format
        except (KeyError, IndexError):
            pass
    return ToftError(cause=str(problem.get("title", "unknown error")))
