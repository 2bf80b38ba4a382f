"""Pure: the keys of `supabase/config.toml` that matter for a lease. Everything else is passed over.

The Supabase CLI refuses a file for any fault in it; here each key is read on its own, and a fault becomes a
notice with its line. Values of the form `env(NAME)` are replaced from the bundle's variables.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator, Mapping

import msgspec

from toft.migrate.config_auth import read_auth
from toft.migrate.keys import Keys, Path, unknown_keys
from toft.migrate.notice import Notice, info, warning
from toft.migrate.toml import Table, as_table, lay_over, read_toml
from toft.protocol.bundle import CONFIG, Bundle
from toft.protocol.worker import RestSettings, ServiceSettings, StorageSettings

_DEFAULT_SEED = ("./seed.sql",)
_MOST_NOTICES = 40
_MAJORS = range(12, 30)

#: `[db.settings]` that a database can have of its own; the rest belongs to the server, which Toft governs
_DATABASE_SETTINGS = frozenset({
    "effective_cache_size", "logical_decoding_work_mem", "maintenance_work_mem",
    "max_parallel_maintenance_workers", "max_parallel_workers", "max_parallel_workers_per_gather",
    "session_replication_role", "statement_timeout", "work_mem",
})  # fmt: skip
_SERVER_SETTINGS = frozenset({
    "max_connections", "max_locks_per_transaction", "max_replication_slots", "max_slot_wal_keep_size",
    "max_standby_archive_delay", "max_standby_streaming_delay", "max_wal_senders", "max_wal_size",
    "max_worker_processes", "shared_buffers", "track_activity_query_size", "track_commit_timestamp",
    "wal_keep_size", "wal_sender_timeout",
})  # fmt: skip

#: table → its keys; None: anything may stand in it (its own names, or nothing that concerns a lease)
_KNOWN: dict[str, frozenset[str] | None] = {
    "": frozenset({"project_id"}),
    "api": frozenset({
        "enabled", "port", "schemas", "extra_search_path", "max_rows", "auto_expose_new_tables",
        "external_url",
    }),
    "api.tls": None,
    "db": frozenset({"port", "shadow_port", "health_timeout", "major_version", "root_key"}),
    "db.pooler": None,
    "db.migrations": frozenset({"enabled", "schema_paths"}),
    "db.seed": frozenset({"enabled", "sql_paths"}),
    "db.settings": _DATABASE_SETTINGS | _SERVER_SETTINGS,
    "db.vault": None,
    "db.network_restrictions": None,
    "db.ssl_enforcement": None,
    "auth": frozenset({
        "enabled", "site_url", "external_url", "additional_redirect_urls", "jwt_expiry", "jwt_issuer",
        "signing_keys_path", "enable_refresh_token_rotation", "refresh_token_reuse_interval",
        "enable_signup", "enable_anonymous_sign_ins", "enable_manual_linking", "minimum_password_length",
        "password_requirements", "publishable_key", "secret_key", "jwt_secret", "anon_key",
        "service_role_key",
    }),
    "auth.email": frozenset({
        "enable_signup", "double_confirm_changes", "enable_confirmations", "secure_password_change",
        "max_frequency", "otp_length", "otp_expiry",
    }),
    "auth.email.smtp": None,
    "auth.email.template": None,
    "auth.email.notification": None,
    "auth.rate_limit": None,
    "auth.captcha": None,
    "auth.sms": None,
    "auth.sessions": None,
    "auth.hook": None,
    "auth.mfa": None,
    "auth.external": None,
    "auth.web3": None,
    "auth.third_party": None,
    "auth.oauth_server": None,
    "auth.passkey": None,
    "auth.webauthn": None,
    "storage": frozenset({"enabled", "file_size_limit"}),
    "storage.buckets": None,
    "storage.image_transformation": None,
    "storage.s3_protocol": None,
    "storage.analytics": None,
    "storage.vector": None,
    "realtime": None,
    "studio": None,
    "inbucket": None,
    "local_smtp": None,
    "edge_runtime": None,
    "functions": None,
    "analytics": None,
    "experimental": None,
    "remotes": None,
}  # fmt: skip


class Secret(msgspec.Struct, frozen=True):
    """A value that must not be printed."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


