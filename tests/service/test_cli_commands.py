"""The commands that show and change leases, options and the daemon, as processes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.kit.fix_cli import Toft
from tests.kit.small_daemon import SmallDaemon
from toft import __version__
from toft.protocol import environment

LEASE_ID = "lease_0123456789abcdef"


def test_create_prints_the_lease_and_keeps_secrets_off_the_screen(
    toft: Toft, cli_daemon: SmallDaemon
) -> None:
    """People see where the backend is; JSON has everything, the credential included."""
    done = toft("lease", "create", "--ttl", "5m", "--label", "mine")
    assert LEASE_ID in done.stdout
    assert not [
        secret for secret in ("pass-word", "service-role-key", "credential-1") if secret in done.stdout
    ]
    message = json.loads(cli_daemon.wait_for("POST", "/v1/leases")[0])
    assert (message["hold"], message["ttl_seconds"], message["label"]) == (False, 300, "mine")
    assert json.loads(toft("lease", "create", "--json").stdout) == cli_daemon.lease


@pytest.mark.parametrize("words", [["dotenv"], ["shell"], ["json"]])
def test_env_has_every_variable(toft: Toft, cli_daemon: SmallDaemon, words: list[str]) -> None:
    """Each format carries all variables."""
    text = toft("lease", "env", "--format", *words).stdout
    values = environment.variables(cli_daemon.lease)
    assert all(name in text and value in text for name, value in values.items())


def test_lease_is_found_by_id_label_or_place(toft: Toft, cli_daemon: SmallDaemon) -> None:
    """An id, a label, the surrounding `toft run`, or nothing when there is only one."""
    cli_daemon.lease["label"] = "mine"
    for words, environ in (
        ([LEASE_ID], {}),
        (["mine"], {}),
        ([], {}),
        ([], {"TOFT_INSTANCE_ID": LEASE_ID}),
    ):
        assert toft("lease", "release", *words, **environ).stdout == f"{LEASE_ID} released\n"
    done = toft("lease", "show", "other")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.splitlines() == [
        "error: there is no live lease `other`",
        "hint: `toft lease list` shows the live ones",
    ]


def test_renew_says_until_when(toft: Toft, cli_daemon: SmallDaemon) -> None:
    """The new time to live goes to the daemon, with a credential where one was given."""
    assert "lives until" in toft("lease", "renew", "--ttl", "1h", "--credential", "c").stdout
    [body] = cli_daemon.wait_for("POST", f"/v1/leases/{LEASE_ID}/renew")
    assert json.loads(body) == {"ttl_seconds": 3600, "credential": "c"}


def test_list_is_a_table(toft: Toft) -> None:
    """One line a lease under a head."""
    head, line = toft("lease", "list").stdout.splitlines()
    assert head.split() == ["LEASE", "LABEL", "STATE", "HELD", "EXPIRES", "URL"]
    assert line.split()[0] == LEASE_ID


@pytest.mark.skipif(shutil.which("psql") is None, reason="no psql on this machine")
def test_psql_takes_our_place(toft: Toft) -> None:
    """What follows `--` goes to psql, whose status is ours."""
    assert toft("psql", "--", "--version").stdout.startswith("psql (PostgreSQL)")
    assert toft("psql", "--", "--no-such-option").returncode == 1


def test_config_tells_value_and_origin(toft: Toft) -> None:
    """Every option with its value, its origin and its variable."""
    shown = json.loads(toft("config", "show", "--json", TOFT_POOL_SIZE="7").stdout)["options"]
    by_name = {option["name"]: option for option in shown}
    assert (by_name["pool_size"]["value"], by_name["pool_size"]["origin"]) == (7, "TOFT_POOL_SIZE")
    assert by_name["ttl"]["origin"] == "default"
    assert "pool_size = 7    (TOFT_POOL_SIZE)" in toft("config", "show", TOFT_POOL_SIZE="7").stdout


def test_unknown_variable_is_a_warning(toft: Toft) -> None:
    """A misspelt TOFT_ variable is told and nothing else happens."""
    done = toft("version", TOFT_POOLSIZE="7")
    assert (done.returncode, done.stdout) == (0, f"toft {__version__}\n")
    assert done.stderr == "warning: there is no option for the variable `TOFT_POOLSIZE`\n"


def test_daemon_status_tells_both_ways(toft: Toft, cli_daemon: SmallDaemon, tmp_path: Path) -> None:
    """0 and who it is, or 3 and that there is none; asking starts nothing."""
    running = toft("daemon", "status", "--json")
    assert (running.returncode, json.loads(running.stdout)["pid"]) == (0, os.getpid())
    stopped = toft("daemon", "status", TOFT_RUN=str(tmp_path / "none"), TOFT_HOME=str(tmp_path / "home"))
    assert stopped.returncode == 3
    assert "no daemon is running" in stopped.stdout
    assert not (tmp_path / "home").exists()


def test_other_version_of_the_daemon_is_told(toft: Toft, cli_daemon: SmallDaemon) -> None:
    """When the daemon refuses our version, the user learns what to do."""
    cli_daemon.problem = {
        "code": "TOFT-DAEMON-VERSION",
        "status": 409,
        "facts": {"client": __version__, "daemon": "9.9.9"},
    }
    done = toft("lease", "create")
    assert done.returncode == 125
    assert "the running daemon is 9.9.9" in done.stderr
    assert "hint: `toft daemon stop && toft daemon start`" in done.stderr


def test_unknown_words_are_usage_errors(toft: Toft) -> None:
    """A command that is not there exits 2 with a hint."""
    for words in (["leese"], ["lease", "take"], ["daemon", "status", "now"]):
        done = toft(*words)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 2)
    assert toft().returncode == 2
    assert toft("--version").stdout == f"toft {__version__}\n"


def test_nonsense_from_the_daemon_is_one_line(
    toft: Toft, cli_daemon: SmallDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that answers nonsense, or closes, gives an error line and no traceback."""
    for answer in (b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{]}"):

        def handle(call, answer: bytes = answer) -> bool:
            call.sock.sendall(answer)
            return False

        monkeypatch.setattr(cli_daemon, "handle", handle)
        done = toft("lease", "list")
        assert done.returncode == 125
        assert done.stderr.startswith(("error: the daemon does not answer: ", "error: the daemon went away "))
        assert len(done.stderr.splitlines()) == 2
