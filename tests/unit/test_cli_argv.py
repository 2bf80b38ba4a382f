"""`cli/argv.py`: words become options and operands."""

from __future__ import annotations

from importlib import import_module

import pytest

from toft.cli import main as cli
from toft.cli.argv import Flag, Usage, parse
from toft.errors.daemon import UsageError

USAGE = Usage(
    "toft thing",
    "Do a thing.",
    (Flag("size", "How big.", "COUNT", short="s"), Flag("fast", "Quickly.")),
    most=1,
)
RUN = Usage("toft run", "Run.", (Flag("ttl", "Life.", "TIME"),), takes_command=True)


def test_both_ways_of_giving_a_value() -> None:
    """`--name value`, `--name=value` and the one-letter form are the same."""
    for words in (["--size", "3"], ["--size=3"], ["-s", "3"]):
        assert parse(USAGE, words).get("size") == "3"
    assert parse(USAGE, ["--size="]).get("size") == ""


def test_operands_and_switches_mix() -> None:
    """Options may stand before and after operands; what follows `--` is left alone."""
    arguments = parse(USAGE, ["--fast", "one", "--size", "2", "--", "--fast", "x"])
    assert (arguments.operands, arguments.rest) == (["one"], ["--fast", "x"])
    assert arguments.has("fast")
    assert not arguments.has("json")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["--", "make", "--ttl", "5"], ["make", "--ttl", "5"]),
        (["make", "--json"], ["make", "--json"]),
        (["--ttl", "5m", "--", "a", "--", "b"], ["a", "--", "b"]),
        (["-", "x"], ["-", "x"]),
    ],
)
def test_a_commands_own_options_are_left_alone(words: list[str], command: list[str]) -> None:
    """From its first word on the command is taken as it is."""
    assert parse(RUN, words).rest == command


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--siez"], "there is no option `--siez`; did you mean `--size`?"),
        (["-x"], "there is no option `-x`"),
        (["--size"], "`--size` needs a value: COUNT"),
        (["--size", "--", "x"], "`--size` needs a value: COUNT"),
        (["--fast=yes"], "`--fast` takes no value"),
        (["a", "b"], "`b` is one word too many"),
    ],
)
def test_mistakes_are_named(words: list[str], cause: str) -> None:
    """A mistake is told in one sentence."""
    with pytest.raises(UsageError) as refused:
        parse(USAGE, words)
    assert str(refused.value) == cause
    assert refused.value.hint == "`toft thing --help` shows how it is used"


def test_command_is_asked_for() -> None:
    """`toft run` without a command is a mistake; with --help it is not."""
    with pytest.raises(UsageError):
        parse(RUN, ["--ttl", "5m", "--"])
    assert parse(RUN, ["--help"]).has("help")


def every_usage() -> list[Usage]:
    usages: list[Usage] = []
    for name in cli.COMMANDS:
        usage = import_module(f"toft.cli.commands.{name.replace('-', '_')}").USAGE
        usages += [one for one, _ in usage.values()] if isinstance(usage, dict) else [usage]
    return usages


@pytest.mark.parametrize("usage", every_usage(), ids=lambda usage: usage.name)
def test_help_fits_a_screen(usage: Usage) -> None:
    """Each help has at most 24 lines of at most 100 characters, and every command takes --json."""
    lines = usage.help().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    assert "--json" in usage.help()


def test_overview_names_every_command() -> None:
    """`toft --help` lists all commands and fits a screen."""
    lines = cli.overview().splitlines()
    assert len(lines) <= 24
    assert all(any(line.startswith(f"  {name} ") for line in lines) for name in cli.COMMANDS)
