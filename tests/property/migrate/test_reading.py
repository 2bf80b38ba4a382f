"""Laws of reading a project: nothing that a user can write makes a reader fail otherwise than as agreed."""

from __future__ import annotations

import contextlib
import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.kit.projects import bundle_of
from toft.errors.project import FileUnreadable
from toft.migrate.config import read_config
from toft.migrate.glob import expand, normalise
from toft.migrate.project import read_file, select_migrations
from toft.migrate.psql_commands import PsqlOnly, understand
from toft.migrate.toml import read_toml
from toft.protocol.bundle import CONFIG, Bundle, env_names, is_wanted, seed_patterns
from toft.protocol.dotenv import parse

paths = st.lists(st.text("ab.*[]\\/_1 é", min_size=1, max_size=8), min_size=1, max_size=3).map("/".join)
toml_lines = st.sampled_from(
    [
        "[api]",
        "[db.seed]",
        "[db",
        "schemas = ['a']",
        "max_rows = 7",
        "max_rows = ",
        "sql_paths = [",
        '"./a.sql",',
        "]",
        "x = '''",
        "'''",
        "# c",
        "a.b = 1",
        "[[x]]",
        "port = env(X)",
        'y = "env(Y)"',
        "= 3",
        "",
        "\ufeff",
        "\x00",
        "major_version = 15",
    ]
)
toml_texts = st.lists(toml_lines, max_size=14).map("\n".join)


@given(
    st.dictionaries(paths, st.binary(max_size=20), max_size=4),
    st.dictionaries(paths, st.text(max_size=9), max_size=3),
)
def test_a_bundle_comes_back(files: dict[str, bytes], env: dict[str, str]) -> None:
    """What is encoded is decoded, with the same digest."""
    bundle = Bundle(files, env)
    again = Bundle.decode(bundle.encode())
    assert (again.files, again.env, again.digest()) == (files, env, bundle.digest())


@given(st.binary(max_size=200))
def test_other_bytes_are_no_bundle(raw: bytes) -> None:
    """Decoding gives a bundle or ValueError."""
    with contextlib.suppress(ValueError):
        Bundle.decode(b"toft bundle 1\n" + raw)


@given(toml_texts | st.text())
@example("[api]\n[api]")
def test_any_config_is_read(text: str) -> None:
    """Whatever the file says there is a configuration; what is sound is read as the TOML parser reads it."""
    config, notices = read_config(bundle_of({CONFIG: text.encode("utf-8", "replace")}))
    assert config.services.rest.schemas
    assert all(str(notice).startswith(CONFIG) for notice in notices)
    tables, faults = read_toml(text)
    try:
        assert tables == tomllib.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
        assert faults == []
    except tomllib.TOMLDecodeError:
        assert faults
        assert all(1 <= fault.line <= text.count("\n") + text.count("\r") + 1 for fault in faults)
    env_names(text)
    seed_patterns(text)


@given(st.text())
def test_any_dotenv_is_read(text: str) -> None:
    """Values are texts under proper names; lines that make no sense are counted."""
    values, bad_lines = parse(text)
    assert all(name.replace(".", "").replace("_", "").isalnum() for name in values)
    assert all(1 <= line <= text.count("\n") + 1 for line in bad_lines)


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z][A-Z0-9_]{0,5}", fullmatch=True), st.text(st.characters(exclude_characters="'"))
    )
)
def test_quoted_values_come_back(values: dict[str, str]) -> None:
    """A value in single quotes is taken as it is, line ends and all."""
    text = "".join(f"{name}='{value}'\n" for name, value in values.items())
    assert parse(text) == (values, [])


@given(st.binary(max_size=60))
def test_any_file_is_text_or_refused(raw: bytes) -> None:
    """Bytes become their text, or the file is refused with a line that it has."""
    refusal: FileUnreadable | None = None
    try:
        text = read_file("a.sql", raw).text
    except FileUnreadable as error:
        refusal, text = error, ""
    if refusal:
        assert 1 <= int(str(refusal.facts["line"])) <= raw.count(b"\n") + 1
    else:
        assert text.encode() == raw.removeprefix(b"\xef\xbb\xbf")


@given(
    st.lists(
        st.sampled_from(
            ["\\i x", "\n", "'", "copy t from stdin", ";", "--", "$$", "/*", "*/", " ", "E'\\", "a"]
        )
    ).map("".join)
)
def test_looking_for_psql_ends(text: str) -> None:
    """The text is refused at a place in it, or every character that is left of it keeps its place."""
    found = understand(text)
    if isinstance(found, PsqlOnly):
        assert 0 <= found.start < len(text)
    else:
        assert len(found.sql) == len(text)
        assert all(ours in (theirs, " ") for ours, theirs in zip(found.sql, text, strict=True))


@given(st.lists(paths, max_size=6), paths)
def test_patterns_match_files_of_the_bundle(files: list[str], pattern: str) -> None:
    """Only files that there are, each once; a path without special characters matches itself."""
    found = expand([pattern, *files], files, base="")
    assert set(found.paths) <= set(files)
    assert len(set(found.paths)) == len(found.paths)
    for path in files:
        if not any(char in path for char in "*?[]\\") and normalise(path) == path:
            assert path in found.paths


@given(paths)
def test_normal_paths_stay(path: str) -> None:
    """Normalising twice is normalising once."""
    assert normalise(normalise(path)) == normalise(path)


@given(st.lists(st.from_regex(r"[0-9]{1,3}_?[a-z]?\.(sql|SQL|md)", fullmatch=True), unique=True))
def test_every_entry_is_taken_or_told(names: list[str]) -> None:
    """No file directly in the folder is lost without a word."""
    files = [f"supabase/migrations/{name}" for name in names]
    selected, notices = select_migrations(files, "supabase/migrations")
    assert len(selected) + len(notices) == len(files)
    assert all(is_wanted(path) for path in files)
    assert selected == sorted(selected)


@pytest.mark.parametrize("depth", [50_000])
def test_deep_nesting_ends(depth: int) -> None:
    """Neither TOML nor SQL of absurd depth exhausts a reader."""
    read_config(bundle_of({CONFIG: "a = " + "[" * depth}))
    understand("copy t from stdin".rjust(depth, "("))
