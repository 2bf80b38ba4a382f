"""What the user reads: data on stdout, everything else on stderr, one line each.

`error: …` and `hint: …`, `warning: …`, `note: …`; with `--json` the same as JSON objects, one a line.
"""

from __future__ import annotations

import sys

from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toft.errors.shape import ToftError


class Show:
    """Where a command's words go."""

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json

    def error(self, error: ToftError) -> None:
        """A failure and what to do about it."""
        if self.is_json:
            self._aside(plain_json.encode({"error": error.to_json()}).decode())
        else:
            self._aside(f"error: {error}")
            if error.context:
                self._aside(error.context)
            self._aside(f"hint: {error.hint}")

    def warning(self, text: str) -> None:
        """Something that the user can and should act on."""
        self._say("warning", text)

    def note(self, text: str) -> None:
        """Something good to know."""
        self._say("note", text)

    def progress(self, text: str) -> None:
        """What happens while one waits: for people, so only on a terminal, and for `--json`."""
        if self.is_json or sys.stderr.isatty():
            self._say("progress", text)

    def _say(self, kind: str, text: str) -> None:
        self._aside(plain_json.encode({kind: text}).decode() if self.is_json else f"{kind}: {text}")

    def _aside(self, line: str) -> None:
        try:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody is there to read it

    def data(self, value: object) -> None:
        """The answer as JSON."""
        sys.stdout.write(plain_json.encode(value).decode() + "\n")

    def text(self, text: str) -> None:
        """The answer as it is."""
        sys.stdout.write(text)

    def flush(self) -> None:
        """Let what was answered so far be seen, also by who reads it through a pipe."""
        sys.stdout.flush()

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """The answer in columns as wide as their content."""
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
            sys.stdout.write("  ".join(cells).rstrip() + "\n")

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """The answer as names and values, one a line."""
        width = max(len(name) for name, _ in facts)
        for name, value in facts:
            sys.stdout.write(f"{name:{width}}  {value}\n")
