"""`toft run` as a process: the lease it asks for, what the command finds, what it says and how it ends."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.fix_cli import TOFT, Toft, plain_environment
from tests.kit.small_daemon import SmallDaemon, small_daemon
from toft import __version__
from toft.protocol import environment

CREATE = ("POST", "/v1/leases")
LEASE_ID = "lease_0123456789abcdef"
RENEW = ("POST", f"/v1/leases/{LEASE_ID}/renew")
HOLD = ("POST", f"/v1/leases/{LEASE_ID}/hold")


@contextmanager
def started(
    cli_daemon: SmallDaemon, folder: Path, *words: str, **environ: str
) -> Iterator[subprocess.Popen[str]]:
    """`toft` with these words, running."""
    process = subprocess.Popen(
        [*TOFT, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=plain_environment({**cli_daemon.environment(), **environ}),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=20)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


SAY_SIGNALS = """
import os, signal, sys
def say(number, _):  # not by print, which a signal may interrupt and must not enter again
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    if number in (signal.SIGTERM, signal.SIGINT): sys.exit(9)
for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGINT"):
    signal.signal(getattr(signal, name), say)
print("ready", flush=True)
while True: signal.pause()
"""


def test_command_finds_the_variables_and_toft_says_nothing_else(toft: Toft, cli_daemon: SmallDaemon) -> None:
    """stdout is the command's alone, and its environment holds every variable of the lease."""
    done = toft("run", "--", *python("import json, os; print(json.dumps(dict(os.environ)))"), KEPT="yes")
    seen = json.loads(done.stdout)
    variables = environment.variables(cli_daemon.lease)
    assert {name: seen[name] for name in variables} == variables
    assert seen["KEPT"] == "yes"
    assert (done.returncode, done.stderr) == (0, "note: no supabase/ folder here: the backend is empty\n")


def test_wish_carries_every_option(toft: Toft, cli_daemon: SmallDaemon, folder: Path) -> None:
    """Each option of `run` reaches the daemon."""
    (folder / "other").mkdir()
    words = (
        "run --ttl 10m --label mine --include-all --no-migrations --no-seed --port 4000 --db-port=4001 "
        "--migrations other true"
    )
    assert toft(*words.split()).returncode == 0
    assert json.loads(cli_daemon.wait_for(*CREATE)[-1]) == {
        "version": __version__,
        "project": json.loads(cli_daemon.calls[-1][2])["project"],
        "hold": True,
        "ttl_seconds": 600,
        "label": "mine",
        "http_port": 4000,
        "db_port": 4001,
        "include_all": True,
        "no_migrations": True,
        "no_seed": True,
        "migrations_dir": "other",
    }


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(0)", 0), ("raise SystemExit(42)", 42)])
def test_exit_status_is_the_commands(toft: Toft, code: str, status: int) -> None:
    """The command's exit status is Toft's."""
    assert toft("run", "--", *python(code)).returncode == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_death_by_signal_is_passed_up(toft: Toft, number: int) -> None:
    """A command that dies by a signal makes Toft die by the same."""
    assert toft("run", "--", "sh", "-c", f"kill -{int(number)} $$").returncode == -number


def test_missing_command_takes_no_lease(toft: Toft, cli_daemon: SmallDaemon, folder: Path) -> None:
    """127 for a command that is not there, 126 for one that cannot be run; neither costs a lease."""
    (folder / "plain").write_text("true\n")
    missing = toft("run", "--", "no-such-command-at-all")
    refused = toft("run", "--", "./plain")
    directory = toft("run", "--", "/usr")
    assert (missing.returncode, refused.returncode, directory.returncode) == (127, 126, 126)
    assert missing.stderr == (
        "error: the command `no-such-command-at-all` was not found\nhint: check its spelling and the PATH\n"
    )
    assert cli_daemon.calls == []


def test_script_without_first_line_runs_as_in_a_shell(toft: Toft, folder: Path) -> None:
    """A script without `#!` is run by sh; one whose interpreter is missing is 126."""
    script = folder / "script"
    script.write_text('echo "$1"\n')
    script.chmod(0o755)
    assert toft("run", "--", "./script", "hello").stdout == "hello\n"
    script.write_text("#!/no/such/interpreter\n")
    done = toft("run", "--", "./script")
    assert (done.returncode, "its interpreter is missing" in done.stderr) == (126, True)


