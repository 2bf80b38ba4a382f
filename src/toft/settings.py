"""Every option of Toft, declared once: name, kind, default, environment variable, prose.

A flag wins over `TOFT_*`, that over `$TOFT_HOME/config.toml`, that over the default. Each process calls
`load()` once in its `main` and passes on the part that a room needs; no other module reads the environment.

On the CLI's quick path: `os` only, no pathlib, and tomllib just when there is a file to read. So a path is
a `str` here; whoever wants more makes a `Path` of it.
"""

from __future__ import annotations

import os
import sys

from toft.errors.daemon import HomeUnusable
from toft.errors.setting import SettingInvalid, SettingUnknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Generic, Self, TypeVar, overload

    T = TypeVar("T")
else:  # the typing module costs more than everything else here

    class Generic:
        def __class_getitem__(cls, _):
            return cls

    T = None

    def overload(function):
        return function


#: variables that Toft sets or reads and that are no options
NOT_OPTIONS = frozenset({"TOFT_INSTANCE_ID", "TOFT_LEASE_CREDENTIAL", "TOFT_BENCH_DIR"})

#: A Unix socket's path holds 107 bytes; the longest of ours under the run folder is a backend's lock file.
LONGEST_RUN = 107 - len("/b/b_0123456789abcdef/.s.PGSQL.5432.lock")

MINUTE = 60
YEAR = 365 * 24 * 3600
_UNITS = {"": 1, "s": 1, "m": MINUTE, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600, "y": YEAR}
_SIZES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Option(Generic[T]):
    """One option. As an attribute of `Settings` it gives the value; on the class, the declaration itself."""

    def __init__(
        self,
        parse: Callable[[str], T],
        default: T | Callable[[Mapping[str, str], Settings], T],
        prose: str,
        *,
        takes: str,
        in_file: bool = True,
    ) -> None:
        self.parse = parse
        self.default = default
        self.prose = prose
        self.takes = takes
        self.in_file = in_file
        self.name = ""

    def __set_name__(self, owner: type[object], name: str) -> None:
        self.name = name

    @property
    def env(self) -> str:
        """The environment variable that sets it."""
        return "TOFT_" + self.name.upper()

    @overload
    def __get__(self, settings: None, owner: type[object]) -> Self: ...
    @overload
    def __get__(  # noqa: F811 -- overloads
        self, settings: Settings, owner: type[object]
    ) -> T: ...
    def __get__(  # noqa: F811 -- overloads
        self, settings: Settings | None, owner: type[object]
    ) -> Self | T:
        if settings is None:
            return self
        value: T = settings.values[self.name]  # pyright: ignore[reportAssignmentType] -- put there by `load`, which parsed it with this option
        return value

    def __set__(self, settings: Settings, value: T) -> None:
        raise AttributeError(f"settings do not change after they are loaded: {self.name}")


def parse_seconds(text: str) -> int:
    """`90`, `90s`, `30m`, `2h`, `1d`, `1w`, `10y` as seconds."""
    return _scaled(text, _UNITS, "a time like 30m, 2h or 90s")


def parse_bytes(text: str) -> int:
    """`4096`, `64k`, `256M`, `2G`, also `2GiB`, as bytes."""
    lowered = text.strip().lower()
    for ending in ("ib", "b"):
        if lowered.endswith(ending) and len(lowered) > len(ending):
            lowered = lowered.removesuffix(ending)
            break
    return _scaled(lowered, _SIZES, "a size like 64M, 2G or a number of bytes")


def _scaled(text: str, units: Mapping[str, int], wanted: str) -> int:
    stripped = text.strip().lower()
    digits = stripped.rstrip("abcdefghijklmnopqrstuvwxyz")
    scale = units.get(stripped[len(digits) :].strip())
    if scale is None or not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise ValueError(f"it takes {wanted}")
    return int(digits) * scale


