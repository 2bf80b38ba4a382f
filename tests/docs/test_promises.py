"""docs/promises.md: every promise names tests that there are."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
LINES = (REPOSITORY / "docs" / "promises.md").read_text().splitlines()
ROWS = [line.strip("|").split(" | ") for line in LINES if line.startswith("| ")]
PROMISES = [row for row in ROWS if row[-1].strip(" ") != "test"]


@cache
def functions_of(path: Path) -> set[str]:
    """The names of a file's test functions."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, functions)}


@pytest.mark.parametrize("row", PROMISES, ids=lambda row: row[0].strip())
def test_a_promise_is_held(row: list[str]) -> None:
    """A row tells fault, promise and at least one test, and each id leads to a test function."""
    fault, promise, tests = (cell.strip() for cell in row)
    assert fault
    assert promise.endswith(".")
    ids = re.findall(r"`([^`]*)`", tests)
    assert ids
    assert re.sub(r"`[^`]*`", "", tests).strip() == ""
    for test_id in ids:
        name, _, function = test_id.partition("::")
        assert function in functions_of(REPOSITORY / name), test_id


def test_every_fault_that_we_make_is_a_promise() -> None:
    """No test of tests/chaos stands aside."""
    told = "\n".join(LINES)
    for path in sorted((REPOSITORY / "tests" / "chaos").glob("test_*.py")):
        for name in functions_of(path):
            if name.startswith("test_"):
                assert f"`tests/chaos/{path.name}::{name}`" in told
