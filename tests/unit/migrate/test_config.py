"""What config.toml says, also when it is half broken."""

from __future__ import annotations

import pytest

from tests.kit.projects import bundle_of
from toft.migrate.config import Bucket, ProjectConfig, Secret, read_config
from toft.migrate.toml import line_of, read_toml
from toft.protocol.bundle import CONFIG
from toft.protocol.worker import AuthHook, AuthMailTemplate, AuthProvider, AuthSmtp


def read(
    text: str | bytes, env: dict[str, str] | None = None, project_ref: str | None = None
) -> tuple[ProjectConfig, list[str]]:
    config, notices = read_config(bundle_of({CONFIG: text}, env), project_ref)
    return config, [str(notice).removeprefix("supabase/config.toml:") for notice in notices]


def test_no_file() -> None:
    """All defaults, and nothing to say."""
    assert read_config(bundle_of({})) == (ProjectConfig(), ())


def test_an_ordinary_file() -> None:
    """The keys that matter are read; the many others bring up no word."""
    config, notices = read("""\
        project_id = "todo"
        [api]
        enabled = true
        port = 54321
        schemas = ["public", "api"]
        extra_search_path = ["public"]
        max_rows = 50
        auto_expose_new_tables = false
        [api.tls]
        enabled = false
        [db]
        port = 54322
        shadow_port = 54320
        major_version = 15
        [db.pooler]
        enabled = false
        [db.seed]
        sql_paths = ["./a.sql", "./b/*.sql"]
        [db.settings]
        work_mem = "8MB"
        max_parallel_workers = 2
        [db.vault]
        key = "value"
        [realtime]
        enabled = true
        [studio]
        openai_api_key = "env(OPENAI_API_KEY)"
        [local_smtp]
        port = 54324
        [auth]
        site_url = "http://localhost:3000"
        additional_redirect_urls = ["http://x/**"]
        jwt_expiry = 600
        enable_signup = false
        enable_anonymous_sign_ins = true
        minimum_password_length = 8
        password_requirements = "letters_digits"
        [auth.email]
        enable_signup = false
        enable_confirmations = true
        [auth.email.template.invite]
        subject = "Come"
        [auth.external.github]
        secret = "env(GITHUB)"
        [storage]
        file_size_limit = "5MiB"
        [storage.buckets.images]
        public = true
        [functions.hello]
        verify_jwt = false
        [remotes.staging]
        project_id = "abcdefghijklmnopqrst"
        whatever = 1
        """)
    assert notices == []
    assert (config.project_id, config.major_version) == ("todo", 15)
    assert config.services.rest.schemas == ("public", "api")
    assert (config.services.rest.extra_search_path, config.services.rest.max_rows) == (("public",), 50)
    assert config.auto_expose_new_tables is False
    assert config.seed_patterns == ("./a.sql", "./b/*.sql")
    assert config.db_settings == (("work_mem", "8MB"), ("max_parallel_workers", "2"))
    assert config.vault == (Secret("key", "value"),)
    assert config.services.auth.site_url == "http://localhost:3000"
    assert config.services.auth.additional_redirect_urls == ("http://x/**",)
    assert config.services.auth.jwt_expiry_seconds == 600
    assert config.services.auth.enable_signup is False
    assert config.services.auth.enable_anonymous_sign_ins is True
    assert config.services.auth.minimum_password_length == 8
    assert config.services.auth.email_enable_confirmations is True
    assert config.services.storage.file_size_limit_bytes == 5 * 2**20
    assert config.buckets == (Bucket("images", public=True),)


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("[api]\nmax_rows = 'many'", "2: `api.max_rows` is not a number of 0 or more; 1000 is used"),
        ("[api]\nmax_rows = -1", "2: `api.max_rows` is not a number of 0 or more; 1000 is used"),
        ("[api]\nschemas = 'env(X)'", "2: the environment variable X is not set"),
        ("[api]\nschemas = [1]", "2: `api.schemas` is not a list of texts; the default is used"),
        ("api = 3", "1: unknown key `api` is passed over"),
        ("[db]\nmajor_version = 9", "2: there is no Postgres 9"),
        ("[db]\n\nmajr_version = 9", "3: unknown key `db.majr_version` is passed over"),
        ("[nonsense]\na = 1", "1: unknown key `nonsense` is passed over"),
        (
            "[db.settings]\nshared_buffers = '1GB'",
            "2: `db.settings.shared_buffers` is a setting of the whole server, which Toft governs",
        ),
        ("[db.settings]\nwork_mem = ['1GB']", "2: `db.settings.work_mem` is neither text nor number"),
        ("[db.settings]\nfsync = false", "2: unknown key `db.settings.fsync` is passed over"),
        ("[db.seed]\nenabled = 'perhaps'", "2: `db.seed.enabled` is neither true nor false; true is used"),
        ("[auth]\nsite_url = 3", "2: `auth.site_url` is not a text; `http://127.0.0.1:3000` is used"),
        (
            "[storage]\nfile_size_limit = 'big'",
            "2: `storage.file_size_limit` is not a size like 50MiB; the default is used",
        ),
        ("[storage.buckets]\nx = 1", "2: `storage.buckets.x` is not a table"),
        (
            "[storage.buckets.x]\nobjects_path = './x'",
            "2: `storage.buckets.x.objects_path` names a folder in which there is nothing",
        ),
        (
            "[db.vault]\na = 'encrypted:xyz'",
            "2: `db.vault.a` is encrypted with a key that Toft does not have",
        ),
        ("[db.vault]\na = 1", "2: `db.vault.a` is not a text"),
        (
            "[db.migrations]\nschema_paths = ['./schemas/*.sql']",
            "2: declarative schemas are not applied, only migrations",
        ),
        ("[api]\nenabled = false", "2: a backend always has its Data API"),
    ],
)
def test_what_is_said(text: str, notice: str) -> None:
    """A value that cannot be used gives its default and one notice with its line."""
    _, notices = read(text)
    assert notices == [notice]