class BucketFile(msgspec.Struct, frozen=True):
    """A file below a bucket's `objects_path`: the object's key, its path in the bundle, and its digest."""

    key: str
    path: str
    sha256: str


class Bucket(msgspec.Struct, frozen=True):
    """`[storage.buckets.<id>]`. Without a limit of its own the service's holds. files: what is put in."""

    id: str
    public: bool = False
    file_size_limit_bytes: int | None = None
    allowed_mime_types: tuple[str, ...] | None = None
    files: tuple[BucketFile, ...] = ()


class ProjectConfig(msgspec.Struct, frozen=True):
    """What config.toml says, with the defaults of the Supabase CLI for what it does not say."""

    project_id: str = ""
    #: None: the file names no major version
    major_version: int | None = None
    services: ServiceSettings = ServiceSettings()
    auto_expose_new_tables: bool = True
    #: `[experimental.webhooks]`: the database gets pg_net, which they call
    webhooks_enabled: bool = False
    migrations_enabled: bool = True
    seed_enabled: bool = True
    seed_patterns: tuple[str, ...] = _DEFAULT_SEED
    #: the file names the seeds itself, so one that is missing is worth a word
    seed_is_explicit: bool = False
    db_settings: tuple[tuple[str, str], ...] = ()
    vault: tuple[Secret, ...] = ()
    buckets: tuple[Bucket, ...] = ()


def read_config(bundle: Bundle, project_ref: str | None = None) -> tuple[ProjectConfig, tuple[Notice, ...]]:
    """The configuration, and what the user should hear about it.

    project_ref: the `[remotes.*]` table with this `project_id` overrides the rest, as for a hosted branch.
    """
    raw = bundle.files.get(CONFIG)
    if raw is None:
        return ProjectConfig(), ()
    text = raw.decode("utf-8-sig", "replace")
    notices: list[Notice] = []
    if "\ufffd" in text:
        line = text.count("\n", 0, text.index("\ufffd")) + 1
        notices.append(warning(f"{CONFIG}:{line}: the file is not UTF-8"))
    tables, faults = read_toml(text)
    notices += [warning(f"{CONFIG}:{fault.line}: not TOML: {fault.reason}") for fault in faults]
    is_remote = _override(tables, project_ref)
    keys = Keys(tables, text, bundle.env, notices)
    for path in unknown_keys(tables, _KNOWN):
        keys.say(path, "unknown key {key} is passed over")
    config = _read(keys, bundle.files, seeds_by_default=not is_remote)
    if len(notices) > _MOST_NOTICES:
        notices[_MOST_NOTICES:] = [warning(f"{CONFIG}: and {len(notices) - _MOST_NOTICES} more like these")]
    return config, tuple(notices)


def _override(tables: Table, project_ref: str | None) -> bool:
    """Lay the chosen `[remotes.*]` table over the others. It has no seeds unless it says so itself."""
    if project_ref is None:
        return False
    for remote in (as_table(tables.get("remotes")) or {}).values():
        override = as_table(remote)
        if override is not None and override.get("project_id") == project_ref:
            lay_over(tables, {"db": {"seed": {"enabled": False}}})
            lay_over(tables, override)
            return True
    return False


def _read(keys: Keys, files: Mapping[str, bytes], *, seeds_by_default: bool) -> ProjectConfig:
    services = ServiceSettings(_read_rest(keys), read_auth(keys, files), _read_storage(keys))
    if not keys.flag("api.enabled", True):
        keys.say("api.enabled", "a backend always has its Data API", info)
    if keys.texts("db.migrations.schema_paths", ()):
        keys.say("db.migrations.schema_paths", "declarative schemas are not applied, only migrations", info)
    return ProjectConfig(
        project_id=keys.text("project_id", ""),
        major_version=_read_major(keys),
        services=services,
        auto_expose_new_tables=keys.flag("api.auto_expose_new_tables", True),
        webhooks_enabled=keys.flag("experimental.webhooks.enabled", False),
        migrations_enabled=keys.flag("db.migrations.enabled", True),
        seed_enabled=keys.flag("db.seed.enabled", seeds_by_default),
        seed_patterns=keys.texts("db.seed.sql_paths", _DEFAULT_SEED),
        seed_is_explicit=keys.value("db.seed.sql_paths") is not None,
        db_settings=tuple(_read_settings(keys)),
        vault=tuple(_read_vault(keys)),
        buckets=tuple(_read_buckets(keys, files)),
    )


