"""The wheel: built from this folder, installed into an empty environment, and used there."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import fix_daemon
from tests.kit.fix_cli import plain_environment

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory, that backends' users may pass through."""
    with tempfile.TemporaryDirectory(prefix="toft-w-", dir=fix_daemon.tests_root()) as path:
        Path(path).chmod(0o711)
        yield Path(path)


def call(*words: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without this tree on its path."""
    environment = plain_environment(environ)
    del environment["PYTHONPATH"]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_wheel_works_in_an_empty_environment(place: Path, tmp_path: Path) -> None:
    """`toft run -- true` works from the wheel alone, and a purge leaves nothing of it."""
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    built = call(*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(REPOSITORY), cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("toft-*.whl")
    assert call(sys.executable, "-m", "venv", place / "venv", cwd=place).returncode == 0
    binaries = place / "venv" / "bin"
    constraints = REPOSITORY / "constraints.txt"
    installed = call(
        *(binaries / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"),
        *("--constraint", constraints, wheel),
        cwd=place,
    )
    assert installed.returncode == 0, installed.stderr

    home = {"TOFT_HOME": str(place / "home"), "TOFT_RUN": str(place / "run"), "TOFT_POOL_SIZE": "1"}
    ran = call(binaries / "toft", "run", "--", "sh", "-c", "echo $SUPABASE_URL", cwd=tmp_path, **home)
    assert (ran.returncode, ran.stdout.startswith("http://127.0.0.1:")) == (0, True), ran.stderr
    again = call(binaries / "toft", "run", "--", "true", cwd=tmp_path, **home)
    assert again.returncode == 0, again.stderr
    purged = call(binaries / "toft", "daemon", "stop", "--purge", cwd=tmp_path, **home)
    assert purged.returncode == 0, purged.stderr
    assert sorted(path.name for path in place.iterdir()) == ["venv"]
