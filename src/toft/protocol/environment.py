"""Pure: a lease becomes the variables that a command finds in its environment.

One table declares every name and whether its value may be public. Names that
bundlers copy into browser code (`NEXT_PUBLIC_…`) are made from their prefixes, for URL and publishable keys
alone. On the CLI's quick path: nothing but the language itself is imported.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: What a bundler copies into code that runs in a browser: Next.js, Vite, Astro and SvelteKit, Svelte (both of
#: its habits), Expo, Gatsby, Nuxt, Create React App.
BROWSER_PREFIXES = (
    "NEXT_PUBLIC_",
    "VITE_",
    "PUBLIC_",
    "SVELTE_PUBLIC_",
    "SVELTE_APP_",
    "EXPO_PUBLIC_",
    "GATSBY_",
    "NUXT_PUBLIC_",
    "REACT_APP_",
)

#: What stands after a browser prefix, and the fact of the lease that it carries.
_BROWSER_NAMES = (
    ("SUPABASE_URL", "url"),
    ("SUPABASE_ANON_KEY", "anon_key"),
    ("SUPABASE_PUBLISHABLE_KEY", "publishable_key"),
    ("SUPABASE_PUBLISHABLE_DEFAULT_KEY", "publishable_key"),
    ("SUPABASE_KEY", "publishable_key"),
)

#: What a lease knows, and whether everyone may see it. What is not said here does not exist.
PUBLIC, SECRET = "public", "secret"
FACTS = {
    "id": PUBLIC,
    "url": PUBLIC,
    "anon_key": PUBLIC,
    "publishable_key": PUBLIC,
    "host": PUBLIC,
    "db_port": PUBLIC,
    "user": PUBLIC,
    "database": PUBLIC,
    "ssl_mode": PUBLIC,
    "s3_endpoint": PUBLIC,
    "s3_region": PUBLIC,
    "service_role_key": SECRET,
    "secret_key": SECRET,
    "jwt_secret": SECRET,
    "password": SECRET,
    "database_url": SECRET,
    "s3_access_key_id": SECRET,
    "s3_secret_access_key": SECRET,
    # whoever reads the mailbox can sign in as its owners
    "mail_url": SECRET,
}

#: Those that are made here out of the others.
_MADE = frozenset({"database_url", "ssl_mode", "s3_endpoint", "s3_region", "mail_url"})

#: Every other variable: name → fact.
_SERVER_NAMES = (
    ("SUPABASE_URL", "url"),
    ("SUPABASE_ANON_KEY", "anon_key"),
    ("SUPABASE_PUBLISHABLE_KEY", "publishable_key"),
    ("SUPABASE_SERVICE_ROLE_KEY", "service_role_key"),
    ("SUPABASE_SECRET_KEY", "secret_key"),
    ("SUPABASE_JWT_SECRET", "jwt_secret"),
    ("SUPABASE_DB_URL", "database_url"),
    ("DATABASE_URL", "database_url"),
    ("DIRECT_URL", "database_url"),
    ("POSTGRES_URL", "database_url"),
    ("POSTGRES_PRISMA_URL", "database_url"),
    ("POSTGRES_URL_NON_POOLING", "database_url"),
    ("PGHOST", "host"),
    ("PGPORT", "db_port"),
    ("PGUSER", "user"),
    ("PGPASSWORD", "password"),
    ("PGDATABASE", "database"),
    ("PGSSLMODE", "ssl_mode"),
    # Storage's S3 endpoint: the names of common S3 code, then those that the Supabase CLI prints
    ("S3_ENDPOINT", "s3_endpoint"),
    ("S3_REGION", "s3_region"),
    ("S3_ACCESS_KEY_ID", "s3_access_key_id"),
    ("S3_SECRET_ACCESS_KEY", "s3_secret_access_key"),
    ("STORAGE_S3_URL", "s3_endpoint"),
    ("S3_PROTOCOL_REGION", "s3_region"),
    ("S3_PROTOCOL_ACCESS_KEY_ID", "s3_access_key_id"),
    ("S3_PROTOCOL_ACCESS_KEY_SECRET", "s3_secret_access_key"),
    ("TOFT_MAIL_URL", "mail_url"),
    ("TOFT_INSTANCE_ID", "id"),
    ("SUPAPOOL_INSTANCE_ID", "id"),
)

#: variable → fact, in the order in which they are shown
NAMES: dict[str, str] = {
    **dict(_SERVER_NAMES),
    **{prefix + name: fact for prefix in BROWSER_PREFIXES for name, fact in _BROWSER_NAMES},
}

#: Variables that a command must not inherit: libpq would obey them and reach another database, or none.
REMOVED = ("PGHOSTADDR", "PGSERVICE", "PGCHANNELBINDING", "PGGSSENCMODE", "PGSSLROOTCERT")


def is_secret(name: str) -> bool:
    """Whether the value of this variable must stay out of logs, screens and browsers."""
    return FACTS[NAMES[name]] is SECRET


def variables(lease: Mapping[str, object]) -> dict[str, str]:
    """All variables of a lease, given in the shape of the control API."""
    facts = {fact: str(lease[fact]) for fact in FACTS if fact not in _MADE}
    facts["database_url"] = database_url(lease)
    facts["ssl_mode"] = "disable"  # the SQL port is on loopback and declines TLS
    facts["s3_endpoint"] = facts["url"] + "/storage/v1/s3"
    facts["s3_region"] = "local"
    facts["mail_url"] = facts["url"] + "/mail"
    return {name: facts[fact] for name, fact in NAMES.items()}


def database_url(lease: Mapping[str, object]) -> str:
    """The connection URL of a lease's database. Works whatever the password is made of."""
    return (
        f"postgresql://{lease['user']}:{_escape(str(lease['password']))}@{lease['host']}:{lease['db_port']}"
        f"/{lease['database']}?sslmode=disable"
    )


def _escape(text: str) -> str:
    safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
    return "".join(
        char if char in safe else "".join(f"%{byte:02X}" for byte in char.encode()) for char in text
    )


def apply(environment: Mapping[str, str], lease: Mapping[str, object]) -> dict[str, str]:
    """The environment of a command: the given one with the lease's variables in it."""
    kept = {name: value for name, value in environment.items() if name not in REMOVED}
    kept.update(variables(lease))
    return kept


def as_dotenv(values: Mapping[str, str]) -> str:
    """Lines for a `.env` file, quoted only where it must be: readers agree on little else."""
    return "".join(f"{name}={_dotenv_value(value)}\n" for name, value in values.items())


def _dotenv_value(value: str) -> str:
    if all(char.isalnum() or char in "-._~:/?=&%@+" for char in value):
        return value
    if "'" not in value:
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


def as_shell(values: Mapping[str, str]) -> str:
    """Lines for `eval` in a POSIX shell. Also drops what would lead libpq elsewhere."""
    lines = [f"unset {' '.join(REMOVED)}\n"]
    for name, value in values.items():
        escaped = value.replace("'", "'\\''")
        lines.append(f"export {name}='{escaped}'\n")
    return "".join(lines)
