"""Pure: single keys of `supabase/config.toml`, each read on its own.

A value of the wrong kind is said and replaced by the default; `env(NAME)` is replaced from the variables that
the bundle brings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from toft.migrate.notice import Notice, warning
from toft.migrate.toml import Table, as_list, as_table, line_of
from toft.protocol.bundle import CONFIG

_ENV = re.compile(r"env\((.*)\)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([kmgtp]?)i?b?", re.IGNORECASE)
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TRUTH = {"true": True, "1": True, "false": False, "0": False}

#: dotted (`api.schemas`), or its parts when one of them may hold a dot itself
type Path = str | tuple[str, ...]


def _parts(path: Path) -> tuple[str, ...]:
    return tuple(path.split(".")) if isinstance(path, str) else path


class Keys:
    """The tables of a config.toml, and the notices that reading them brings up."""

    def __init__(self, tables: Table, text: str, env: Mapping[str, str], notices: list[Notice]) -> None:
        self._tables = tables
        self._text = text
        self._env = env
        self._notices = notices

    def say(self, path: Path, words: str, level: Callable[[str], Notice] = warning) -> None:
        """A notice with the line of the key. `{key}` in the words stands for it."""
        key = ".".join(_parts(path))
        words = words.replace("{key}", f"`{key}`")
        self._notices.append(level(f"{CONFIG}:{line_of(self._text, _parts(path))}: {words}"))

    def value(self, path: Path) -> object:
        """The raw value, or None."""
        at: object = self._tables
        for key in _parts(path):
            table = as_table(at)
            if table is None:
                return None
            at = table.get(key)
        return at

    def table(self, path: Path) -> Table:
        value = self.value(path)
        table = as_table(value)
        if table is None and value is not None:
            self.say(path, "{key} is not a table")
        return table or {}

    def env(self, path: Path, value: str) -> str | None:
        """A text after `env(NAME)` was replaced; None when the variable is not set, which is said."""
        asked = _ENV.fullmatch(value)
        if asked is None:
            return value
        known = self._env.get(asked[1])
        if not known:
            self.say(path, f"the environment variable {asked[1]} is not set")
        return known or None

    def text(self, path: Path, default: str) -> str:
        value = self.value(path)
        if isinstance(value, str):
            known = self.env(path, value)
            return value if known is None else known  # the CLI, too, leaves it as it stands
        if value is not None:
            self.say(path, f"{{key}} is not a text; `{default}` is used")
        return default

    def texts(self, path: Path, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self.value(path)
        if value is None:
            return default
        if isinstance(value, str):
            parts = (self.env(path, value) or "").split(",")
            return tuple(part.strip() for part in parts if part.strip())
        items = as_list(value)
        if items is None or not all(isinstance(item, str) for item in items):
            self.say(path, "{key} is not a list of texts; the default is used")
            return default
        return tuple(self.env(path, item) or item for item in items if isinstance(item, str))

    def flag(self, path: Path, default: bool) -> bool:
        value = self.value(path)
        if isinstance(value, str):
            text = self.env(path, value)
            if text is None:
                return default
            value = _TRUTH.get(text.lower(), text)
        if isinstance(value, bool):
            return value
        if value is not None:
            self.say(path, f"{{key}} is neither true nor false; {str(default).lower()} is used")
        return default

    def number(self, path: Path, default: int, least: int = 0) -> int:
        value = self.value(path)
        if isinstance(value, str):
            text = self.env(path, value)
            if text is None:
                return default
            value = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text
        if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**31:
            return value
        if value is not None:
            self.say(path, f"{{key}} is not a number of {least} or more; {default} is used")
        return default

    def size(self, path: Path, default: int) -> int:
        """Bytes out of `50MiB`, `5MB`, `500KB`: all units are powers of 1024, as in the CLI."""
        value = self.value(path)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if isinstance(value, str):
            text = self.env(path, value)
            if text is None:
                return default
            if match := _SIZE.fullmatch(text.strip()):
                return int(float(match[1]) * 1024 ** " kmgtp".index(match[2].lower() or " "))
        if value is not None:
            self.say(path, "{key} is not a size like 50MiB; the default is used")
        return default

    def duration(self, path: Path, default: float) -> float:
        """Seconds out of `1s`, `1h30m`, `500ms`."""
        value = self.value(path)
        if isinstance(value, str):
            text = self.env(path, value)
            if text is None:
                return default
            if text == "0":
                return 0.0
            if _DURATION.fullmatch(text):
                return sum(float(part[1]) * _SECONDS[part[2]] for part in _DURATION_PART.finditer(text))
        if value is not None:
            self.say(path, "{key} is not a duration like 90s or 1h30m; the default is used")
        return default


def unknown_keys(
    tables: Table, known: Mapping[str, frozenset[str] | None], prefix: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The paths that are not in `known`: table → its keys, or None where anything may stand."""
    expected = known[".".join(prefix)] or frozenset()
    for key, value in tables.items():
        path = (*prefix, key)
        name = ".".join(path)
        table = as_table(value)
        if name in known and table is not None:
            if known[name] is not None:
                yield from unknown_keys(table, known, path)
        elif key not in expected:
            yield path