def test_environment_variables() -> None:
    """`env(NAME)` is replaced, in lists and for numbers and flags too; unset ones stay literally where
    text is meant.
    """
    env = {"URL": "http://x", "ROWS": "7", "FLAG": "true", "LIST": "a, b", "SIZE": "1KB"}
    config, notices = read(
        """
        [api]
        max_rows = "env(ROWS)"
        schemas = "env(LIST)"
        [auth]
        site_url = "env(URL)"
        additional_redirect_urls = ["env(URL)", "env(NOPE)"]
        enable_anonymous_sign_ins = "env(FLAG)"
        [storage]
        file_size_limit = "env(SIZE)"
        """,
        env,
    )
    assert config.services.rest.max_rows == 7
    assert config.services.rest.schemas == ("a", "b")
    assert config.services.auth.site_url == "http://x"
    assert config.services.auth.additional_redirect_urls == ("http://x", "env(NOPE)")
    assert config.services.auth.enable_anonymous_sign_ins is True
    assert config.services.storage.file_size_limit_bytes == 1024
    assert notices == ["7: the environment variable NOPE is not set"]


def test_secrets_do_not_show() -> None:
    """Not in the text of the value, nor in that of the whole."""
    config, _ = read("[db.vault]\nkey = 'top-secret'")
    assert "top-secret" not in repr(config)


def test_a_broken_line_costs_itself_only() -> None:
    """What stands before and after it in the section counts, and its line is told."""
    config, notices = read("""\
[api]
schemas = ["api"]
port = env(PORT)
max_rows = 3
[db]
major_version = 15
[auth]
enable_signup = false
additional_redirect_urls = [
  "a",
  b,
]
jwt_expiry = 5
""")
    assert config.services.rest.schemas == ("api",)
    assert config.services.rest.max_rows == 3
    assert config.major_version == 15
    assert config.services.auth.enable_signup is False
    assert config.services.auth.jwt_expiry_seconds == 5
    assert [notice.split(":")[0] for notice in notices] == ["3", "11", "12"]
    assert all("not TOML: " in notice for notice in notices)


