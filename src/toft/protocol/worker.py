"""Pure: messages between toftd and a gateway worker.

A worker listens on a Unix socket of its own; toftd connects. Each message is a four-byte big-endian length
and a msgspec-JSON object tagged by `type`. Requests carry `seq` and are answered by `Done` or `Failed` with
the same `seq`; notices (worker to daemon) have none. The worker outlives a daemon: on a new connection the
daemon first sends `Hello` and gets `Attached`, the list of what is attached, and adopts it.
"""

from __future__ import annotations

import msgspec


class JwtKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key that verifies (and, in Auth, signs) tokens: a JWK as JSON text, private part included."""

    kid: str
    alg: str
    jwk: str
    signs: bool = False

    def __repr__(self) -> str:
        return f"JwtKey(kid={self.kid!r}, alg={self.alg!r})"


class Secrets(msgspec.Struct, frozen=True):
    """Everything of a backend that must not be printed. Lives in the store and in the worker's memory."""

    jwt_secret: str
    jwt_keys: tuple[JwtKey, ...]
    anon_key: str
    service_role_key: str
    publishable_key: str
    secret_key: str
    s3_access_key_id: str
    s3_secret_access_key: str
    #: login role → password: supabase_admin, postgres, authenticator, supabase_auth_admin,
    #: supabase_storage_admin
    passwords: dict[str, str]

    def __repr__(self) -> str:
        return "Secrets(…)"


class RestSettings(msgspec.Struct, frozen=True):
    """`[api]` of config.toml, as the Data API needs it."""

    schemas: tuple[str, ...] = ("public", "graphql_public")
    extra_search_path: tuple[str, ...] = ("public", "extensions")
    max_rows: int | None = 1000


class AuthKeys(msgspec.Struct, frozen=True):
    """Keys that a project brings along instead of those that a lease has of its own; empty for none."""

    jwt_secret: str = ""
    anon_key: str = ""
    service_role_key: str = ""
    publishable_key: str = ""
    secret_key: str = ""
    #: of `signing_keys_path`; the first one signs
    signing: tuple[JwtKey, ...] = ()

    def __repr__(self) -> str:
        return "AuthKeys(…)"


class AuthHook(msgspec.Struct, frozen=True):
    """A Postgres function (or HTTP endpoint) that Auth asks at one of its steps."""

    uri: str
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"AuthHook(uri={self.uri!r})"


class AuthProvider(msgspec.Struct, frozen=True):
    """A social provider that is switched on."""

    client_id: str = ""
    secret: str = ""
    redirect_uri: str = ""
    url: str = ""
    skip_nonce_check: bool = False
    email_optional: bool = False

    @property
    def is_played(self) -> bool:
        """Whether Toft plays this provider: there is no secret, so the real one could not be asked."""
        return self.secret in ("", "fake") or self.secret.startswith("env(")

    def __repr__(self) -> str:
        return f"AuthProvider(client_id={self.client_id!r}, url={self.url!r})"


class AuthRateLimits(msgspec.Struct, frozen=True):
    """`[auth.rate_limit]`. enforce: False, as in every lease that does not ask for it, counts nothing.

    email_sent, sms_sent: of the project in an hour. anonymous_users: by address in an hour. The others: by
    address in five minutes.
    """

    enforce: bool = False
    email_sent: int = 2
    sms_sent: int = 30
    anonymous_users: int = 30
    token_refresh: int = 150
    sign_in_sign_ups: int = 30
    token_verifications: int = 30
    web3: int = 30


class AuthSmtp(msgspec.Struct, frozen=True):
    """`[auth.email.smtp]`: where mails go besides the mailbox."""

    host: str
    port: int
    user: str = ""
    password: str = ""
    admin_email: str = "admin@email.com"
    sender_name: str = "Admin"

    def __repr__(self) -> str:
        return f"AuthSmtp({self.host}:{self.port})"


class AuthMailTemplate(msgspec.Struct, frozen=True):
    """A project's own words for one kind of mail; an empty part keeps the default."""

    subject: str = ""
    content: str = ""


class AuthSettings(msgspec.Struct, frozen=True):
    """`[auth]` of config.toml. The defaults are those that a fresh project's file has.

    jwt_issuer: empty for the public address of Auth itself. hooks: by name, `custom_access_token` and so on.
    external: providers that are on. mail_templates: by kind, `confirmation` and so on. sms_test_otp: phone
    number → the code that is accepted without sending. sms_provider: `mailbox`, or `none` to fail as a
    project without a provider does. oauth_server_authorization_path: empty for Toft's own consent page.
    """

    enabled: bool = True
    keys: AuthKeys = AuthKeys()
    site_url: str = "http://127.0.0.1:3000"
    additional_redirect_urls: tuple[str, ...] = ()
    jwt_expiry_seconds: int = 3600
    jwt_issuer: str = ""
    jwt_audience: str = "authenticated"
    default_role: str = "authenticated"
    enable_signup: bool = True
    enable_anonymous_sign_ins: bool = False
    enable_manual_linking: bool = False
    minimum_password_length: int = 6
    password_requirements: str = ""
    enable_refresh_token_rotation: bool = True
    refresh_token_reuse_interval_seconds: int = 10
    session_timebox_seconds: float | None = None
    session_inactivity_seconds: float | None = None
    email_enable_signup: bool = True
    email_enable_confirmations: bool = False
    email_double_confirm_changes: bool = True
    email_secure_password_change: bool = False
    email_max_frequency_seconds: float = 1
    email_otp_length: int = 6
    email_otp_expiry_seconds: int = 3600
    mail_templates: dict[str, AuthMailTemplate] = {}
    smtp: AuthSmtp | None = None
    sms_enable_signup: bool = False
    sms_provider: str = "mailbox"
    sms_enable_confirmations: bool = False
    sms_template: str = "Your code is {{ .Code }}"
    sms_max_frequency_seconds: float = 5
    sms_otp_expiry_seconds: int = 6000
    sms_test_otp: dict[str, str] = {}
    mfa_max_enrolled_factors: int = 10
    mfa_totp_enroll_enabled: bool = False
    mfa_totp_verify_enabled: bool = False
    mfa_phone_otp_length: int = 6
    mfa_phone_enroll_enabled: bool = False
    mfa_phone_verify_enabled: bool = False
    hooks: dict[str, AuthHook] = {}
    rate_limits: AuthRateLimits = AuthRateLimits()
    external: dict[str, AuthProvider] = {}
    oauth_server_enabled: bool = False
    oauth_server_allow_dynamic_registration: bool = False
    oauth_server_authorization_path: str = ""


