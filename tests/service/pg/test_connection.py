"""The driver on a real Postgres: one round trip is one transaction, and nothing wedges a connection."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest

from tests.kit.fix_postgres import PASSWORD, SUPERUSER, PlainCluster
from toft.pg.connection import Connection, connect, connect_by
from toft.pg.dial import TcpDialer
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.transaction import transaction
from toft.pg.wire import Statement


@pytest.fixture
async def table(plain_connection: Connection) -> AsyncIterator[str]:
    """An empty table with a deferred foreign key to itself."""
    await plain_connection.script(
        "create table link(id int primary key, next int references link deferrable initially deferred)"
    )
    yield "link"
    async with asyncio.timeout(20):
        if plain_connection.is_in_transaction:
            await plain_connection.script("rollback")
        await plain_connection.script("drop table link")


async def count(connection: Connection) -> str | None:
    return (await connection.query("select count(*) from link"))[0][0]


async def test_values(plain_connection: Connection) -> None:
    """Values come as the server wrote them: texts, NULL, and binary on demand."""
    text, binary = await plain_connection.pipeline(
        [
            Statement(b"select $1::int, null, $2::text", (b"-7", "é".encode()), describe=True),
            Statement(b"select '\\x00ff'::bytea, 'a'::text", (), binary=True),
        ]
    )
    assert text.rows == [[b"-7", None, "é".encode()]]
    assert [(column.name, column.oid) for column in text.columns] == [
        ("int4", 23),
        ("?column?", 25),
        ("text", 25),
    ]
    assert binary.rows == [[b"\x00\xff", b"a"]]
    assert (text.tag, text.affected, binary.columns) == ("SELECT 1", 1, ())


async def test_columns_of_kept_statement(plain_connection: Connection) -> None:
    """Columns are known each time they are asked for, also when the statement was kept without them."""
    plain = Statement(b"select 1 as one", (), b"one")
    asking = Statement(b"select 1 as one", (), b"one", describe=True)
    for statement, names in ((plain, []), (asking, ["one"]), (asking, ["one"]), (plain, [])):
        [result] = await plain_connection.pipeline([statement])
        assert [column.name for column in result.columns] == names


async def test_pipeline_is_one_transaction(plain_connection: Connection, table: str) -> None:
    """A failing statement undoes those before it, says which it was, and settings end with it."""
    with pytest.raises(PostgresError) as failed:
        await plain_connection.pipeline(
            [
                Statement(b"select set_config('toft.x', 'y', true)", (), b"set"),
                Statement(b"insert into link values (1, null)", (), b"insert"),
                Statement(b"select 1/0", (), b"fail"),
                Statement(b"insert into link values (2, null)", (), b"insert2"),
            ]
        )
    assert (failed.value.sqlstate, failed.value.statement_index) == ("22012", 2)
    assert await count(plain_connection) == "0"
    assert await plain_connection.query("select nullif(current_setting('toft.x', true), '')") == [[None]]
    # What was not reached is prepared when it is used next.
    await plain_connection.pipeline([Statement(b"insert into link values (2, null)", (), b"insert2")])
    assert await count(plain_connection) == "1"


async def test_deferred_constraint(plain_connection: Connection, table: str) -> None:
    """A constraint that fails at the commit fails the pipeline, after its last statement."""
    with pytest.raises(PostgresError) as failed:
        await plain_connection.pipeline([Statement(b"insert into link values (1, 99) returning id")])
    assert (failed.value.sqlstate, failed.value.statement_index) == ("23503", 1)
    assert failed.value.constraint == "link_next_fkey"
    assert await count(plain_connection) == "0"


async def test_settings_apply_within(plain_connection: Connection, table: str) -> None:
    """Read-only mode and statement_timeout, set by the first statement, hold for the next one."""
    read_only = Statement(b"select set_config('transaction_read_only', 'on', true)", (), b"ro")
    with pytest.raises(PostgresError) as refused:
        await plain_connection.pipeline([read_only, Statement(b"insert into link values (1, null)")])
    assert refused.value.sqlstate == "25006"
    timeout = Statement(b"select set_config('statement_timeout', '20ms', true)", (), b"to")
    with pytest.raises(PostgresError) as late:
        await plain_connection.pipeline([timeout, Statement(b"select pg_sleep(30)")])
    assert late.value.sqlstate == "57014"
    assert await plain_connection.query("show statement_timeout") == [["0"]]


async def test_explicit_transaction_in_one_pipeline(plain_connection: Connection, table: str) -> None:
    """BEGIN … ROLLBACK in one write leaves nothing, and a failure in it leaves no open transaction."""
    insert = Statement(b"insert into link values ($1, null)", (b"1",), b"insert")
    results = await plain_connection.pipeline(transaction([insert], isolation="serializable", rollback=True))
    assert [result.tag for result in results] == ["BEGIN", "INSERT 0 1", "ROLLBACK"]
    assert await count(plain_connection) == "0"
    with pytest.raises(PostgresError) as failed:
        await plain_connection.pipeline(transaction([insert], read_only=True))
    assert (failed.value.sqlstate, failed.value.statement_index) == ("25006", 1)
    assert not plain_connection.is_in_transaction


async def test_transaction_across_round_trips(plain_connection: Connection, table: str) -> None:
    """A transaction that the caller began stays open, and stays the caller's after an error."""
    await plain_connection.script("begin")
    await plain_connection.pipeline([Statement(b"insert into link values (1, null)")])
    assert plain_connection.is_in_transaction
    with pytest.raises(PostgresError):
        await plain_connection.pipeline([Statement(b"select 1/0")])
    assert plain_connection.is_in_transaction
    await plain_connection.script("rollback")
    assert await count(plain_connection) == "0"


