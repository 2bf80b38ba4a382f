"""Which files of a project run, in which order, and which are refused."""

from __future__ import annotations

import pytest

from tests.kit.projects import bundle_of, project_of
from toft.errors.project import FileUnreadable
from toft.migrate.project import Migration, Pending, decide_pending, read_project, select_migrations


def names(*files: str) -> list[str]:
    return [
        migration.path.rpartition("/")[2] for migration in project_of(dict.fromkeys(files, "")).migrations
    ]


def test_order() -> None:
    """By version as text, then by the rest of the name; so 10 comes before 9, and a down file before its
    up.
    """
    assert names("9_a.sql", "10_b.sql", "1_z.sql", "x.sql") == ["1_z.sql", "10_b.sql", "9_a.sql"]
    assert names("1_b.sql", "1_a.sql", "1_.sql") == ["1_.sql", "1_a.sql", "1_b.sql"]
    assert names("20240101_x.sql", "20240101_x.down.sql") == ["20240101_x.down.sql", "20240101_x.sql"]


def test_versions_and_names() -> None:
    """Digits before the first underscore, and what is between it and `.sql`."""
    project = project_of({"20240101000000_add_users.sql": "", "7_.sql": "", "8_x.down.sql": ""})
    assert [(file.version, file.name) for file in project.migrations] == [
        ("20240101000000", "add_users"),
        ("7", ""),
        ("8", "x.down"),
    ]


def test_what_is_passed_over() -> None:
    """Other names with a word, folders without one."""
    paths = [
        f"supabase/migrations/{name}"
        for name in (
            "foo.sql",
            "1-a.sql",
            "2_a.SQL",
            "3_a.sql",
            "_4_a.sql",
            "old/5_a.sql",
            "README.md",
            "6_a.sql.bak",
        )
    ]
    selected, notices = select_migrations(paths, "supabase/migrations")
    assert selected == ["supabase/migrations/3_a.sql"]
    assert [str(notice).split(" ")[0].rpartition("/")[2] for notice in notices] == [
        "1-a.sql",
        "2_a.SQL",
        "6_a.sql.bak",
        "README.md",
        "_4_a.sql",
        "foo.sql",
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["20200101000000_init.sql", "20240101000000_a.sql"], ["20240101000000_a.sql"]),
        (["20211208235959_init.sql"], []),
        (["20211209000000_init.sql"], ["20211209000000_init.sql"]),
        (["20200101000000_initial.sql"], ["20200101000000_initial.sql"]),
        (["1_a.sql", "20200101000000_init.sql"], ["1_a.sql", "20200101000000_init.sql"]),
        ([".gitkeep", "20200101000000_init.sql"], ["20200101000000_init.sql"]),
        (["supabase/migrations/0/x.sql", "20200101000000_init.sql"], ["20200101000000_init.sql"]),
    ],
)
def test_the_old_init_file(files: list[str], expected: list[str]) -> None:
    """It is passed over only as the very first entry of the folder, folders and hidden files counted."""
    assert names(*files) == expected


def test_without_a_folder() -> None:
    """A project may have nothing at all."""
    project = read_project(bundle_of({}))
    assert (project.migrations, project.seeds, project.roles, project.notices) == ((), (), None, ())


def test_migrations_disabled() -> None:
    """`[db.migrations] enabled = false` leaves them out, and does not even look at them."""
    assert project_of({"1_a.sql": b"\xff"}, config="[db.migrations]\nenabled = false").migrations == ()


def test_seeds() -> None:
    """`./seed.sql` unless the file says otherwise; a missing default is no matter, a missing pattern is
    said.
    """
    assert [seed.path for seed in project_of({"supabase/seed.sql": ""}).seeds] == ["supabase/seed.sql"]
    assert project_of({"1_a.sql": ""}).notices == ()
    project = project_of(
        {"supabase/seed.sql": "", "db/x.sql": ""}, config='[db.seed]\nsql_paths = ["../db/*.sql", "nope.sql"]'
    )
    assert [seed.path for seed in project.seeds] == ["db/x.sql"]
    assert [str(notice) for notice in project.notices] == ["no seed file matches `nope.sql`"]
    assert project_of({"supabase/seed.sql": ""}, config="[db.seed]\nenabled = false").seeds == ()
    assert project_of({"supabase/seed.sql": b"\xff"}, no_seed=True).seeds == ()


@pytest.mark.parametrize(
    ("raw", "line", "cause"),
    [
        (b"select 1;\n-- caf\xe9\n", 2, "byte 0xe9 is not UTF-8"),
        (b"select 1;\n\nselect '\0';", 3, "there is a NUL byte"),
        ("select 1".encode("utf-16"), 1, "the file is UTF-16"),
        (b"\xed\xa0\x80", 1, "byte 0xed is not UTF-8"),
    ],
)
def test_files_that_are_no_text(raw: bytes, line: int, cause: str) -> None:
    """They are refused with their line and a way out."""
    with pytest.raises(FileUnreadable) as caught:
        project_of({"1_a.sql": raw})
    assert str(caught.value) == f"supabase/migrations/1_a.sql:{line}: {cause}"
    assert caught.value.hint


def test_a_byte_order_mark_is_taken_away() -> None:
    """It is not part of the text, but of the file whose hash is kept."""
    with_mark, without = project_of({"1_a.sql": "\ufeffselect 1", "2_a.sql": "select 1"}).migrations
    assert with_mark.text == without.text
    assert with_mark.sha256 != without.sha256


def local(*versions: str) -> list[Migration]:
    return [Migration(f"{version}_x.sql", "", "", version=version, name="x") for version in versions]


@pytest.mark.parametrize(
    ("files", "recorded", "include_all", "expected"),
    [
        ("1 2 3", "", False, Pending(files=tuple(local("1", "2", "3")))),
        ("1 2 3", "1 2", False, Pending(files=tuple(local("3")))),
        ("1 2 3", "1 2 3", False, Pending()),
        ("1 2 3", "2", False, Pending(inserted=tuple(local("1")))),
        ("1 2 3", "2", True, Pending(files=tuple(local("1", "3")))),
        ("2", "1 2", False, Pending(missing=("1",))),
        ("1", "1 2 3", True, Pending(missing=("2", "3"))),
        ("1 3", "2", True, Pending(missing=("2",))),
        ("", "1", False, Pending(missing=("1",))),
        ("1 1", "1", False, Pending(files=tuple(local("1")))),
        ("10 9", "9 10", False, Pending()),
    ],
)
def test_pending(files: str, recorded: str, include_all: bool, expected: Pending) -> None:
    """Both lists are walked side by side, as text."""
    assert decide_pending(local(*files.split()), recorded.split(), include_all=include_all) == expected
