"""The house keeps its own rules: pure rooms are pure, doors are plain, errors help, docs are fresh."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import toft
from toft.errors import catalogue
from toft.errors.shape import ToftError

ROOT = Path(toft.__file__).parent
REPOSITORY = Path(__file__).parents[2]
MODULES = sorted(ROOT.rglob("*.py"))
#: What a module that calls itself pure may not touch: the world outside.
IMPURE = (
    *("asyncio", "socket", "_socket", "os", "time", "random", "secrets", "subprocess", "asyncpg", "uvloop"),
    *("toft.host", "toft.http.server", "toft.pg.connection", "toft.pg.pool", "toft.pg.typed"),
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported at run time, wherever in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_pure_modules_touch_nothing(path: Path) -> None:
    """A module that says `Pure:` imports nothing that does I/O, tells the time or takes chances."""
    tree = ast.parse(path.read_text())
    if not (ast.get_docstring(tree) or "").startswith("Pure:"):
        return
    touched = {
        name
        for name in imports(tree)
        if any(name == banned or name.startswith(banned + ".") for banned in IMPURE)
        and not name.startswith("toft.host.confine")
    }
    assert touched == set()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_says_why_it_is(path: Path) -> None:
    """Every module has a docstring; a room's own file holds nothing else, in ten lines at most."""
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    if path.name == "__init__.py" and path.parent.parent == ROOT:
        assert len(tree.body) == 1
        assert len((ast.get_docstring(tree) or "").splitlines()) <= 10


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_settings_reads_the_environment(path: Path) -> None:
    """`os.environ` stands in settings.py alone."""
    if name_of(path) == "settings.py":
        return
    text = path.read_text()
    assert "os.environ" not in text
    assert "os.getenv" not in text


@pytest.mark.parametrize("code", sorted(ToftError.by_code))
def test_every_error_helps(code: str) -> None:
    """Each error has a code of our form, a message without a full stop, and a remedy."""
    assert catalogue.__all__
    error = ToftError.by_code[code]
    assert code.startswith("TOFT-")
    assert not error.message.endswith(".")
    assert error.remedy
    assert 400 <= error.status < 600


def test_reference_pages_are_fresh() -> None:
    """docs/reference says what the code says."""
    script = REPOSITORY / "tools" / "reference.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_path_of_a_machine_in_the_repository() -> None:
    """No tracked file names a folder of the machine that it was written on, or a registry's host."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    words = [
        "/".join(("", "work", "")),
        "/".join(("", "root", ".pyenv")),
        "registry." + "npmjs",
        "files." + "pythonhosted",
    ]
    for name in filter(None, listed.stdout.split("\0")):
        path = REPOSITORY / name
        if path.is_file():
            raw = path.read_bytes()
            assert not [word for word in words if word.encode() in raw], name