async def test_script(plain_connection: Connection, table: str) -> None:
    """A script is one transaction; its failure names statement and position."""
    results = await plain_connection.script("insert into link values (1, null); ; select id from link; --")
    assert [result.tag for result in results] == ["INSERT 0 1", "SELECT 1"]
    assert results[1].columns[0].name == "id"
    with pytest.raises(PostgresError) as failed:
        await plain_connection.script("delete from link; select nothing from link")
    assert (failed.value.statement_index, failed.value.position) == (1, 26)
    assert await count(plain_connection) == "1"
    assert [result.tag for result in await plain_connection.script("")] == [""]


async def test_result_type_changed(plain_connection: Connection, table: str) -> None:
    """A kept statement whose result type has changed is prepared again, unnoticed."""
    every = Statement(b"select * from link", (), b"every", describe=True)
    await plain_connection.pipeline([every])
    await plain_connection.script("alter table link add column more text")
    insert = Statement(b"insert into link values (7, null) returning id", (), b"insert")
    _, result = await plain_connection.pipeline([insert, every])
    assert [column.name for column in result.columns] == ["id", "next", "more"]
    assert await count(plain_connection) == "1"


async def test_statements_forgotten(plain_connection: Connection) -> None:
    """When somebody's SQL deallocates everything, what we keep is prepared again, unnoticed."""
    one = Statement(b"select 1", (), b"one")
    await plain_connection.pipeline([one])
    await plain_connection.script("do $$ begin execute 'deallocate all'; end $$")
    assert (await plain_connection.pipeline([one]))[0].rows == [[b"1"]]


async def test_statement_cache_is_bounded(plain_connection: Connection) -> None:
    """The server keeps a bounded number of statements, and the oldest go first."""
    for number in range(350):
        await plain_connection.pipeline([Statement(b"select %d" % number, (), b"k%d" % number)])
    [[kept]] = await plain_connection.query("select count(*) from pg_prepared_statements")
    assert 195 <= int(kept or 0) <= 201
    [[oldest]] = await plain_connection.query("select min(substr(name, 2)::int) from pg_prepared_statements")
    assert int(oldest or 0) > 140


async def test_name_key_of_two_texts(plain_connection: Connection) -> None:
    """A key that comes back with another text never runs the old text."""
    for text in (b"select 1", b"select 2", b"select 1"):
        [result] = await plain_connection.pipeline([Statement(text, (), b"same")])
        assert result.rows == [[text[-1:]]]


