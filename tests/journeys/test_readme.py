"""README and CONTRIBUTING tell of commands that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from toft.cli import argv
from toft.cli.main import COMMANDS, find_command

REPOSITORY = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "AGENTS.md", "examples/todos/README.md")


def toft_lines() -> list[str]:
    """Every `toft …` that stands in a code block of a page."""
    found: list[str] = []
    for page in PAGES:
        for line in (REPOSITORY / page).read_text().splitlines():
            match = re.match(r"^    (?:eval \"\$\()?(toft [^#)]*)", line)
            if match:
                found.append(match[1].strip())
    return found


def test_setup_commands_stand_first() -> None:
    """The first block of commands in README is `make demo` and `make test`."""
    text = (REPOSITORY / "README.md").read_text()
    commands = re.findall(r"^    (\S.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert commands[:2] == ["make demo", "make test"]


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_exists(page: str) -> None:
    """Each `make TARGET` of a page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^    )make ([a-z-]+)", (REPOSITORY / page).read_text(), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("line", toft_lines())
def test_every_call_of_toft_is_understood(line: str) -> None:
    """Each call in a page is one that `toft` understands."""
    _, name, *words = shlex.split(line)
    assert name in COMMANDS
    usage, _, rest = find_command(name, words)
    argv.parse(usage, rest)