def test_usage_errors_are_one_line_and_125(toft: Toft) -> None:
    """A mistake in Toft's own options is told in one line and a hint, and is no status of the command."""
    done = toft("run", "--tt", "5m", "--", "true")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == (
        "error: there is no option `--tt`; did you mean `--ttl`?\n"
        "hint: `toft run --help` shows how it is used\n"
    )
    assert toft("run").returncode == 125
    assert toft("run", "--port", "99999", "--", "true").returncode == 125
    assert toft("run", "--ttl", "soon", "--", "true").returncode == 125


def test_daemons_refusal_is_told_once(toft: Toft, cli_daemon: SmallDaemon) -> None:
    """A problem of the daemon becomes an error line and a hint; with --json, one JSON object on stderr."""
    cli_daemon.problem = {
        "code": "TOFT-PROJECT-MIGRATION",
        "status": 422,
        "title": "…",
        "facts": {
            "file": "supabase/migrations/1_a.sql",
            "line": 3,
            "text": 'relation "x" does not exist',
            "sqlstate": "42P01",
            "statement": 2,
            "advice": "create it first",
        },
    }
    done = toft("run", "--", "true")
    assert done.returncode == 125
    assert done.stderr.splitlines()[1:] == [
        'error: supabase/migrations/1_a.sql:3: relation "x" does not exist (SQLSTATE 42P01, statement 2)',
        "hint: create it first",
    ]
    as_json = json.loads(toft("run", "--json", "--", "true").stderr.splitlines()[-1])["error"]
    assert (as_json["code"], as_json["remedy"]) == ("TOFT-PROJECT-MIGRATION", "create it first")


def test_error_on_the_stream_is_told(
    toft: Toft, cli_daemon: SmallDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that comes after progress ends the run with 125."""

    def handle(call) -> bool:
        call.begin_stream()
        call.line(progress="making a template")
        call.line(error={"code": "TOFT-ENGINE-NONE", "facts": {}})
        return False

    monkeypatch.setattr(cli_daemon, "handle", handle)
    done = toft("run", "--", "true")
    assert (done.returncode, done.stderr.splitlines()[1]) == (125, "error: no usable Postgres was found")


def test_lease_ends_with_the_connection(cli_daemon: SmallDaemon, folder: Path) -> None:
    """The stream stays open while the command runs; when the CLI is killed the daemon sees it close."""
    with started(cli_daemon, folder, "run", "--", "sh", "-c", "echo ready; exec sleep 60") as process:
        assert first_line(process) == "ready"
        cli_daemon.wait_for(*CREATE)
        [hold] = cli_daemon.holds
        hold.sock.settimeout(20)
        child = int(subprocess.check_output(["pgrep", "-P", str(process.pid)], text=True))
        process.kill()
        process.wait(20)
        assert hold.sock.recv(1) == b""  # the command, still running, did not inherit it
        os.kill(child, signal.SIGKILL)


def test_command_inherits_no_descriptor(toft: Toft) -> None:
    """The command has stdin, stdout and stderr, and none of Toft's own descriptors."""
    done = toft("run", "--", *python("import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"))
    assert done.stdout == "[0, 1, 2]\n"


def test_command_has_the_callers_signals(toft: Toft) -> None:
    """No signal is blocked or ignored in the command that would not be without Toft."""
    words = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]

    def without_internal(text: str) -> list[int]:
        """Signals above 31 are left out: the C library uses two of them itself and ignores them at spawn."""
        return [int(line.split()[1], 16) & 0x7FFF_FFFF for line in text.splitlines()]

    assert without_internal(toft("run", "--", *words).stdout) == without_internal(
        subprocess.check_output(words, text=True)
    )


def test_stdin_is_the_commands(cli_daemon: SmallDaemon, folder: Path) -> None:
    """What is written to Toft's stdin reaches the command."""
    with started(cli_daemon, folder, "run", "--", "cat") as process:
        out, _ = process.communicate("through and through\n", timeout=20)
    assert out == "through and through\n"