async def test_large_values(plain_connection: Connection) -> None:
    """Values of many megabytes go there and back."""
    big = b"x" * (20 * 1024 * 1024)
    [result] = await plain_connection.pipeline([Statement(b"select $1::text, length($1)", (big,))])
    assert result.rows == [[big, str(len(big)).encode()]]


async def test_many_rows(plain_connection: Connection) -> None:
    """Rows come complete and in order."""
    rows = await plain_connection.query("select g, repeat('y', g % 50) from generate_series(1, 30000) g")
    assert rows == [[str(g), "y" * (g % 50)] for g in range(1, 30001)]


async def test_too_many_params(plain_connection: Connection) -> None:
    """What the protocol cannot carry is refused before anything is sent."""
    with pytest.raises(ValueError):
        await plain_connection.pipeline([Statement(b"select 1", (b"1",) * 70000, b"key")])
    assert await plain_connection.query("select 1") == [["1"]]


@pytest.mark.parametrize("is_last", [True, False])
async def test_copy_from_stdin(plain_connection: Connection, table: str, is_last: bool) -> None:
    """COPY FROM STDIN fails as a statement does; at worst the server hangs up. It never waits for ever."""
    copy = Statement(b"copy link from stdin")
    async with asyncio.timeout(20):
        if is_last:
            with pytest.raises(PostgresError) as failed:
                await plain_connection.pipeline([copy])
            assert failed.value.sqlstate == "57014"
            with pytest.raises(PostgresError):
                await plain_connection.script("copy link from stdin; select 1")
            assert await count(plain_connection) == "0"
        else:
            other = await connect(plain_connection_path(plain_connection), SUPERUSER, PASSWORD)
            with pytest.raises((PostgresError, ConnectionLost)):
                await other.pipeline([copy, Statement(b"select 1")])
            other.close()


def plain_connection_path(connection: Connection) -> str:
    return repr(connection).split()[1]


async def test_copy_to_stdout(plain_connection: Connection) -> None:
    """COPY TO STDOUT gives its lines, by either protocol."""
    text = "copy (select generate_series(1, 3)) to stdout"
    [by_script] = await plain_connection.script(text)
    [by_pipeline] = await plain_connection.pipeline([Statement(text.encode())])
    assert by_script.rows == by_pipeline.rows == [[b"1\n"], [b"2\n"], [b"3\n"]]


async def test_notices_and_notifications(plain_connection: Connection) -> None:
    """Notices and notifications reach their hooks."""
    notices: list[dict[str, str]] = []
    heard: list[tuple[str, str]] = []
    plain_connection.on_notice = notices.append
    plain_connection.on_notification = lambda channel, payload: heard.append((channel, payload))
    await plain_connection.script("listen news; notify news, 'now'")
    await plain_connection.script("do $$ begin raise warning 'careful'; end $$")
    assert [(notice["V"], notice["M"]) for notice in notices] == [("WARNING", "careful")]
    assert heard == [("news", "now")]


async def test_cancelled_task_cancels_query(
    plain_connection: Connection, plain_postgres: PlainCluster
) -> None:
    """When its task is cancelled, the query stops at the server and the connection goes on."""
    sleeping = asyncio.get_running_loop().create_task(
        plain_connection.query("select pg_sleep(600), 'mark-1'")
    )
    watch = await connect(plain_postgres.socket_path, SUPERUSER, PASSWORD)
    running = "select count(*) from pg_stat_activity where query like '%mark-1%' and pid <> pg_backend_pid()"
    async with asyncio.timeout(20):
        while await watch.query(running + " and state = 'active'") != [["1"]]:
            await asyncio.sleep(0)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping
        assert plain_connection.settling is not None
        assert await plain_connection.query("select 1") == [["1"]]
        assert plain_connection.settling is None
    watch.close()


async def test_cancel_hits_no_later_query(plain_connection: Connection) -> None:
    """However often a query is cancelled as it ends, the next one is never hit."""
    loop = asyncio.get_running_loop()
    for ticks in range(200):
        task = loop.create_task(plain_connection.query("select 1"))
        for _ in range(ticks % 5):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert await plain_connection.query("select 2") == [["2"]]


