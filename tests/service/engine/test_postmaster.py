"""Postmasters: started, watched, stopped, crashed, adopted, and behind their walls."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kit.fix_engine import Clone, EngineLab, methods
from toft.engine import postmaster
from toft.engine.marks import ROLES
from toft.engine.postmaster import Running
from toft.errors.backend import BackendFailed
from toft.host import processes
from toft.host.confine import Method
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable

each_method = pytest.mark.parametrize("method", methods())


def family(running: Running) -> list[processes.Process]:
    return [running, *processes.descendants(running.pid)]


@each_method
async def test_a_started_postmaster_answers(make_clone: Any, method: Method) -> None:
    """When `start` returns, it accepts connections, and the record names the process itself."""
    made: Clone = await make_clone(method)
    running = await made.start()
    assert await made.ask("select 'here'") == "here"
    assert postmaster.is_alive(running)
    assert processes.name(running.pid) == "postgres"
    assert stat.S_IMODE(made.spec.socket_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(made.spec.log_path.stat().st_mode) == 0o600
    if made.spec.uid is not None:
        assert Path(f"/proc/{running.pid}").stat().st_uid == made.spec.uid


@each_method
async def test_a_fast_stop_needs_no_recovery(make_clone: Any, method: Method) -> None:
    """Sessions are ended, everything is written, no process is left, and the next start says so."""
    made: Clone = await make_clone(method)
    running = await made.start()
    session = await made.connect()
    await session.script("create table kept as select 1 as n")
    everyone = family(running)
    await postmaster.stop(running, "fast")
    assert not [process for process in everyone if processes.is_alive(process)]
    assert not (made.spec.data_dir / "postmaster.pid").exists()
    before = len(made.log)
    await made.start()
    assert "was shut down at" in made.log[before:]
    assert await made.ask("select n::text from kept") == "1"


@each_method
async def test_an_immediate_stop_is_recovered_from(make_clone: Any, method: Method) -> None:
    """Everything that was committed is there after the next start; stopping twice is fine."""
    made: Clone = await make_clone(method)
    running = await made.start()
    session = await made.connect()
    await session.script("create table kept as select generate_series(1, 10000) as n")
    await postmaster.stop(running, "immediate")
    await postmaster.stop(running, "immediate")
    await postmaster.stop(running, "fast")
    before = len(made.log)
    await made.start()
    assert "was not properly shut down" in made.log[before:]
    assert await made.ask("select count(*)::text from kept") == "10000"


@each_method
async def test_a_killed_postmaster_is_noticed_and_started_again(make_clone: Any, method: Method) -> None:
    """Its end is an event; a backend that was in the middle of a query does not keep the next one out."""
    made: Clone = await make_clone(method)
    running = await made.start()
    session = await made.connect()
    query = asyncio.ensure_future(session.script("select count(*) from generate_series(1, 100000000000)"))
    watching = asyncio.ensure_future(postmaster.wait_gone(running))
    watcher = await made.connect()
    while (await watcher.query("select count(*) from pg_stat_activity where query like '%100000000000%'"))[
        0
    ] == ["1"]:
        await asyncio.sleep(0)
    everyone = family(running)
    os.kill(running.pid, signal.SIGKILL)
    await watching
    assert not postmaster.is_alive(running)
    if method == "bubblewrap":  # with the first process of its namespace everything in it ends
        for process in everyone:
            await processes.wait_gone(process)
    await made.start()
    for process in everyone:
        assert not processes.is_alive(process)
    with suppress(ConnectionLost, PostgresError):
        await query
    assert await made.ask("select 'again'") == "again"


@each_method
async def test_a_postmaster_outlives_who_started_it(make_clone: Any, method: Method, tmp_path: Path) -> None:
    """Its starter is killed with -9; whoever reads the record adopts it, watches it and stops it."""
    made: Clone = await make_clone(method)
    starter = processes.spawn(
        [sys.executable, "-c", STARTER, str(tmp_path / "record")],
        {"PYTHONPATH": ":".join(sys.path), "SPEC": msgspec.json.encode(made.spec, enc_hook=str).decode()},
        output=os.open(tmp_path / "output", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600),
    )
    head = processes.identify(starter)
    assert head is not None
    await processes.wait_gone(head)
    record = tmp_path / "record"
    assert record.exists(), (tmp_path / "output").read_text()
    running = msgspec.json.decode(record.read_bytes(), type=Running)
    made.running = running
    assert postmaster.is_alive(running)
    assert await made.ask("select 'adopted'") == "adopted"
    watching = asyncio.ensure_future(postmaster.wait_gone(running))
    everyone = family(running)
    await postmaster.stop(running, "fast")
    await watching
    assert not [process for process in everyone if processes.is_alive(process)]


STARTER = """
import asyncio, os, signal, sys
from pathlib import Path
import msgspec
from toft.engine import postmaster
spec = msgspec.json.decode(
    os.environ["SPEC"], type=postmaster.PostmasterSpec, dec_hook=lambda kind, value: kind(value)
)
running = asyncio.run(postmaster.start(spec))
Path(sys.argv[1]).write_bytes(msgspec.json.encode(running))
os.kill(os.getpid(), signal.SIGKILL)
"""


@each_method
async def test_a_failed_start_says_why_and_leaves_nothing(make_clone: Any, method: Method) -> None:
    """In the server's own words; no process and no socket folder stays."""
    made: Clone = await make_clone(method)
    with pytest.raises(BackendFailed) as caught:
        await made.start(settings={"shared_buffers": "a lot"})
    assert 'invalid value for parameter "shared_buffers"' in str(caught.value)
    (made.spec.data_dir / "global/pg_control").unlink()
    with pytest.raises(BackendFailed, match="global/pg_control"):
        await made.start(settings={})
    assert not made.spec.socket_dir.exists()
    assert not processes.working_in(made.spec.data_dir)


