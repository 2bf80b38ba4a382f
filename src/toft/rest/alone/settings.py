"""Pure: upstream's configuration names and texts become options.

Values come from a file (`db-schemas = "api"`), from the environment (`PGRST_DB_SCHEMAS`, which wins over it),
from the database (`pgrst.db_schemas`, which wins over both), or from `PGRST_CONFIG_JSON`, an object by
upstream's names for what a comma-separated list cannot say.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from toft.rest.alone.bearer import BadSecret, RolePath, parse_role_path, read_keys
from toft.rest.options import RestOptions
from toft.rest.schema.model import Name

PREFIX: Final = "PGRST_"
_APP: Final = "app_settings_"
_HOISTED: Final = "statement_timeout,plan_filter.statement_cost_limit,default_transaction_isolation"
_DEFAULT_URI: Final = "postgresql://"
_DEFAULT_PORT: Final = 3000
_LAST_PORT: Final = 65535
#: Upstream listens everywhere; here the world is let in by name.
_LOOPBACK: Final = "127.0.0.1"
#: level → what we say about ourselves, and from which status on requests are told
_LEVELS: Final = {
    "crit": (logging.CRITICAL, 1000),
    "error": (logging.WARNING, 500),
    "warn": (logging.WARNING, 400),
    "info": (logging.INFO, 0),
    "debug": (logging.DEBUG, 0),
}
_LINE: Final = re.compile(r"""\s*([A-Za-z][\w.-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s#"]+))\s*(?:\#.*)?$""")


class BadSetting(ValueError):
    """A setting that cannot be understood; the message names it."""


class Standalone(msgspec.Struct, frozen=True):
    """Everything that a Data API which stands alone is told."""

    db_uri: str
    options: RestOptions
    keys: Any
    audience: str | None
    role_path: RolePath
    tokens_kept: int
    pool_size: int
    pool_idle_seconds: float
    host: str
    port: int
    unix_socket: str | None
    unix_socket_mode: int
    admin_host: str
    admin_port: int | None
    channel: str | None
    allowed_origins: tuple[str, ...] | None
    pre_config: str | None
    reads_database_config: bool
    #: a level of Python's logging
    log_level: int
    #: requests are logged whose status is at least this
    logs_from_status: int

    def __repr__(self) -> str:
        return f"Standalone(port={self.port})"


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The PGRST_ variables by lower-case name without the prefix."""
    found: dict[str, str] = {}
    for name, value in environ.items():
        if name.startswith(PREFIX):
            found[name.removeprefix(PREFIX).lower()] = value
    return found


def from_file(text: str) -> dict[str, str]:
    """The settings of a configuration file: one `name = value` a line, `#` begins a remark.

    Raises `BadSetting` with the number of the line.

    >>> from_file('db-schemas = "api, public" # both\\nserver-port = 3001')
    {'db_schemas': 'api, public', 'server_port': '3001'}
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise BadSetting(f"line {number} of the configuration file is not `name = value`")
        name, quoted, bare = match.groups()
        value = bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        found[name.replace("-", "_").replace(".", "_").lower()] = value
    return found


def from_database(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of the role, `pgrst.` taken off."""
    return {
        name.removeprefix("pgrst.").replace(".", "_").lower(): value
        for name, value in settings.items()
        if name.startswith("pgrst.")
    }


def _names_of(text: str) -> tuple[str, ...]:
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def _listed(value: Any) -> tuple[str, ...] | None:
    """A list out of `PGRST_CONFIG_JSON`."""
    if isinstance(value, list):
        return tuple(str(item) for item in cast("list[Any]", value))
    return None


class _Reader:
    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        raw = values.get("config_json", "")
        try:
            exact = msgspec.json.decode(raw, type=dict[str, Any]) if raw else {}
        except msgspec.DecodeError:
            raise BadSetting("config-json is no JSON object") from None
        self._exact = {_canonical(name): value for name, value in exact.items()}

    def text(self, name: str, default: str | None = None) -> str | None:
        """The value, or the default when it is not set or empty."""
        return self._values.get(name) or default

    def flag(self, name: str, default: bool) -> bool:
        value = (self.text(name) or "").strip().lower()
        if value in {"true", "1", "yes", "on"}:
            return True
        if value in {"false", "0", "no", "off"}:
            return False
        return default

    def number(self, name: str, default: int | None) -> int | None:
        value = self.text(name)
        if value is None:
            return default
        if not re.fullmatch(r"\s*-?\d+\s*", value):
            raise BadSetting(f"{name.replace('_', '-')} is not a number: {value}")
        return int(value)

    def names(self, name: str, default: str) -> tuple[str, ...]:
        exact = _listed(self._exact.get(name))
        if exact is not None:
            return exact
        value = self._values.get(name)
        return _names_of(default if value is None else value)

    def app_settings(self) -> tuple[tuple[str, bytes], ...]:
        return tuple(
            (f"app.settings.{name.removeprefix(_APP)}", value.encode())
            for name, value in self._values.items()
            if name.startswith(_APP)
        )


def _canonical(name: str) -> str:
    """`DbSchemas` and `db-schemas` as `db_schemas`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower().replace("-", "_")


def read_settings(values: Mapping[str, str]) -> Standalone:
    """Raises `BadSetting`."""
    reader = _Reader(values)
    secret = reader.text("jwt_secret")
    try:
        keys = (
            None
            if secret is None
            else read_keys(secret, is_base64=reader.flag("jwt_secret_is_base64", False))
        )
        role_path = parse_role_path(reader.text("jwt_role_claim_key", ".role") or ".role")
    except BadSecret as error:
        raise BadSetting(str(error)) from None
    origins = reader.names("server_cors_allowed_origins", "")
    level = reader.text("log_level", "error") or "error"
    if level not in _LEVELS:
        raise BadSetting(f"log-level is none of {', '.join(_LEVELS)}: {level}")
    log_level, logs_from_status = _LEVELS[level]
    host = reader.text("server_host", _LOOPBACK) or _LOOPBACK
    return Standalone(
        db_uri=reader.text("db_uri", _DEFAULT_URI) or _DEFAULT_URI,
        options=_options(reader),
        keys=keys,
        audience=reader.text("jwt_aud"),
        role_path=role_path,
        tokens_kept=reader.number("jwt_cache_max_entries", 1000) or 0,
        pool_size=reader.number("db_pool", 10) or 10,
        pool_idle_seconds=float(reader.number("db_pool_max_idletime", 30) or 30),
        host=_host(host),
        port=_port("server-port", reader.number("server_port", _DEFAULT_PORT)) or 0,
        unix_socket=reader.text("server_unix_socket"),
        unix_socket_mode=_mode(reader.text("server_unix_socket_mode", "660") or "660"),
        admin_host=_host(reader.text("admin_server_host") or host),
        admin_port=_port("admin-server-port", reader.number("admin_server_port", None)),
        channel=reader.text("db_channel", "pgrst") if reader.flag("db_channel_enabled", True) else None,
        allowed_origins=origins or None,
        pre_config=reader.text("db_pre_config"),
        reads_database_config=reader.flag("db_config", True),
        log_level=log_level,
        logs_from_status=logs_from_status,
    )


def _host(text: str) -> str:
    """Upstream's words for "any address"."""
    return {"!4": "0.0.0.0", "*4": "0.0.0.0", "!6": "::", "*6": "::", "*": "0.0.0.0"}.get(text, text)  # noqa: S104


def _mode(text: str) -> int:
    if not re.fullmatch("[0-7]{3,4}", text):
        raise BadSetting(f"server-unix-socket-mode is not an octal number: {text}")
    return int(text, 8)


def _port(name: str, number: int | None) -> int | None:
    if number is not None and not 0 <= number <= _LAST_PORT:
        raise BadSetting(f"{name} is not a port: {number}")
    return number


def _options(reader: _Reader) -> RestOptions:
    schemas = reader.names("db_schemas", reader.text("db_schema", "public") or "public")
    if not schemas:
        raise BadSetting("db-schemas is empty")
    pre_request = reader.text("db_pre_request")
    root = reader.text("db_root_spec")
    tx_end = reader.text("db_tx_end", "commit") or "commit"
    if tx_end not in {"commit", "commit-allow-override", "rollback", "rollback-allow-override"}:
        raise BadSetting(f"db-tx-end is none of those there are: {tx_end}")
    return RestOptions(
        schemas=schemas,
        extra_search_path=reader.names("db_extra_search_path", "public"),
        max_rows=reader.number("db_max_rows", reader.number("max_rows", None)),
        anon_role=reader.text("db_anon_role"),
        pre_request=None if pre_request is None else _qualified(pre_request),
        root_function=None if root is None else _qualified(root).name,
        aggregates=reader.flag("db_aggregates_enabled", False),
        plans=reader.flag("db_plan_enabled", False),
        rolls_back=tx_end.startswith("rollback"),
        allows_transaction_preference=tx_end.endswith("allow-override"),
        prepares_statements=reader.flag("db_prepared_statements", True),
        hoisted_settings=reader.names("db_hoisted_tx_settings", _HOISTED),
        app_settings=reader.app_settings(),
        openapi_mode=reader.text("openapi_mode", "follow-privileges") or "follow-privileges",
        openapi_security=reader.flag("openapi_security_active", False),
        openapi_server_url=reader.text("openapi_server_proxy_uri"),
        timing=reader.flag("server_timing_enabled", False),
        trace_header=reader.text("server_trace_header"),
        requires_filter=False,
        explains=reader.flag("toft_explain", False),
        max_body_bytes=reader.number("toft_max_body", None) or RestOptions().max_body_bytes,
        acquire_seconds=float(reader.number("db_pool_acquisition_timeout", 10) or 10),
    )


def _qualified(text: str) -> Name:
    parts = [quoted or bare for quoted, bare in re.findall(r'"((?:[^"]|"")*)"|([^".]+)', text)]
    return Name("", parts[0]) if len(parts) == 1 else Name(parts[0], ".".join(parts[1:]))
