"""What `toft run` imports: as little as it can, since every module is paid for at every start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.fix_cli import plain_environment
from tests.kit.small_daemon import SmallDaemon

#: The standard library's modules of the quick path: C modules, and nothing that is made of many.
STANDARD = {"__future__", "_json", "_sha2", "_socket", "binascii", "errno", "fcntl", "select"}
OWN = {
    "toft",
    "toft.cli",
    "toft.cli.argv",
    "toft.cli.child",
    "toft.cli.commands",
    "toft.cli.commands.run",
    "toft.cli.context",
    "toft.cli.main",
    "toft.cli.show",
    "toft.cli.wish",
    "toft.client",
    "toft.client.backend",
    "toft.client.hold",
    "toft.client.launch",
    "toft.client.project",
    "toft.client.raises",
    "toft.client.response",
    "toft.client.transport",
    "toft.errors",
    "toft.errors.daemon",
    "toft.errors.project",
    "toft.errors.setting",
    "toft.errors.shape",
    "toft.protocol",
    "toft.protocol.bundle",
    "toft.protocol.environment",
    "toft.protocol.plain_json",
    "toft.settings",
}
#: `lease` and `psql` besides
OTHERS = {
    "toft.cli.commands.lease",
    "toft.cli.commands.psql",
    "toft.cli.leases",
    "toft.errors.lease",
}
CONFIG = """
project_id = "example"
[db.seed]
enabled = true
sql_paths = ["./seed.sql"]
[auth.sms.twilio]
auth_token = "env(SUPABASE_AUTH_SMS_TWILIO_AUTH_TOKEN)"
"""


def modules(cli_daemon: SmallDaemon, folder: Path, *words: str) -> set[str]:
    """The modules that a call of `toft` loads on top of what Python itself has."""
    code = (
        "import os, sys; before = set(sys.modules)\n"
        "from toft.cli.main import main\n"
        f"status = main({list(words)!r})\n"
        "os.write(2, ' '.join(sorted(set(sys.modules) - before)).encode())\n"
        "sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env=plain_environment(cli_daemon.environment()),
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def project(folder: Path) -> Path:
    """A project as `supabase init` leaves it, with a migration and a `.env` file."""
    (folder / "supabase" / "migrations").mkdir(parents=True)
    (folder / "supabase" / "config.toml").write_text(CONFIG)
    (folder / "supabase" / "migrations" / "1_a.sql").write_text("select 1;")
    (folder / ".env.local").write_text("NEXT_PUBLIC_SITE=x\n")
    return folder


def test_run_imports_nothing_but_the_list(cli_daemon: SmallDaemon, project: Path) -> None:
    """`toft run` in a project that the daemon has seen loads the modules of the list above, and no other."""
    modules(cli_daemon, project, "run", "--", "true")
    loaded = modules(cli_daemon, project, "run", "--", "true")
    assert sorted(loaded - STANDARD - OWN) == []


@pytest.mark.parametrize(
    "words", ["lease list", "lease env", "lease show --json", "lease create", "lease release"]
)
def test_lease_imports_nothing_but_the_list(cli_daemon: SmallDaemon, project: Path, words: str) -> None:
    """So do the `lease` commands."""
    modules(cli_daemon, project, "run", "--", "true")
    loaded = modules(cli_daemon, project, *words.split())
    assert sorted(loaded - STANDARD - OWN - OTHERS) == []


def test_toft_itself_imports_no_command(cli_daemon: SmallDaemon, folder: Path) -> None:
    """The overview is printed without loading any command."""
    loaded = modules(cli_daemon, folder, "--help")
    assert not [name for name in loaded if name.startswith(("toft.cli.commands", "toft.client"))]