class StorageSettings(msgspec.Struct, frozen=True):
    """`[storage]` of config.toml. Sizes in bytes."""

    enabled: bool = True
    file_size_limit_bytes: int = 50 * 1024 * 1024
    renders_images: bool = True
    speaks_s3: bool = True


class ServiceSettings(msgspec.Struct, frozen=True):
    """What config.toml says about the three services; part of a project template's key."""

    rest: RestSettings = RestSettings()
    auth: AuthSettings = AuthSettings()
    storage: StorageSettings = StorageSettings()


class BackendSpec(msgspec.Struct, frozen=True):
    """All that a worker needs to serve one backend."""

    backend_id: str
    #: names the schema cache that backends of one template share
    template_key: str
    http_port: int
    db_port: int
    #: the postmaster's private Unix socket file
    socket_path: str
    #: where Storage keeps its objects
    objects_path: str
    settings: ServiceSettings
    secrets: Secrets
    #: False: the postmaster is stopped; the first connection asks the daemon to `Wake` it
    is_awake: bool = True
    #: client connections on the SQL port at a time
    max_sql_connections: int = 30
    #: connections of each service's own pool
    max_pool: int = 4
    #: the largest body of a Data API request
    max_body_bytes: int = 64 << 20
    #: another one: its data and objects were replaced, and nothing that was known of them holds
    edition: int = 0


class Hello(msgspec.Struct, frozen=True, tag=True):
    """First message of a daemon. Answered by `Attached`."""

    seq: int
    version: str


class Attach(msgspec.Struct, frozen=True, tag=True):
    """Serve this backend: listen on both ports. Idempotent for an equal spec.

    Failed with code `port-taken` when a port cannot be bound.
    """

    seq: int
    spec: BackendSpec


class Detach(msgspec.Struct, frozen=True, tag=True):
    """Close both ports and every connection of the backend, drop its secrets. Idempotent."""

    seq: int
    backend_id: str


class Relisten(msgspec.Struct, frozen=True, tag=True):
    """Move a backend to other ports (for `--port`, `--db-port`)."""

    seq: int
    backend_id: str
    http_port: int
    db_port: int


class SetAwake(msgspec.Struct, frozen=True, tag=True):
    """The postmaster runs (waiting connections go on) or has stopped (close pools, ask before dialling)."""

    seq: int
    backend_id: str
    is_awake: bool
    #: why it cannot run, when it will not come back: waiting connections are refused with this text
    failure: str | None = None


class Warm(msgspec.Struct, frozen=True, tag=True):
    """Make ready for the first request, which is not there yet. Answered before that is done; idempotent."""

    seq: int
    backend_id: str


class AskUsage(msgspec.Struct, frozen=True, tag=True):
    """Answered by `Usage`."""

    seq: int


class AskLog(msgspec.Struct, frozen=True, tag=True):
    """Answered by `Log`, or `Failed` with `unknown-backend`."""

    seq: int
    backend_id: str


class Shutdown(msgspec.Struct, frozen=True, tag=True):
    """End the worker: close everything and exit."""

    seq: int


type ToWorker = Hello | Attach | Detach | Relisten | SetAwake | Warm | AskUsage | AskLog | Shutdown


class Done(msgspec.Struct, frozen=True, tag=True):
    """The request with this `seq` was carried out."""

    seq: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """It was not. `code`: `port-taken`, `unknown-backend`, `internal`."""

    seq: int
    code: str
    message: str


class Attached(msgspec.Struct, frozen=True, tag=True):
    """Answer to `Hello`: version of the worker's code, and what is attached: id → (http_port, db_port)."""

    seq: int
    version: str
    pid: int
    backends: dict[str, tuple[int, int]]


class BackendUsage(msgspec.Struct, frozen=True):
    """What a backend did. Times are seconds before now on the worker's clock."""

    idle_seconds: float
    sql_connections: int
    http_in_flight: int
    requests: int


class Usage(msgspec.Struct, frozen=True, tag=True):
    """Answer to `AskUsage`."""

    seq: int
    backends: dict[str, BackendUsage]


class LogLine(msgspec.Struct, frozen=True):
    """What a service or Postgres had to say. at: an instant, ISO 8601 in UTC with milliseconds."""

    at: str
    source: str
    text: str


class Log(msgspec.Struct, frozen=True, tag=True):
    """Answer to `AskLog`: what the backend's services have said, oldest first."""

    seq: int
    lines: list[LogLine]


class Wake(msgspec.Struct, frozen=True, tag=True):
    """Notice: a connection waits for this backend's postmaster, which sleeps or does not answer."""

    backend_id: str


type FromWorker = Done | Failed | Attached | Usage | Log | Wake