def _read_major(keys: Keys) -> int | None:
    if keys.value("db.major_version") is None:
        return None
    major = keys.number("db.major_version", 0)
    if major in _MAJORS:
        return major
    if major:
        keys.say("db.major_version", f"there is no Postgres {major}")
    return None


def _read_rest(keys: Keys) -> RestSettings:
    default = RestSettings()
    return RestSettings(
        schemas=keys.texts("api.schemas", default.schemas) or default.schemas,
        extra_search_path=keys.texts("api.extra_search_path", default.extra_search_path),
        max_rows=keys.number("api.max_rows", default.max_rows or 0) or None,
    )


def _read_storage(keys: Keys) -> StorageSettings:
    default = StorageSettings()
    return StorageSettings(
        enabled=keys.flag("storage.enabled", default.enabled),
        file_size_limit_bytes=keys.size("storage.file_size_limit", default.file_size_limit_bytes),
        renders_images=keys.flag("storage.image_transformation.enabled", default.renders_images),
        speaks_s3=keys.flag("storage.s3_protocol.enabled", default.speaks_s3),
    )


def _read_settings(keys: Keys) -> Iterator[tuple[str, str]]:
    for name, value in keys.table("db.settings").items():
        path = ("db", "settings", name)
        if name in _SERVER_SETTINGS:
            keys.say(path, "{key} is a setting of the whole server, which Toft governs", info)
        elif name in _DATABASE_SETTINGS:
            if isinstance(value, bool | int | float):
                yield name, str(value).lower()
            elif isinstance(value, str):
                if (known := keys.env(path, value)) is not None:
                    yield name, known
            else:
                keys.say(path, "{key} is neither text nor number")


def _read_vault(keys: Keys) -> Iterator[Secret]:
    for name, value in keys.table("db.vault").items():
        path = ("db", "vault", name)
        if not isinstance(value, str):
            keys.say(path, "{key} is not a text")
        elif value.startswith("encrypted:"):
            keys.say(path, "{key} is encrypted with a key that Toft does not have")
        elif (known := keys.env(path, value)) is not None:
            yield Secret(name, known)


def _read_buckets(keys: Keys, files: Mapping[str, bytes]) -> Iterator[Bucket]:
    for name in keys.table("storage.buckets"):
        path = ("storage", "buckets", name)
        if as_table(keys.value(path)) is None:
            keys.say(path, "{key} is not a table")
            continue
        types = (*path, "allowed_mime_types")
        yield Bucket(
            id=name,
            public=keys.flag((*path, "public"), False),
            file_size_limit_bytes=keys.size((*path, "file_size_limit"), 0) or None,
            allowed_mime_types=None if keys.value(types) is None else keys.texts(types, ()),
            files=tuple(_read_bucket_files(keys, (*path, "objects_path"), files)),
        )


def _read_bucket_files(keys: Keys, path: Path, files: Mapping[str, bytes]) -> Iterator[BucketFile]:
    """The files of the bundle that lie below a bucket's folder; hidden ones are nobody's objects."""
    place = keys.text(path, "")
    if not place:
        return
    folder = posixpath.normpath(f"supabase/{place}")
    found = [name for name in sorted(files) if name == folder or name.startswith(folder + "/")]
    if not found:
        keys.say(path, "{key} names a folder in which there is nothing")
    for name in found:
        key = name.removeprefix(folder).lstrip("/") or posixpath.basename(name)
        if not any(part.startswith(".") for part in key.split("/")):
            yield BucketFile(key, name, hashlib.sha256(files[name]).hexdigest())
