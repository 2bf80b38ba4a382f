"""Variables from .env files."""

from __future__ import annotations

import pytest

from toft.protocol.bundle import env_file_names
from toft.protocol.dotenv import parse, resolve


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\nB=two words\n", {"A": "1", "B": "two words"}),
        ("export A=1\n  B = 2  \nC: 3", {"A": "1", "B": "2", "C": "3"}),
        ("A=1 # comment\nB=#all\nC=a#b\n#D=1\n\n", {"A": "1", "B": "", "C": "a#b"}),
        ("A='one # two'\nB=\"x # y\" # z\n", {"A": "one # two", "B": "x # y"}),
        ('A=\'a\\n$B\'\nC="a\\nb\\"c\\t\\\\"\n', {"A": "a\\n$B", "C": 'a\nb"c\t\\'}),
        ("A=\"two\nlines\"\nB='also\ntwo'\n", {"A": "two\nlines", "B": "also\ntwo"}),
        (
            "A=x\nB=$A-${A}\nC=\"$A\"\nD='$A'\nE=\\$A\nF=$NOPE.\n",
            {"A": "x", "B": "x-x", "C": "x", "D": "$A", "E": "$A", "F": "."},
        ),
        ("A=\nB=\"\"\nC=''\n", {"A": "", "B": "", "C": ""}),
        ("\ufeffA=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A=1\nA=2", {"A": "2"}),
        ("A=https://x.y/?a=b&c=d", {"A": "https://x.y/?a=b&c=d"}),
        ("a.b-c=1\na.b=2", {"a.b": "2"}),
        ("", {}),
    ],
)
def test_values(text: str, expected: dict[str, str]) -> None:
    """Bare, quoted, expanded, over several lines."""
    assert parse(text)[0] == expected


def test_lines_that_make_no_sense() -> None:
    """They are told by their numbers, and the rest counts."""
    assert parse('A=1\nnonsense\n=x\nB="open\nC=3\n') == ({"A": "1", "C": "3"}, [2, 3, 4])


def test_order_of_files() -> None:
    """Of the environment first, local ones before shared ones; none of this machine for tests."""
    assert env_file_names("") == [".env.development.local", ".env.local", ".env.development", ".env"]
    assert env_file_names("test") == [".env.test.local", ".env.test", ".env"]


def test_who_wins() -> None:
    """The process, then the files in their order; an empty value hides later ones and counts as absent."""
    texts = ["A=1\nE=\n", "A=2\nB=2\nE=5\n", "B=3\nC=3\n"]
    assert resolve(["A", "B", "C", "D", "E", "P"], {"P": "p", "C": "", "A": "0"}, texts) == {
        "A": "0",
        "B": "2",
        "P": "p",
    }
