"""postgresql.conf, pg_hba.conf and command lines."""

from __future__ import annotations

import pytest

from toft.engine import conf


def settings(text: str) -> dict[str, str]:
    return dict(line.split(" = ", 1) for line in text.splitlines())


@pytest.mark.parametrize("major", [15, 16, 17, 18])
def test_nobody_connects_without_a_password_or_by_tcp(major: int) -> None:
    """The only line of pg_hba.conf asks for SCRAM, and no address is listened on."""
    assert conf.HBA.split() == ["local", "all", "all", "scram-sha-256"]
    assert settings(conf.render_conf(major))["listen_addresses"] == "''"


@pytest.mark.parametrize("major", [15, 16, 17, 18])
def test_statements_stay_out_of_the_log(major: int) -> None:
    """A statement may hold a secret, so not even a failing one is logged."""
    said = settings(conf.render_conf(major))
    assert said["log_min_error_statement"] == "panic"
    assert "log_statement" not in said


def test_settings_of_a_newer_version_are_left_out_of_an_older_one() -> None:
    """An unknown setting would keep the server from starting."""
    assert "io_method" not in conf.render_conf(17)
    assert settings(conf.render_conf(18))["io_method"] == "sync"
    assert "scram_iterations" not in conf.render_conf(15)


def test_command_line_puts_what_is_asked_for_last() -> None:
    """Paths, connections, then the settings of the engine and of this start, which win."""
    start = conf.Start(
        data_dir="/home/b/pgdata",
        socket_dir="/run/b",
        max_connections=7,
        settings={"max_connections": "9", "dynamic_library_path": "/x:$libdir"},
    )
    assert conf.command_line("/e/bin/postgres", start) == [
        "/e/bin/postgres",
        "-D",
        "/home/b/pgdata",
        "-p",
        "5432",
        "-c",
        "unix_socket_directories=/run/b",
        "-c",
        "max_connections=9",
        "-c",
        "dynamic_library_path=/x:$libdir",
    ]


def test_a_durable_start_overrules_the_throwaway_template() -> None:
    """fsync and its like are off in the template and on for who asks."""
    assert settings(conf.render_conf(18))["fsync"] == "off"
    line = conf.command_line("postgres", conf.Start(data_dir="d", socket_dir="s", is_durable=True))
    assert {"fsync=on", "full_page_writes=on"} <= set(line)


def test_a_commit_reaches_the_operating_system() -> None:
    """Otherwise the last seconds would be lost when a backend or the postmaster crashes."""
    assert settings(conf.render_conf(18)).get("synchronous_commit", "on") == "on"


@pytest.mark.parametrize(
    ("major", "has_locale", "expected", "unexpected"),
    [
        (15, True, {"--lc-ctype=C.UTF-8", "--lc-collate=C.UTF-8"}, {"--locale-provider=builtin"}),
        (15, False, {"--lc-ctype=C", "--lc-collate=C"}, {"--no-data-checksums"}),
        (17, True, {"--locale-provider=builtin", "--lc-ctype=C.UTF-8"}, {"--no-data-checksums"}),
        (18, True, {"--locale-provider=builtin", "--no-data-checksums"}, {"--lc-collate=C.UTF-8"}),
    ],
)
def test_initdb_is_asked_for_a_lean_cluster(
    major: int, has_locale: bool, expected: set[str], unexpected: set[str]
) -> None:
    """Sort order does not depend on the host; small log segments; no checksums."""
    line = set(conf.initdb_line("initdb", "d", "p", major, has_utf8_locale=has_locale))
    assert {"--wal-segsize=1", "--auth=scram-sha-256", "--username=supabase_admin", *expected} <= line
    assert not line & unexpected