def test_a_broken_header_costs_its_section() -> None:
    """Its keys are not taken for those of the section before."""
    config, notices = read("[db]\nmajor_version = 15\n[api\nmax_rows = 1\n[storage]\nenabled = false")
    assert config.major_version == 15
    assert config.services.rest.max_rows == 1000
    assert config.services.storage.enabled is False
    assert [notice.split(":")[0] for notice in notices] == ["3"]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff[db]\r\nmajor_version = 15\r\n",
        "[db]\nmajor_version = 15\n[db]\nport = 1\n",
        "major_version\n[db]\nmajor_version = 15",
        "[db]\nmajor_version = 15\n[x]\na = '''never\nclosed\n",
        "[db]\nmajor_version = 15\n[a]\nb = [1,\n2",
        "<<<<<<< HEAD\n[db]\nmajor_version = 15\n=======\n",
    ],
)
def test_bruised_files(text: str) -> None:
    """The sound part counts."""
    assert read(text)[0].major_version == 15


def test_a_file_of_something_else() -> None:
    """It costs no long time and no long list."""
    config, notices = read("<html>\n" * 20_000)
    assert config == ProjectConfig()
    assert len(notices) == 41
    assert notices[-1] == " and 10 more like these"


def test_not_utf8() -> None:
    """It is said, and the rest is read."""
    config, notices = read(b"[db]\nmajor_version = 15\n[auth]\nsite_url = 'caf\xe9'\n")
    assert config.major_version == 15
    assert notices == ["4: the file is not UTF-8"]


def test_auth_in_depth() -> None:
    """Sessions, factors, hooks, providers that are on, templates with their files."""
    config, notices = read_config(
        bundle_of(
            {
                "supabase/config.toml": """
                [auth.sessions]
                timebox = "24h"
                inactivity_timeout = "1h30m"
                [auth.email]
                max_frequency = "500ms"
                otp_length = 8
                [auth.email.template.invite]
                subject = "Come"
                content_path = "./supabase/templates/invite.html"
                [auth.email.template.recovery]
                content_path = "./nope.html"
                [auth.email.notification.password_changed]
                enabled = true
                content_path = "./templates/changed.html"
                [auth.sms.test_otp]
                4152127777 = "123456"
                [auth.mfa.totp]
                enroll_enabled = true
                [auth.hook.custom_access_token]
                enabled = true
                uri = "pg-functions://postgres/public/hook"
                secrets = "v1,whsec_a|v1,whsec_b"
                [auth.hook.send_sms]
                enabled = false
                [auth.external.github]
                enabled = true
                client_id = "env(ID)"
                secret = "s"
                [auth.external.apple]
                client_id = "off"
            """,
                "supabase/templates/invite.html": "<a>",
                "supabase/templates/changed.html": "<b>",
            },
            {"ID": "id"},
        )
    )
    auth = config.services.auth
    assert (auth.session_timebox_seconds, auth.session_inactivity_seconds) == (86400, 5400)
    assert (auth.email_max_frequency_seconds, auth.email_otp_length) == (0.5, 8)
    assert auth.mail_templates["invite"] == AuthMailTemplate("Come", "<a>")
    assert auth.mail_templates["password_changed"] == AuthMailTemplate("", "<b>")
    assert auth.sms_test_otp == {"4152127777": "123456"}
    assert auth.mfa_totp_enroll_enabled
    assert auth.hooks == {
        "custom_access_token": AuthHook("pg-functions://postgres/public/hook", ("v1,whsec_a", "v1,whsec_b"))
    }
    assert auth.external == {"github": AuthProvider("id", "s")}
    assert [str(notice) for notice in notices] == [
        "supabase/config.toml:12: there is no file ./nope.html; the default text is used"
    ]