@pytest.mark.parametrize("name", ["SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"])
def test_signals_are_passed_on(cli_daemon: SmallDaemon, folder: Path, name: str) -> None:
    """A signal sent to Toft reaches the command once; SIGTERM too, and the command's answer to it counts."""
    with started(cli_daemon, folder, "run", "--", *python(SAY_SIGNALS)) as process:
        assert first_line(process) == "ready"
        process.send_signal(getattr(signal, name))
        assert first_line(process) == name
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == ("SIGTERM\n", 9)


def test_interrupt_sent_by_a_process_is_passed_on(cli_daemon: SmallDaemon, folder: Path) -> None:
    """SIGINT that a process sends to Toft alone reaches the command."""
    with started(cli_daemon, folder, "run", "--", *python(SAY_SIGNALS)) as process:
        assert first_line(process) == "ready"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == ("SIGINT\n", 9)


def test_ignored_hangup_stays_ignored(cli_daemon: SmallDaemon, folder: Path) -> None:
    """Under nohup neither Toft nor the command dies of a hangup."""
    with started(cli_daemon, folder, "run", "--", "sh", "-c", "echo ready; read line; echo $line") as process:
        pass
    words = ["nohup", *TOFT, "run", "--", "sh", "-c", "echo ready; read line; echo $line"]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env=plain_environment(cli_daemon.environment()),
    ) as process:
        assert first_line(process) == "ready"
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate("still here\n", timeout=20)
    assert (out, process.returncode) == ("still here\n", 0)


def test_keep_on_failure_lets_go_of_the_lease(toft: Toft, cli_daemon: SmallDaemon) -> None:
    """After a failure the lease is renewed without a hold, and Toft says how to look at it."""
    done = toft("run", "--keep-on-failure", "--", "false")
    assert done.returncode == 1
    assert json.loads(cli_daemon.wait_for(*RENEW)[0]) == {
        "credential": "credential-1",
        "ttl_seconds": 1800,
        "hold": False,
    }
    assert f"toft psql {LEASE_ID}" in done.stderr


def test_keep_on_failure_keeps_nothing_after_success(toft: Toft, cli_daemon: SmallDaemon) -> None:
    """After success there is nothing to keep."""
    assert toft("run", "--keep-on-failure", "--", "true").returncode == 0
    assert all((method, path) != RENEW for method, path, _ in cli_daemon.calls)


def test_end_of_the_lease_is_told_and_the_command_goes_on(cli_daemon: SmallDaemon, folder: Path) -> None:
    """When the daemon ends the lease, Toft says so once; the command ends as it likes."""
    with started(cli_daemon, folder, "run", "--", "sh", "-c", "echo ready; read line; exit 7") as process:
        assert first_line(process) == "ready"
        cli_daemon.wait_for(*CREATE)
        cli_daemon.holds[0].line(ended="its time is over")
        assert process.stderr
        process.stderr.readline()
        said = process.stderr.readline()
        cli_daemon.close()
        _, err = process.communicate("\n", timeout=20)
    assert said == f"warning: lease {LEASE_ID} has ended (its time is over); the command goes on without it\n"
    assert (err, process.returncode) == ("", 7)


def test_hold_comes_back_after_a_restart(cli_daemon: SmallDaemon, folder: Path) -> None:
    """A daemon that was killed and is there again gets the lease's credential; nobody notices anything."""
    with started(cli_daemon, folder, "run", "--", "sh", "-c", "echo ready; read line") as process:
        assert first_line(process) == "ready"
        cli_daemon.wait_for(*CREATE)
        cli_daemon.close()
        with small_daemon(cli_daemon.home) as again:
            assert json.loads(again.wait_for(*HOLD)[0]) == {"credential": "credential-1"}
            again.holds[0].line(notice="adopted")
            assert process.stderr
            process.stderr.readline()
            assert process.stderr.readline() == "warning: adopted\n"
            _, err = process.communicate("\n", timeout=20)
    assert (err, process.returncode) == ("", 0)


