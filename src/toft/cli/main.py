"""`toft`: the table of commands, and what becomes of their failures.

A command's module is imported when it is called. Its `USAGE` is either a `Usage`, with `main` beside it, or a
dict of those for a command of several words.
"""

from __future__ import annotations

import os
import sys

from toft.cli import argv
from toft.cli.show import Show
from toft.errors.daemon import UsageError
from toft.errors.shape import EXIT_TOFT_FAILED, ToftError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toft.cli.argv import Usage
    from toft.cli.context import Command

#: name → what it does; the module is `toft.cli.commands.<name>`, with `_` for `-`
COMMANDS = {
    "run": "Run a command with a backend of its own",
    "lease": "Take, list, show, renew and release backends: create|list|show|env|renew|release",
    "psql": "Open psql on a lease's database",
    "user": "Users of a lease: create|list|token|delete",
    "logs": "Say why something in a lease failed, with its true cause",
    "keys": "Keys that sign a lease's tokens: list|rotate|revoke",
    "mail": "Mail that a lease's Auth has sent: list|show|wait|links",
    "explain": "Run one request as anon, users and service_role, and compare",
    "data-api": "Serve any Postgres as PostgREST does, in the foreground",
    "db": "Work on a lease's database: push|test-migration|check-query|diff|types …",
    "inspect": "What goes on in a lease's database: locks|statements|tables|connections …",
    "migration": "Migration files and what a lease has of them: list|new|up|repair",
    "fork": "Copy a running backend with everything in it, once or often",
    "checkpoint": "Named points that a lease can return to: create|list|restore|delete",
    "reset": "Return a backend to just after migrations and seeds",
    "doctor": "Say what this machine has, what is missing and how to mend it",
    "daemon": "The process behind it all: start|stop|status|logs",
    "gc": "Throw away what nothing uses",
    "bench": "Measure Toft on this machine",
    "config": "Show every option, its value and where it is from: show",
    "version": "Print the version",
}
#: Commands whose exit status is another command's: their own failures use the statuses that shells reserve.
_STAND_INS = ("run", "psql")


def main(words: Sequence[str] | None = None) -> int:
    """Run `toft` with these words; gives the exit status. Never raises."""
    words = sys.argv[1:] if words is None else words
    _fill_standard_streams()
    own = words[: words.index("--")] if "--" in words else words
    show = Show(is_json="--json" in own)
    try:
        status = _dispatch(words, show)
        sys.stdout.flush()
        return status
    except ToftError as error:
        show.error(error)
        if words and words[0] in _STAND_INS and error.exit_status < EXIT_TOFT_FAILED:
            return EXIT_TOFT_FAILED
        return error.exit_status
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has had enough
        return 141
    except KeyboardInterrupt:
        from toft.cli.child import die_by

        return die_by(2)
    except Exception as error:  # no traceback reaches a user
        show.error(ToftError(cause=f"{type(error).__name__}: {error}"))
        return EXIT_TOFT_FAILED


def _fill_standard_streams() -> None:
    """Where the caller closed one, no descriptor of ours may take its place. The command finds it closed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one; closed on exec
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 -- as long as we live
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _dispatch(words: Sequence[str], show: Show) -> int:
    if not words or words[0] in ("--help", "-h", "help"):
        show.text(overview())
        return 0 if words else 2
    name, *rest = words
    if name == "--version":
        name = "version"
    if name not in COMMANDS:
        raise UsageError(command="toft", cause=f"there is no command `{name}`")
    usage, command, rest = find_command(name, rest)
    arguments = argv.parse(usage, rest)
    if arguments.has("help"):
        show.text(usage.help())
        return 0
    from toft.cli.context import Context

    return command(Context(usage, arguments, show))


def find_command(name: str, words: Sequence[str]) -> tuple[Usage, Command, Sequence[str]]:
    """The usage and the function of a command, and the words that are left for it."""
    module_name = f"toft.cli.commands.{name.replace('-', '_')}"
    __import__(module_name)
    module = sys.modules[module_name]
    usage: Usage | dict[str, tuple[Usage, Command]] = module.USAGE
    if not isinstance(usage, dict):
        return usage, module.main, words
    if words and words[0] in usage:
        return *usage[words[0]], words[1:]
    if not words or words[0] in ("--help", "-h"):
        return overview_usage(name, usage), _print_help, ["--help"]
    raise UsageError(command=f"toft {name}", cause=f"there is no command `{name} {words[0]}`")


def overview_usage(name: str, usages: dict[str, tuple[Usage, Command]]) -> Usage:
    """The usage of a command of several words: a list of them."""
    width = max(map(len, usages)) + 2
    lines = (f"  {word:{width}}{usage.prose.splitlines()[0]}" for word, (usage, _) in usages.items())
    return argv.Usage(f"toft {name} {'|'.join(usages)}", "\n".join(lines))


def _print_help(context: object) -> int:
    raise AssertionError(context)  # its only word is --help


def overview() -> str:
    """The help of `toft` itself."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:{width}}{prose}" for name, prose in COMMANDS.items()]
    return "\n".join(
        [
            "usage: toft COMMAND [OPTIONS] …; `toft COMMAND --help` shows the options of each",
            "A Supabase-compatible backend of its own for every command: begin with `toft run -- pytest`.",
            "",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