async def test_server_ends_connection(plain_connection: Connection, plain_postgres: PlainCluster) -> None:
    """A terminated connection says so, once to the one who waits and once to its hook."""
    other = await connect(plain_postgres.socket_path, SUPERUSER, PASSWORD)
    lost: list[bool] = []
    other.on_lost = lambda: lost.append(True)
    waiting = asyncio.get_running_loop().create_task(other.query("select pg_sleep(600)"))
    await asyncio.sleep(0)
    await plain_connection.query("select pg_terminate_backend($1)", str(other.backend_pid))
    with pytest.raises(PostgresError) as ended:
        await waiting
    assert ended.value.sqlstate == "57P01"
    while not other.is_broken:
        await asyncio.sleep(0)
    with pytest.raises(ConnectionLost):
        await other.query("select 1")
    other.close()
    assert lost == [True]


async def test_closed_while_waiting(plain_postgres: PlainCluster) -> None:
    """Closing a connection fails what runs on it instead of leaving it waiting."""
    other = await connect(plain_postgres.socket_path, SUPERUSER, PASSWORD)
    waiting = asyncio.get_running_loop().create_task(other.query("select pg_sleep(1)"))
    await asyncio.sleep(0)
    other.close()
    with pytest.raises(ConnectionLost):
        await waiting


async def test_busy(plain_connection: Connection) -> None:
    """Two tasks cannot use one connection at once."""
    waiting = asyncio.get_running_loop().create_task(plain_connection.query("select pg_sleep(0.01)"))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        await plain_connection.query("select 1")
    await waiting


async def test_login_fails(plain_postgres: PlainCluster) -> None:
    """A wrong password is the server's error, and it is not repeated."""
    with pytest.raises(PostgresError) as refused:
        await connect(plain_postgres.socket_path, SUPERUSER, "wr0ng-one")
    assert refused.value.sqlstate == "28P01"
    assert "wr0ng" not in str(refused.value) + repr(refused.value)
    with pytest.raises(PostgresError) as unknown:
        await connect(plain_postgres.socket_path, SUPERUSER, PASSWORD, "nowhere")
    assert unknown.value.sqlstate == "3D000"


async def test_nobody_there(plain_postgres: PlainCluster) -> None:
    """Where nothing listens, the place is named."""
    with pytest.raises(Unreachable, match="s\\.nothing"):
        await connect(plain_postgres.socket_path + ".nothing".replace("n", "s.n", 1), SUPERUSER, PASSWORD)


async def test_session_options(plain_postgres: PlainCluster) -> None:
    """Settings of the session travel with the start-up message."""
    options = {"application_name": "é", "search_path": "pg_catalog"}
    connection = await connect(plain_postgres.socket_path, SUPERUSER, PASSWORD, options=options)
    assert await connection.query("show search_path") == [["pg_catalog"]]
    assert connection.parameters["client_encoding"] == "UTF8"
    connection.close()


@pytest.mark.parametrize("is_encrypted", [False, True])
async def test_tcp(plain_postgres: PlainCluster, is_encrypted: bool) -> None:
    """TCP works with and without TLS, and a cancelled query is cancelled there too."""
    tls = ssl.create_default_context(cafile=str(plain_postgres.certificate)) if is_encrypted else None
    dialer = TcpDialer("127.0.0.1", plain_postgres.port, tls)
    connection = await connect_by(dialer, SUPERUSER, PASSWORD)
    question = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
    assert await connection.query(question) == [["t" if is_encrypted else "f"]]
    task = asyncio.get_running_loop().create_task(connection.query("select pg_sleep(600)"))
    await asyncio.sleep(0.05)
    task.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait([task])
        assert await connection.query("select repeat('z', 1000000)") == [["z" * 1000000]]
        connection.close()
        await connection.wait_closed()


async def test_tls_verifies(plain_postgres: PlainCluster) -> None:
    """A certificate that nobody vouches for is refused."""
    dialer = TcpDialer("127.0.0.1", plain_postgres.port, ssl.create_default_context())
    with pytest.raises(Unreachable, match="certificate"):
        await connect_by(dialer, SUPERUSER, PASSWORD)
