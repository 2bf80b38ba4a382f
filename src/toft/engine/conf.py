"""Pure: postgresql.conf, pg_hba.conf and the command line of a postmaster.

What is the same for every clone stands in the template's postgresql.conf; what belongs to one start (paths,
connections, durability) goes on the command line, which wins. The reasons for the figures are measurements:
a throwaway cluster should cost one wake-up in ten seconds and 5 MB, and lose nothing but a crash of the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

#: Sockets are named after a port, so that every client library finds `<socket_dir>/.s.PGSQL.5432`.
PORT = 5432

#: Nobody gets in without a password, and replication connections match no line at all.
HBA = "local all all scram-sha-256\n"

_COMMON: dict[str, str] = {
    # who may come: a Unix socket only; its folder says which users
    "listen_addresses": "''",
    "unix_socket_permissions": "0777",
    "ssl": "off",
    "password_encryption": "scram-sha-256",
    # memory and processes
    "shared_buffers": "8MB",
    "wal_buffers": "256kB",
    "max_files_per_process": "128",
    "max_worker_processes": "2",
    "max_parallel_workers": "0",
    "max_parallel_workers_per_gather": "0",
    "max_logical_replication_workers": "0",
    "max_prepared_transactions": "0",
    "dynamic_shared_memory_type": "mmap",
    "huge_pages": "off",
    "track_activity_query_size": "1024",
    "pg_stat_statements.max": "500",
    "jit": "off",
    "temp_file_limit": "1GB",
    # write-ahead log: small, and nothing is kept for a standby
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_recycle": "off",
    "wal_init_zero": "off",
    "min_wal_size": "2MB",
    "max_wal_size": "64MB",
    "checkpoint_timeout": "1d",
    # sleep well
    "autovacuum": "off",
    "bgwriter_lru_maxpages": "0",
    "bgwriter_delay": "10s",
    "wal_writer_delay": "10s",
    # the log: no statement ever, for it may hold a secret
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_line_prefix": "'%m [%p] '",
    "log_timezone": "'UTC'",
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",
    "lc_messages": "'C'",
    # what a session finds
    "timezone": "'UTC'",
    "datestyle": "'iso, mdy'",
    "default_text_search_config": "'pg_catalog.english'",
}

#: Read on start and on reload only, so harmless in files that outlive one start.
_SINCE: dict[int, dict[str, str]] = {
    16: {"scram_iterations": "1"},
    18: {"io_method": "sync"},
}

#: Without these a crash of the host may lose everything, and a crash of the postmaster nothing. (With
#: synchronous_commit off it would lose what was committed last, which is still in shared memory then.)
_THROWAWAY = {"fsync": "off", "full_page_writes": "off"}
_DURABLE = {"fsync": "on", "full_page_writes": "on", "checkpoint_timeout": "5min"}


def render_conf(major: int) -> str:
    """postgresql.conf of a template of this major version."""
    settings = dict(_COMMON)
    for since, more in _SINCE.items():
        if major >= since:
            settings |= more
    settings |= _THROWAWAY
    return "".join(f"{name} = {value}\n" for name, value in settings.items())


class Start(msgspec.Struct, frozen=True):
    """What differs from one start to the next.

    settings: further ones by name, the engine's paths among them; they win over all others.
    """

    data_dir: str
    socket_dir: str
    max_connections: int = 40
    is_durable: bool = False
    settings: Mapping[str, str] = {}


def command_line(postgres: str, start: Start) -> list[str]:
    """argv of the postmaster."""
    settings = {
        "unix_socket_directories": start.socket_dir,
        "max_connections": str(start.max_connections),
        **(_DURABLE if start.is_durable else {}),
        **start.settings,
    }
    line = [postgres, "-D", start.data_dir, "-p", str(PORT)]
    for name, value in settings.items():
        line += ["-c", f"{name}={value}"]
    return line


def initdb_line(
    initdb: str, data_dir: str, password_file: str, major: int, *, has_utf8_locale: bool
) -> list[str]:
    """argv of the initdb that makes a lean cluster owned by `supabase_admin`.

    Sort order is that of code points on every host (builtin provider from 17 on). The C library's C.UTF-8
    still decides what a letter is for the text search parser, so it is used where the host has it.
    """
    utf8 = "C.UTF-8" if has_utf8_locale else "C"
    line = [
        initdb,
        f"--pgdata={data_dir}",
        "--username=supabase_admin",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--no-sync",
        "--no-instructions",
        "--wal-segsize=1",
        "--encoding=UTF8",
        "--lc-messages=C",
        "--lc-monetary=C",
        "--lc-numeric=C",
        "--lc-time=C",
        f"--lc-ctype={utf8}",
    ]
    if major >= 17:
        line += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--lc-collate=C"]
    else:
        line += [f"--lc-collate={utf8}"]
    if major >= 18:
        line.append("--no-data-checksums")
    return line


def render_list(names: Sequence[str]) -> str:
    """A list as one setting's value."""
    return ",".join(names)