def _count(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = text.strip()
        if not (number.isascii() and number.isdigit()) or not least <= int(number[:18]) <= most:
            raise ValueError(f"it takes a whole number from {least} to {most}")
        return int(number)

    return parse


def _choice(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"it takes one of {', '.join(words)}")
        return text

    return parse


def _path(text: str) -> str:
    if not text:
        raise ValueError("it takes a path")
    return os.path.realpath(os.path.expanduser(text))


def _optional_path(text: str) -> str | None:
    return _path(text) if text else None


def _run_path(text: str) -> str:
    path = _path(text)
    if len(os.fsencode(path)) > LONGEST_RUN:
        raise ValueError(f"sockets go in there, so it may have at most {LONGEST_RUN} bytes")
    return path


def _default_home(environ: Mapping[str, str], _: Settings) -> str:
    data = environ.get("XDG_DATA_HOME", "")
    if data.startswith("/"):
        return _path(data + "/toft")
    return "/var/lib/toft" if os.geteuid() == 0 else _path("~/.local/share/toft")


def _default_run(environ: Mapping[str, str], settings: Settings) -> str:
    import binascii

    name = format(binascii.crc32(os.fsencode(settings.home)), "08x")  # tells homes apart, guards nothing
    if os.geteuid() == 0:
        return "/run/toft/" + name
    given = environ.get("XDG_RUNTIME_DIR", "")
    path = f"{given}/toft/{name}"
    if given.startswith("/") and len(os.fsencode(path)) <= LONGEST_RUN:
        return path
    return f"/tmp/toft-{os.geteuid()}/{name}"  # noqa: S108 -- made 0700 and its owner checked by who opens it


def _default_workers(_environ: Mapping[str, str], _settings: Settings) -> int:
    return len(os.sched_getaffinity(0))


class Settings:
    """The options of this process: read-only. `origins` says where each is from, `warnings` what was odd."""

    home = Option(_path, _default_home, "Where everything that Toft keeps is.", takes="PATH", in_file=False)
    run = Option(_run_path, _default_run, "Where its sockets are; a short path.", takes="PATH", in_file=False)
    pg_bindir = Option[str | None](
        _optional_path, None, "The bin folder of a Postgres 15 to 18 to use before all others.", takes="PATH"
    )
    ttl = Option(parse_seconds, 30 * MINUTE, "How long a lease lives without being renewed.", takes="TIME")
    pool_size = Option(
        _count(0, 1000), 2, "Started, ready backends kept for each template in use.", takes="COUNT"
    )
    pool_cloned = Option(
        _count(0, 1000), 2, "Cloned, stopped backends kept for each template in use.", takes="COUNT"
    )
    max_backends = Option(_count(1, 100_000), 1000, "Backends on this machine at a time.", takes="COUNT")
    sleep_after = Option(
        parse_seconds, 15 * MINUTE, "An idle backend sleeps after this time; 0 means never.", takes="TIME"
    )
    templates_kept = Option(_count(1, 100_000), 20, "Project templates kept on disk.", takes="COUNT")
    templates_bytes = Option(parse_bytes, 2 << 30, "Disk that project templates may use.", takes="SIZE")
    confine = Option(
        _choice("auto", "bubblewrap", "setpriv", "none"),
        "auto",
        "How a Postgres is kept from the rest of the machine.",
        takes="auto|bubblewrap|setpriv|none",
    )
    workers = Option(_count(1, 1024), _default_workers, "Gateway processes; one per core.", takes="COUNT")
    uid_base = Option(
        _count(1, 0x7FFF_0000),
        400_000,
        "First of the user ids that backends run under when the daemon is root.",
        takes="UID",
    )
    max_body = Option(parse_bytes, 64 << 20, "The largest body of a Data API request.", takes="SIZE")
    disk_quota = Option(parse_bytes, 1 << 30, "Disk that one backend may use.", takes="SIZE")
    log_level = Option(
        _choice("debug", "info", "warning", "error"), "info", "What the daemon's log tells.", takes="LEVEL"
    )

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.origins: dict[str, str] = {}
        self.warnings: list[str] = []


type AnyOption = Option[str] | Option[str | None] | Option[int]


def options() -> list[AnyOption]:
    """All options in the order of their declaration."""
    return [option for option in vars(Settings).values() if isinstance(option, Option)]


def environment() -> dict[str, str]:
    """A copy of this process's environment, for who starts a command or asks for a variable by name."""
    return dict(os.environ)


def load(environ: Mapping[str, str] | None = None, flags: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. flags: option name → text, for options given on the command line.

    Raises `SettingInvalid` and `SettingUnknown` (unknown keys in config.toml). Unknown `TOFT_*` variables
    only make a warning: they may belong to another version.
    """
    environ = os.environ if environ is None else environ
    given = flags or {}
    settings = Settings()
    written: Mapping[str, str] | None = None
    for option in options():
        if option.name in given:
            text, origin = given[option.name], "--" + option.name.replace("_", "-")
        elif environ.get(option.env):
            text, origin = environ[option.env], option.env
        else:
            if written is None and option.in_file:
                written = _read_file(settings.home + "/config.toml")
            text, origin = (written or {}).get(option.name), "config.toml"
        if text is None:
            default = option.default
            settings.values[option.name] = default(environ, settings) if callable(default) else default
            settings.origins[option.name] = "default"
            continue
        try:
            settings.values[option.name] = option.parse(text)
        except ValueError as error:
            raise SettingInvalid(origin=origin, value=text, name=option.name, cause=str(error)) from None
        settings.origins[option.name] = origin
    known = NOT_OPTIONS.union(option.env for option in options())
    for name in environ:
        if name.startswith("TOFT_") and name not in known:
            settings.warnings.append(f"there is no option for the variable `{name}`")
    return settings


def _read_file(path: str) -> Mapping[str, str]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise HomeUnusable(path=path, cause=os.strerror(error.errno or 0)) from None
    import tomllib

    try:
        entries = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingInvalid(origin=path, value=str(error), name="config.toml", cause="no TOML") from None
    allowed = {option.name for option in options() if option.in_file}
    for name in entries:
        if name not in allowed:
            raise SettingUnknown(origin=path, name=name)
    return {name: str(value) for name, value in entries.items()}


def python() -> str:
    """The interpreter that runs Toft, for its other processes."""
    return sys.executable
