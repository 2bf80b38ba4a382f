"""What every command is given: its arguments, the settings, a way to the daemon, a way to the user."""

from __future__ import annotations

from toft import settings as options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from toft.cli.argv import Arguments, Usage
    from toft.cli.show import Show
    from toft.client.backend import Daemon

    type Command = Callable[[Context], int]


class Context:
    """One call of one command."""

    def __init__(self, usage: Usage, arguments: Arguments, show: Show) -> None:
        self.usage = usage
        self.arguments = arguments
        self.show = show
        self.environ = options.environment()
        ttl = arguments.get("ttl")
        self.settings = options.load(self.environ, {"ttl": ttl} if ttl is not None else {})
        for warning in self.settings.warnings:
            show.warning(warning)

    def daemon(self, *, may_start: bool = True) -> Daemon:
        """The daemon of this user's home; started by the first call if need be and allowed."""
        from toft.client.backend import Daemon

        return Daemon(self.settings, self.environ, options.python(), may_start=may_start)
