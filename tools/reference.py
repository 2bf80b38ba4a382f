"""Write docs/reference/ from the code: commands, options, errors, environment variables.

`--check` writes nothing and fails when a page is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from toft import settings
from toft.cli import main as cli
from toft.cli.argv import Usage
from toft.errors import catalogue
from toft.errors.shape import ToftError
from toft.protocol import environment

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- made by tools/reference.py from the code; `make generate` rebuilds it -->\n"


def usages(name: str) -> list[Usage]:
    """The usages of a command, one for each of its words."""
    module = f"toft.cli.commands.{name.replace('-', '_')}"
    __import__(module)
    usage = sys.modules[module].USAGE
    return [usage] if isinstance(usage, Usage) else [one for one, _ in usage.values()]


def commands() -> Iterator[str]:
    """docs/reference/cli.md"""
    yield "# Commands"
    yield f"```text\n{cli.overview()}```"
    yield (
        "A failure is `error: …` and `hint: …` on stderr, or with `--json` one JSON object there. "
        "`toft run` and `toft psql` exit with the status of what they run; their own failures are 125 (Toft "
        "failed), 126 (the command cannot be executed) and 127 (it was not found). Other commands exit with "
        "125 too, and with 2 when they were called wrongly."
    )
    for name in cli.COMMANDS:
        for usage in usages(name):
            yield f"## {usage.name}"
            yield f"```text\n{usage.help()}```"


def options() -> Iterator[str]:
    """docs/reference/settings.md"""
    yield "# Settings"
    yield (
        "A flag wins over the variable, that over `config.toml` in the Toft home, that over the default. "
        "`toft config show` tells what counts here and why."
    )
    rows = ["| option | variable | takes | default | |", "| --- | --- | --- | --- | --- |"]
    for option in settings.options():
        default = "depends on the machine" if callable(option.default) else option.default
        takes = option.takes.replace("|", "\\|")
        shown = "" if default is None else default
        rows.append(f"| `{option.name}` | `{option.env}` | {takes} | {shown} | {option.prose} |")
    yield "\n".join(rows)


def errors() -> Iterator[str]:
    """docs/reference/errors.md"""
    yield "# Errors"
    yield (
        "Each error has a stable code. The control API answers it as problem+json with the status below; the "
        "CLI prints message and remedy. Words in braces are filled in."
    )
    assert catalogue.__all__  # importing it has defined them all
    for code, error in sorted(ToftError.by_code.items()):
        yield f"## {code}"
        yield f"{error.message}\n\n*Remedy:* {error.remedy}"
        yield f"HTTP {error.status}, exit status {error.exit_status}"


def variables() -> Iterator[str]:
    """docs/reference/environment.md"""
    yield "# Environment of a command"
    yield (
        "`toft run` sets these for its command, `toft lease env` prints them. Secret ones never have a name "
        "that a bundler copies into browser code. Taken away from what the command would inherit: "
        + ", ".join(f"`{name}`" for name in environment.REMOVED)
        + "."
    )
    rows = ["| variable | what | |", "| --- | --- | --- |"]
    for name, fact in environment.NAMES.items():
        rows.append(f"| `{name}` | {fact} | {environment.FACTS[fact]} |")
    yield "\n".join(rows)


PAGES = {"cli.md": commands, "settings.md": options, "errors.md": errors, "environment.md": variables}


def main() -> int:
    """Write the pages, or compare them."""
    is_check = "--check" in sys.argv[1:]
    stale: list[str] = []
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, sections in PAGES.items():
        text = NOTE + "\n" + "\n\n".join(sections()) + "\n"
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not is_check:
                path.write_text(text)
    if is_check and stale:
        print(f"stale: docs/reference/{', '.join(stale)}; `make generate` rebuilds them", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