def test_refused_return_is_told(cli_daemon: SmallDaemon, folder: Path) -> None:
    """A new daemon that does not know the lease any more is believed; the command goes on."""
    with started(cli_daemon, folder, "run", "--", "sh", "-c", "echo ready; read line") as process:
        assert first_line(process) == "ready"
        cli_daemon.wait_for(*CREATE)
        cli_daemon.close()
        ended = {
            "code": "TOFT-LEASE-ENDED",
            "status": 410,
            "facts": {"lease": LEASE_ID, "reason": "its backend is gone"},
        }
        with small_daemon(cli_daemon.home, ended) as again:
            again.wait_for(*HOLD)
            assert process.stderr
            process.stderr.readline()
            said = process.stderr.readline()
            process.communicate("\n", timeout=20)
    assert said == (
        f"warning: lease `{LEASE_ID}` has ended: its backend is gone;"
        " the command goes on without its backend\n"
    )
    assert process.returncode == 0


def test_daemon_that_is_just_stopping_is_asked_again(cli_daemon: SmallDaemon, folder: Path) -> None:
    """A daemon that answers that it is stopping, or starting, is no refusal: Toft tries again."""
    with started(cli_daemon, folder, "run", "--", "sh", "-c", "echo ready; read line") as process:
        assert first_line(process) == "ready"
        cli_daemon.wait_for(*CREATE)
        cli_daemon.close()
        stopping = {"code": "TOFT-DAEMON-UNREACHABLE", "status": 503, "facts": {"cause": "stopping"}}
        with small_daemon(cli_daemon.home, stopping) as again:
            again.wait_for(*HOLD, count=2)
            again.problem = None
            again.wait_for(*HOLD, count=again_count(again) + 1)
            _, err = process.communicate("\n", timeout=20)
    assert (err, process.returncode) == ("note: no supabase/ folder here: the backend is empty\n", 0)


def again_count(daemon: SmallDaemon) -> int:
    """How often a hold was asked for so far."""
    return sum((method, path) == HOLD for method, path, _ in daemon.calls)


def test_unknown_project_is_sent_once(toft: Toft, cli_daemon: SmallDaemon, folder: Path) -> None:
    """A project's files go to the daemon only when it has not seen their digest."""
    migrations = folder / "supabase" / "migrations"
    migrations.mkdir(parents=True)
    (migrations / "1_a.sql").write_text("select 1;")
    assert toft("run", "--", "true").returncode == 0
    assert toft("run", "--", "true").returncode == 0
    assert [method for method, _, _ in cli_daemon.calls] == ["POST", "PUT", "POST", "POST"]
    assert b"select 1;" in cli_daemon.calls[1][2]


def test_dotenv_files_are_read_and_not_touched(toft: Toft, cli_daemon: SmallDaemon, folder: Path) -> None:
    """`env(NAME)` of config.toml is looked up in `.env` files, which stay as they are."""
    (folder / "supabase").mkdir()
    (folder / "supabase" / "config.toml").write_text('[auth]\nsite_url = "env(SITE)"\n')
    (folder / ".env").write_text("SITE=http://example.test\nOTHER=secret\n")
    assert toft("run", "--", "true").returncode == 0
    bundle = next(body for method, _, body in cli_daemon.calls if method == "PUT")
    assert b"http://example.test" in bundle
    assert b"secret" not in bundle
    assert (folder / ".env").read_text() == "SITE=http://example.test\nOTHER=secret\n"


def test_unreadable_file_is_named(toft: Toft, cli_daemon: SmallDaemon, folder: Path) -> None:
    """A file that cannot be read is named, and no lease is asked for."""
    (folder / "supabase" / "migrations" / "1_a.sql").parent.mkdir(parents=True)
    (folder / "supabase" / "migrations" / "1_a.sql").symlink_to("/proc/self/mem")
    done = toft("run", "--", "true")
    assert (done.returncode, cli_daemon.calls) == (125, [])
    assert done.stderr.startswith("error: supabase/migrations/1_a.sql:1: cannot be read: ")


def test_foreign_home_is_refused(toft: Toft, cli_daemon: SmallDaemon, tmp_path: Path) -> None:
    """A home that cannot be made is an error with a remedy."""
    (tmp_path / "file").write_text("")
    done = toft(
        "run", "--", "true", TOFT_HOME=str(tmp_path / "file" / "home"), TOFT_RUN=str(tmp_path / "none")
    )
    assert done.returncode == 125
    assert done.stderr.splitlines()[1].startswith("error: the Toft home ")
    assert stat.S_ISREG((tmp_path / "file").stat().st_mode)
