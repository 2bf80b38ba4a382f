"""Pure: the words of a command line become options and operands, and the help is made of the same table.

argparse would cost as much as starting Python. Long options only, with `--name value` or `--name=value`;
the few that people expect to be short have one letter too.
"""

from __future__ import annotations

from toft.errors.daemon import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Flag:
    """An option. takes: how its value is called in the help, or None when it has none."""

    def __init__(self, name: str, prose: str, takes: str | None = None, *, short: str = "") -> None:
        self.name = name
        self.prose = prose
        self.takes = takes
        self.short = short

    @property
    def left(self) -> str:
        """The left column of the help."""
        names = f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"
        return f"{names} {self.takes}" if self.takes else names


JSON = Flag("json", "Print JSON; errors too, on stderr.")
HELP = Flag("help", "Print this help.", short="h")


class Usage:
    """How one command is called.

    operands: as shown in the usage line (`[LEASE]`, `-- CMD [ARG…]`). most: how many operands it takes.
    takes_command: everything from the first operand on belongs to another command and is not looked at.
    """

    def __init__(
        self,
        name: str,
        prose: str,
        flags: Sequence[Flag] = (),
        operands: str = "",
        *,
        least: int = 0,
        most: int = 0,
        takes_command: bool = False,
        examples: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.prose = prose
        self.flags = (*flags, JSON, HELP)
        self.operands = operands
        self.least = least
        self.most = most
        self.takes_command = takes_command
        self.examples = examples

    def help(self) -> str:
        """The help text; it fits a screen."""
        line = " ".join(part for part in ("usage:", self.name, "[OPTIONS]", self.operands) if part)
        lines = [line, "", self.prose, ""]
        width = max(len(flag.left) for flag in self.flags) + 2
        lines += [f"  {flag.left:{width}}{flag.prose}" for flag in self.flags]
        if self.examples:
            lines += ["", *(f"  $ {example}" for example in self.examples)]
        return "\n".join(lines) + "\n"


class Arguments:
    """What was given: values by option name, operands, and whether help was asked for."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.switches: set[str] = set()
        self.operands: list[str] = []
        #: what followed `--` in a command that takes operands of its own as well
        self.rest: list[str] = []

    def has(self, name: str) -> bool:
        """Whether a switch was given."""
        return name in self.switches

    def get(self, name: str) -> str | None:
        """The value of an option, or None."""
        return self.values.get(name)


def parse(usage: Usage, words: Sequence[str]) -> Arguments:
    """Raises UsageError with one sentence."""
    arguments = Arguments()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            arguments.rest = list(words[at:])
            break
        if len(word) < 2 or not word.startswith("-"):
            if usage.takes_command:
                arguments.rest = [word, *words[at:]]
                break
            arguments.operands.append(word)
            continue
        name, has_value, value = word.partition("=")
        flag = _find(usage, name)
        if flag.takes is None:
            if has_value:
                raise UsageError(command=usage.name, cause=f"`{name}` takes no value")
            arguments.switches.add(flag.name)
        elif has_value:
            arguments.values[flag.name] = value
        elif at < len(words) and words[at] != "--":
            arguments.values[flag.name] = words[at]
            at += 1
        else:
            raise UsageError(command=usage.name, cause=f"`{name}` needs a value: {flag.takes}")
    if not arguments.has("help"):
        _count_operands(usage, arguments)
    return arguments


def _find(usage: Usage, name: str) -> Flag:
    for flag in usage.flags:
        if name == f"--{flag.name}" or (flag.short and name == f"-{flag.short}"):
            return flag
    near = [f"`--{flag.name}`" for flag in usage.flags if name[2:4] and flag.name.startswith(name[2:4])]
    did_you_mean = f"; did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(command=usage.name, cause=f"there is no option `{name}`{did_you_mean}")


def _count_operands(usage: Usage, arguments: Arguments) -> None:
    count = len(arguments.operands)
    if usage.takes_command:
        if not arguments.rest:
            raise UsageError(command=usage.name, cause="no command was given to run")
    elif count < usage.least:
        raise UsageError(command=usage.name, cause=f"it needs {usage.operands}")
    elif count > usage.most:
        raise UsageError(command=usage.name, cause=f"`{arguments.operands[usage.most]}` is one word too many")
