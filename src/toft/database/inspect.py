"""What goes on in a database, by the server's own views."""

from __future__ import annotations

from toft.errors.database import DatabaseRefused
from toft.pg.connection import Connection
from toft.pg.sqlstate import PostgresError

#: subject → (columns, statement)
SUBJECTS: dict[str, tuple[tuple[str, ...], str]] = {
    "locks": (
        ("pid", "state", "waits_for", "relation", "mode", "granted", "age", "query"),
        """select a.pid, a.state, pg_blocking_pids(a.pid)::text, l.relation::regclass::text, l.mode,
          l.granted,
          date_trunc('second', now() - a.xact_start)::text, left(a.query, 100)
        from pg_locks as l join pg_stat_activity as a on a.pid = l.pid
        where l.locktype = 'relation' and l.pid <> pg_backend_pid() and l.mode <> 'AccessShareLock'
        order by l.granted, a.xact_start, 4""",
    ),
    "connections": (
        ("user", "application", "state", "count"),
        """select usename, application_name, state, count(*) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid()
        group by 1, 2, 3 order by 4 desc, 1, 2""",
    ),
    "statements": (
        ("calls", "total_ms", "mean_ms", "rows", "query"),
        r"""select calls, round(total_exec_time::numeric, 1), round(mean_exec_time::numeric, 2), rows,
          left(regexp_replace(query, '\s+', ' ', 'g'), 120)
        from extensions.pg_stat_statements
        where dbid = (select oid from pg_database where datname = current_database())
        order by total_exec_time desc limit 20""",
    ),
    "tables": (
        (
            "table",
            "rows",
            "table_bytes",
            "index_bytes",
            "total_bytes",
            "seq_scans",
            "index_scans",
            "dead_rows",
        ),
        """select s.schemaname || '.' || s.relname, s.n_live_tup, pg_table_size(s.relid),
          pg_indexes_size(s.relid),
          pg_total_relation_size(s.relid), s.seq_scan, coalesce(s.idx_scan, 0), s.n_dead_tup
        from pg_stat_user_tables as s where s.schemaname <> 'toft' order by 5 desc, 1""",
    ),
    "indexes": (
        ("index", "table", "bytes", "scans"),
        """select s.schemaname || '.' || s.indexrelname, s.relname, pg_relation_size(s.indexrelid),
          s.idx_scan
        from pg_stat_user_indexes as s where s.schemaname <> 'toft' order by 3 desc, 1""",
    ),
    "cache": (
        ("what", "hit_ratio"),
        """select 'tables', round(sum(heap_blks_hit) / nullif(sum(heap_blks_hit + heap_blks_read), 0), 4)
        from pg_statio_user_tables union all
        select 'indexes', round(sum(idx_blks_hit) / nullif(sum(idx_blks_hit + idx_blks_read), 0), 4)
        from pg_statio_user_indexes""",
    ),
    "transactions": (
        ("pid", "user", "state", "age", "query"),
        """select pid, usename, state, date_trunc('second', now() - xact_start)::text, left(query, 120)
        from pg_stat_activity where xact_start is not null and pid <> pg_backend_pid()
          and backend_type = 'client backend' order by xact_start""",
    ),
    "storage": (
        ("bucket", "objects", "bytes"),
        """select bucket_id, count(*), coalesce(sum((metadata ->> 'size')::bigint), 0)
        from storage.objects group by 1 order by 3 desc, 1""",
    ),
}


async def inspect(session: Connection, subject: str) -> list[dict[str, str | None]]:
    """The rows of one subject, by column.

    Raises `DatabaseRefused`, also when a locked table is in the way.
    """
    columns, sql = SUBJECTS[subject]
    await session.script("set lock_timeout = '3s'; set statement_timeout = '30s'")
    try:
        rows = await session.query(sql)
    except PostgresError as error:
        raise DatabaseRefused(
            doing=f"looking at {subject}",
            cause=error.message,
            sqlstate=error.sqlstate,
            advice="`toft inspect locks` shows who holds a table that is locked",
        ) from None
    return [dict(zip(columns, row, strict=True)) for row in rows]
