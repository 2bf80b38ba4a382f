"""A project as a value that travels."""

from __future__ import annotations

import pytest

from toft.protocol.bundle import Bundle, env_names, is_wanted, seed_patterns, signing_keys_path

FILES = {
    "supabase/config.toml": b"[api]\n",
    "supabase/migrations/1_\xc3\xa4.sql".encode().decode(): b"\0\xff\n",
}


def test_round_trip() -> None:
    """Bytes and variables come back as they were."""
    bundle = Bundle(FILES, {"A": "1", "B": "\u00e4\n"})
    again = Bundle.decode(bundle.encode())
    assert (again.files, again.env) == (bundle.files, bundle.env)
    assert again.digest() == bundle.digest()
    assert Bundle.decode(Bundle({}).encode()).files == {}


def test_digest() -> None:
    """Content counts, order does not; what is in it cannot be shifted from one file into another."""
    first = Bundle({"a": b"1", "b": b"2"}, {"X": "1", "Y": "2"})
    assert first.digest() == Bundle({"b": b"2", "a": b"1"}, {"Y": "2", "X": "1"}).digest()
    others = [
        Bundle({"a": b"1", "b": b"3"}, {"X": "1", "Y": "2"}),
        Bundle({"a": b"1", "c": b"2"}, {"X": "1", "Y": "2"}),
        Bundle({"a": b"12", "b": b""}, {"X": "1", "Y": "2"}),
        Bundle({"a": b"1", "b": b"2"}, {"X": "1"}),
        Bundle({"a": b"1", "b": b"2"}, {"X": "1", "Y": "3"}),
    ]
    assert len({bundle.digest() for bundle in [first, *others]}) == 6
    assert len(first.digest()) == 64


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw[:-1],
        lambda raw: raw + b"x",
        lambda raw: b"x" + raw,
        lambda raw: b"",
        lambda raw: b"toft bundle 1\n",
        lambda raw: b"toft bundle 1\n{}\n",
        lambda raw: b"toft bundle 1\n[]\n",
        lambda raw: b'toft bundle 1\n{"files":[["a",-1]],"env":[]}\n',
        lambda raw: b'toft bundle 1\n{"files":[[1,1]],"env":[]}\nx',
        lambda raw: b'toft bundle 1\n{"files":[],"env":[1]}\n',
        lambda raw: b"toft bundle 1\n" + b"[" * 100_000 + b"\n",
    ],
)
def test_decode_refuses_other_bytes(spoil: object) -> None:
    """With ValueError, whatever is wrong."""
    with pytest.raises(ValueError):
        Bundle.decode(spoil(Bundle(FILES).encode()))  # type: ignore[operator]


def test_secrets_do_not_show() -> None:
    """A bundle's text tells neither variables nor files."""
    assert repr(Bundle(FILES, {"A": "secret"})) == "Bundle(2 files)"


def test_which_files_belong() -> None:
    """SQL and templates under supabase/, everything in the migrations folder, and config.toml."""
    wanted = [
        "supabase/config.toml",
        "supabase/roles.sql",
        "supabase/seed.sql",
        "supabase/seeds/a/b.sql",
        "supabase/migrations/.gitkeep",
        "supabase/migrations/old/1_a.sql",
        "supabase/templates/invite.html",
    ]
    unwanted = [
        "supabase/functions/f/x.sql",
        "supabase/.temp/x.sql",
        "supabase/tests/x.sql",
        "supabase/.gitignore",
        "supabase/seeds/node_modules/x.sql",
        "supabase/images/a.png",
        "db/1_a.sql",
        "supabase/.env",
    ]
    assert [path for path in wanted + unwanted if is_wanted(path)] == wanted
    assert is_wanted("db/1_a.sql", migrations="db")


def test_names_of_variables() -> None:
    """Those that the text asks for, once; not in comments nor where no lease needs them."""
    text = """
        project_id = "env(ID)"
        # x = "env(COMMENTED)"
        [auth] # "env(NOT_YET)"
        site_url = 'env(URL)' # "env(TRAILING)"
        additional_redirect_urls = ["env(URL)", "env(OTHER)",
          "env(THIRD)"]
        odd = "xenv(NO)"
        [studio]
        openai_api_key = "env(OPENAI_API_KEY)"
        [edge_runtime.secrets]
        a = "env(EDGE)"
        [remotes.staging]
        a = "env(REMOTE)"
        [db.vault]
        key = "env(VAULT)"
    """
    assert sorted(env_names(text)) == ["ID", "OTHER", "THIRD", "TRAILING", "URL", "VAULT"]


def test_patterns_of_seeds() -> None:
    """Every `sql_paths`, on one line or several, comments between."""
    text = """
        [db.seed]
        # sql_paths = ["./commented.sql"]
        sql_paths = [
          "./a.sql", # first "not.sql"
          './b/[0-9]*.sql',
          "x]y.sql",
        ]
        [remotes.x]
        db.seed.sql_paths = ["../c.sql"]
        [y]
        sql_paths="single.sql"
    """
    assert seed_patterns(text) == ["./a.sql", "./b/[0-9]*.sql", "x]y.sql", "../c.sql", "single.sql"]
    assert seed_patterns("") == []


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ('[auth]\nsigning_keys_path = "./signing_keys.json"  # ours', "supabase/signing_keys.json"),
        ("auth.signing_keys_path='keys/a.json'", "supabase/keys/a.json"),
        ('[auth]\n"signing_keys_path" = "a.json"', "supabase/a.json"),
        ('[auth]\nsigning_keys_path = ""', None),
        ('[auth]\nsigning_keys_path = "../a.json"', None),
        ('[auth]\nsigning_keys_path = "/etc/passwd"', None),
        ('# signing_keys_path = "a.json"', None),
        ("", None),
    ],
)
def test_the_file_of_signing_keys_is_found(config: str, path: str | None) -> None:
    """By eye, and never outside supabase/."""
    assert signing_keys_path(config) == path