def test_remotes() -> None:
    """The chosen remote lies over the rest and has no seeds unless it says so; unchosen ones mean nothing."""
    text = """
        [api]
        max_rows = 1
        schemas = ["a"]
        [remotes.one]
        project_id = "one"
        [remotes.one.api]
        max_rows = 2
        [remotes.two]
        project_id = "two"
        db.seed.enabled = true
    """
    base, one, two = (read(text, project_ref=ref)[0] for ref in (None, "one", "two"))
    assert (base.services.rest.max_rows, base.seed_enabled) == (1, True)
    assert (one.services.rest.max_rows, one.services.rest.schemas, one.seed_enabled) == (2, ("a",), False)
    assert (two.services.rest.max_rows, two.seed_enabled) == (1, True)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("50MiB", 50 << 20),
        ("5MB", 5 << 20),
        ("500kb", 500 << 10),
        ("1 g", 1 << 30),
        ("1.5k", 1536),
        ("7b", 7),
        ("7", 7),
    ],
)
def test_sizes(text: str, size: int) -> None:
    """All units are powers of 1024, with or without the i, in any case."""
    assert read(f"[storage]\nfile_size_limit = '{text}'")[0].services.storage.file_size_limit_bytes == size


def test_lines_of_keys() -> None:
    """By eye: tables, dotted keys, quoted names."""
    text = '[a]\nb = 1\n[ c . "d.e" ]\nf.g = 2\n# h = 3\n[[i]]\n'
    assert line_of(text, ("a", "b")) == 2
    assert line_of(text, ("c", "d.e", "f", "g")) == 4
    assert line_of(text, ("c", "d.e")) == 3
    assert line_of(text, ("i",)) == 6
    assert line_of(text, ("h",)) == 1


def test_faults_come_in_order() -> None:
    """Each with its line in the whole text and without the parser's own line."""
    _, faults = read_toml("a = \nb = 1\n[c]\nd = e\n")
    assert [fault.line for fault in faults] == [1, 4]
    assert all("line" not in fault.reason for fault in faults)


def test_the_rest_of_auth() -> None:
    """Mail servers, limits, keys and what is left out: read, or said with the line."""
    text = b"""
[auth]
enabled = false
jwt_secret = "short"
[auth.email.smtp]
host = "mail.example"
port = 465
user = "me"
pass = "secret"
admin_email = "shop@example.com"
[auth.rate_limit]
email_sent = 5
[auth.sms]
mailbox = false
[auth.mfa.phone]
otp_length = 8
[auth.captcha]
enabled = true
[auth.third_party.auth0]
enabled = true
[auth.external.github]
enabled = true
client_id = "x"
"""
    config, notices = read(text)
    auth = config.services.auth
    assert auth.enabled is False
    assert auth.keys.jwt_secret == ""
    assert auth.smtp == AuthSmtp("mail.example", 465, "me", "secret", "shop@example.com", "Admin")
    assert "secret" not in repr(auth.smtp)
    assert (auth.rate_limits.email_sent, auth.rate_limits.enforce) == (5, False)
    assert (auth.sms_provider, auth.mfa_phone_otp_length) == ("none", 8)
    assert auth.external["github"].is_played
    told = "\n".join(str(notice) for notice in notices)
    for words in ("shorter than 16", "rate_limit", "CAPTCHA", "third_party.auth0", "test provider"):
        assert words in told
    config, _ = read(b'[auth.email.smtp]\nenabled = false\nhost = "mail.example"\n')
    assert config.services.auth.smtp is None
    config, notices = read(b'[auth.email.smtp]\nhost = "mail.example"\npass = "env(NOPE)"\n')
    assert config.services.auth.smtp is None
    assert any("mails go to the mailbox only" in str(notice) for notice in notices)