async def test_a_launcher_that_fails_is_quoted(make_clone: Any) -> None:
    """What bubblewrap or setpriv says is as good a cause as Postgres's own words."""
    made: Clone = await make_clone()
    if made.spec.confinement == "none":
        pytest.skip("there is no launcher")
    engine = msgspec.structs.replace(made.spec.engine, bin_dir=Path("/usr/lib/nowhere"))
    with pytest.raises(BackendFailed, match="No such file or directory"):
        await made.start(engine=engine)
    made.spec = msgspec.structs.replace(made.spec, engine=engine)


@each_method
async def test_a_cancelled_start_leaves_nothing(make_clone: Any, method: Method) -> None:
    """Whatever had begun is ended before the cancellation is passed on."""
    made: Clone = await make_clone(method)
    for turns in (1, 2, 3, 5):
        starting = asyncio.ensure_future(made.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not processes.working_in(made.spec.data_dir)
        assert not made.spec.socket_dir.exists()
    await made.start()
    assert await made.ask("select 'fine'") == "fine"


async def test_one_that_does_not_listen_is_killed(make_clone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen postmaster answers no signal; stop ends it and its children all the same."""
    monkeypatch.setattr(postmaster, "FAST_SECONDS", 0.05)
    monkeypatch.setattr(postmaster, "IMMEDIATE_SECONDS", 0.05)
    made: Clone = await make_clone()
    running = await made.start()
    everyone = family(running)
    processes.send(running, signal.SIGSTOP)
    await postmaster.stop(running, "fast")
    for process in everyone:
        await processes.wait_gone(process)


@each_method
async def test_a_superuser_inside_does_not_get_out(
    make_clone: Any, engine_lab: EngineLab, method: Method
) -> None:
    """Not to another instance's files or socket, not to a shell behind bubblewrap, not to the network.

    The tenant is no superuser; this is what holds if one became it.
    """
    if method == "none":
        pytest.skip("there are no walls")
    made: Clone = await make_clone(method)
    other: Clone = await make_clone(method)
    await made.start()
    await other.start()
    session = await made.connect()

    async def refused(sql: str) -> str:
        with pytest.raises(PostgresError) as caught:
            await session.script(sql)
        return f"{caught.value.message} {caught.value.detail}"

    for path in (other.spec.data_dir / "PG_VERSION", other.spec.log_path, made.spec.log_path):
        said = await refused(f"select pg_read_file('{path}')")
        assert "No such file" in said or "Permission denied" in said
    await refused(f"select lo_import('{engine_lab.templates}/x/template.json')")
    await session.script("create extension dblink")
    where = f"host={other.spec.socket_dir} user=supabase_admin password={other.password}"
    said = await refused(f"select dblink_connect('{where}')")
    assert "No such file" in said or "Permission denied" in said, said
    if method == "bubblewrap":
        places = f"select string_agg(name, ' ') from pg_ls_dir('{engine_lab.home}/backends') as name"
        assert await made.ask(places) == made.spec.data_dir.parent.name
        assert await made.ask("select string_agg(name, ' ' order by name) from pg_ls_dir('/') as name") in (
            "dev etc lib lib64 usr",
            "etc lib lib64 tmp usr",
        )
        await refused("copy (select 1) to program 'true'")
        said = await refused("select dblink_connect('host=127.0.0.1 port=1 user=x password=x')")
        assert "refused" in said or "unreachable" in said


async def test_limits_of_the_process(make_clone: Any) -> None:
    """No core dump, bounded files and memory; with a user id of its own also a number of processes."""
    made: Clone = await make_clone(max_connections=10)
    running = await made.start()
    limits = Path(f"/proc/{running.pid}/limits").read_text()
    lines = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()}
    assert lines["Max core file size"] == "0"
    assert lines["Max open files"] == "4096"
    assert lines["Max data size"] == str(1 << 30)
    if made.spec.uid is not None:
        assert lines["Max processes"] == "42"
    assert int(Path(f"/proc/{running.pid}/oom_score_adj").read_text()) >= 300


async def test_a_session_that_takes_too_much_memory_loses_only_its_statement(make_clone: Any) -> None:
    """Postgres reports it; the session and the server go on."""
    made: Clone = await make_clone(memory_bytes=600 << 20)
    running = await made.start()
    session = await made.connect()
    with pytest.raises(PostgresError) as caught:
        await session.script("select length(repeat('x', 300000000) || repeat('y', 300000000))")
    assert caught.value.sqlstate == "53200"
    assert await session.query("select 'here'") == [["here"]]
    assert postmaster.is_alive(running)


async def test_passwords_are_set(make_clone: Any) -> None:
    """The one before is refused from then on; logging in is cheap; the password itself is nowhere."""
    made: Clone = await make_clone()
    await made.start()
    passwords = {"supabase_admin": "first " + "x" * 30, "postgres": "it's \\ second " + "y" * 30}
    await postmaster.set_passwords(made.spec.socket_path, made.password, passwords)
    with pytest.raises(PostgresError):
        await made.connect("supabase_admin", made.password)
    for role, password in passwords.items():
        session = await made.connect(role, password)
        assert await session.query("select session_user::text") == [[role]]
    made.password = passwords["supabase_admin"]
    stored = await made.ask("select string_agg(rolpassword, ' ') from pg_authid")
    assert stored is not None
    assert stored.count("SCRAM-SHA-256$1:") == len(ROLES)
    assert "second" not in stored
    assert "second" not in made.log


async def test_what_a_session_finds(make_clone: Any) -> None:
    """Statistics of statements, UTC, and durability only where it was asked for."""
    made: Clone = await make_clone(durable=True)
    await made.start()
    session = await made.connect()
    await session.script("create extension pg_stat_statements")
    assert await session.query("select count(*) > 0 from pg_stat_statements") == [["t"]]
    assert await session.query("show timezone") == [["UTC"]]
    assert await session.query("show fsync") == [["on"]]
    session.close()
    assert made.running is not None
    await postmaster.stop(made.running, "fast")
    await made.start(durable=False)
    assert await made.ask("select current_setting('fsync')") == "off"


async def test_the_owner_of_the_database_makes_extensions(make_clone: Any) -> None:
    """Trusted ones, stand-ins and, where the engine has it, vector; what is not trusted stays refused."""
    made: Clone = await make_clone()
    await made.start()
    await postmaster.set_passwords(made.spec.socket_path, made.password, {"postgres": "p" * 30})
    session = await made.connect("postgres", "p" * 30)
    for name in ("moddatetime", "uuid-ossp", "pgcrypto", "dblink", "postgres_fdw"):
        await session.script(f'create extension "{name}"')
    assert await session.query("select length(uuid_generate_v4()::text) = 36") == [["t"]]
    if "vector" in made.spec.engine.extensions:
        await session.script(
            "create extension vector; create table v (e vector(3)); insert into v values ('[1,2,3]')"
        )
        await session.script("create index on v using hnsw (e vector_l2_ops)")
        assert await session.query("select e <-> '[1,2,4]' from v") == [["1"]]
    with pytest.raises(PostgresError) as caught:
        await session.script("create extension file_fdw")
    assert caught.value.sqlstate == "42501"


async def test_errors_are_logged_without_their_statement(make_clone: Any) -> None:
    """A statement may hold a secret; the message alone helps enough."""
    made: Clone = await make_clone()
    await made.start()
    session = await made.connect()
    with pytest.raises(PostgresError):
        await session.script("alter role nobody_here password 'hunter2'")
    assert "nobody_here" in made.log
    assert "hunter2" not in made.log


@pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several users")
async def test_a_group_may_connect_and_others_may_not(make_clone: Any) -> None:
    """Gateway workers run as another user and share a group with the socket's folder."""
    made: Clone = await make_clone(socket_gid=60_000)
    await made.start()
    script = f"import socket; socket.socket(socket.AF_UNIX).connect({str(made.spec.socket_path)!r})"
    for gid, expected in ((60_000, 0), (59_999, 1)):
        line = [
            "/usr/bin/setpriv",
            "--reuid=59000",
            f"--regid={gid}",
            "--clear-groups",
            "/usr/bin/python3",
            "-c",
            script,
        ]
        assert processes.run(line).status == expected


async def test_a_socket_that_nobody_serves_is_unreachable(make_clone: Any) -> None:
    """What a client sees of a stopped one: no connection, at once."""
    made: Clone = await make_clone()
    running = await made.start()
    await postmaster.stop(running, "immediate")
    with pytest.raises(Unreachable):
        await made.connect()
