"""Patterns of seed files."""

from __future__ import annotations

import pytest

from toft.migrate.glob import Expansion, expand, normalise

PATHS = [
    "supabase/seed.sql",
    "supabase/seeds/10.sql",
    "supabase/seeds/2.sql",
    "supabase/seeds/a/x.sql",
    "supabase/seeds/a/notes.md",
    "supabase/seeds/.hidden.sql",
    "supabase/seeds/[x].sql",
    "db/seed.sql",
    "../up.sql",
    "supabase/seed.txt",
    "supabase/seeds.sql",
]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("./seed.sql", ["supabase/seed.sql"]),
        ("seed.sql", ["supabase/seed.sql"]),
        ("seed.txt", ["supabase/seed.txt"]),
        (
            "./seeds/*.sql",
            [
                "supabase/seeds/.hidden.sql",
                "supabase/seeds/10.sql",
                "supabase/seeds/2.sql",
                "supabase/seeds/[x].sql",
            ],
        ),
        (
            "seeds/**.sql",
            [
                "supabase/seeds/.hidden.sql",
                "supabase/seeds/10.sql",
                "supabase/seeds/2.sql",
                "supabase/seeds/[x].sql",
            ],
        ),
        ("seeds/[0-9].sql", ["supabase/seeds/2.sql"]),
        ("seeds/[^0-9]*.sql", ["supabase/seeds/.hidden.sql", "supabase/seeds/[x].sql"]),
        ("seeds/\\[x].sql", ["supabase/seeds/[x].sql"]),
        ("seeds/?.sql", ["supabase/seeds/2.sql"]),
        ("seeds/a", ["supabase/seeds/a/x.sql"]),
        ("seeds/*/x.sql", ["supabase/seeds/a/x.sql"]),
        (
            "seeds/",
            [
                "supabase/seeds/.hidden.sql",
                "supabase/seeds/10.sql",
                "supabase/seeds/2.sql",
                "supabase/seeds/[x].sql",
                "supabase/seeds/a/x.sql",
            ],
        ),
        ("../db/*.sql", ["db/seed.sql"]),
        ("../../up.sql", ["../up.sql"]),
        ("", []),
        ("/abs.sql", []),
        ("[z-a].sql", []),
        ("seeds/[.sql", []),
        ("SEED.sql", []),
    ],
)
def test_patterns(pattern: str, expected: list[str]) -> None:
    """Relative to supabase/; matches sorted bytewise; a folder stands for its SQL files."""
    assert expand([pattern], PATHS) == Expansion(tuple(expected), () if expected else (pattern,))


def test_several() -> None:
    """In the order of the patterns, each file once, where it is met first."""
    found = expand(["seeds/2.sql", "nope", "seed.sql", "seeds/[0-9]*.sql"], PATHS)
    assert found.paths == ("supabase/seeds/2.sql", "supabase/seed.sql", "supabase/seeds/10.sql")
    assert found.unmatched == ("nope",)


def test_normalise() -> None:
    """Dots and double slashes go; a path above the project stays one."""
    assert [normalise(path) for path in ("a/./b//c", "a/../b", "../a", "a/../../b", "./")] == [
        "a/b/c",
        "b",
        "../a",
        "../b",
        "",
    ]
