"""`client/project.py`: which folder is the project, and what of it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from toft.client.project import find_project, read_project
from toft.errors.project import FileUnreadable


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_nearest_config_upwards_is_the_project(tmp_path: Path) -> None:
    """From a folder inside, the project is found; a `supabase/` without config.toml counts only here."""
    write(tmp_path / "app", {"supabase/config.toml": "", "src/deep/x": ""})
    assert find_project(str(tmp_path / "app" / "src" / "deep")) == str(tmp_path / "app")
    write(tmp_path / "bare", {"supabase/seed.sql": "", "src/x": ""})
    assert find_project(str(tmp_path / "bare")) == str(tmp_path / "bare")
    assert find_project(str(tmp_path / "bare" / "src")) is None


def test_what_belongs_to_a_database_is_read(tmp_path: Path) -> None:
    """Configuration, roles, migrations of any name and seeds are read; functions and tests are not."""
    wanted = {
        "supabase/config.toml": "",
        "supabase/roles.sql": "r",
        "supabase/migrations/1_a.sql": "a",
        "supabase/migrations/README.md": "x",
        "supabase/seed.sql": "s",
        "supabase/seeds/more.sql": "m",
    }
    unwanted = {
        "supabase/functions/f/index.sql": "",
        "supabase/functions/f/node_modules/x.sql": "",
        "supabase/tests/t.sql": "",
        "supabase/.temp/x.sql": "",
        "supabase/notes.txt": "",
        "other.sql": "",
    }
    bundle = read_project(str(write(tmp_path, {**wanted, **unwanted})), {})
    assert {path: raw.decode() for path, raw in bundle.files.items()} == wanted


def test_seeds_outside_are_found_by_their_patterns(tmp_path: Path) -> None:
    """`sql_paths` of config.toml may lead out of `supabase/`, also by globs."""
    config = '[db.seed]\nsql_paths = [\n  "./seed.sql",\n  "../data/*.sql", # all of them\n]\n'
    files = {"supabase/config.toml": config, "data/1.sql": "1", "data/2.sql": "2", "data/3.txt": "3"}
    bundle = read_project(str(write(tmp_path, files)), {})
    assert set(bundle.files) == {"supabase/config.toml", "data/1.sql", "data/2.sql"}


def test_another_folder_of_migrations_is_read(tmp_path: Path) -> None:
    """`--migrations DIR` may lie outside of `supabase/`."""
    files = {"db/1_a.sql": "a", "supabase/config.toml": ""}
    bundle = read_project(str(write(tmp_path, files)), {}, "db")
    assert bundle.files["db/1_a.sql"] == b"a"


def test_variables_come_from_environment_then_files(tmp_path: Path) -> None:
    """`env(NAME)`: the environment counts first, then the `.env` files from `supabase/` upwards."""
    names = ("A", "B", "C", "D", "E")
    config = "[auth]\n" + "".join(f'{name} = "env({name})"\n' for name in names) + '# x = "env(HIDDEN)"\n'
    files = {
        "supabase/config.toml": config,
        "supabase/.env": "B=near\nC=near\n",
        ".env.local": "C=local\nD=local\nHIDDEN=no\n",
        ".env": "D=far\n",
    }
    bundle = read_project(str(write(tmp_path, files)), {"A": "process", "B": "process"})
    assert bundle.env == {"A": "process", "B": "process", "C": "near", "D": "local"}


def test_supabase_env_names_other_files(tmp_path: Path) -> None:
    """With SUPABASE_ENV=test, `.env.test` is read and `.env.local` is not."""
    files = {
        "supabase/config.toml": '[auth]\na = "env(A)"\nb = "env(B)"\n',
        ".env.test": "A=test\n",
        ".env.local": "B=local\n",
    }
    assert read_project(str(write(tmp_path, files)), {"SUPABASE_ENV": "test"}).env == {"A": "test"}


def test_digest_changes_with_content_only(tmp_path: Path) -> None:
    """Two readings of the same files have one digest; another byte gives another."""
    root = write(tmp_path, {"supabase/migrations/1_a.sql": "select 1;"})
    digest = read_project(str(root), {}).digest()
    assert read_project(str(root), {}).digest() == digest
    write(tmp_path, {"supabase/migrations/1_a.sql": "select 2;"})
    assert read_project(str(root), {}).digest() != digest


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    """A file that cannot be read is an error with its name."""
    write(tmp_path, {"supabase/migrations/1_a.sql": ""})
    (tmp_path / "supabase" / "seed.sql").symlink_to("/proc/self/mem")
    with pytest.raises(FileUnreadable, match="supabase/seed"):
        read_project(str(tmp_path), {})


def test_files_of_buckets_are_read(tmp_path: Path) -> None:
    """Everything below an `objects_path` belongs to the project, whatever it is, also outside `supabase/`."""
    config = (
        "[storage.buckets.a]\nobjects_path = './pictures'\n"
        '[storage.buckets.b]\nobjects_path = "../assets" # here\n# objects_path = "./not"\n'
    )
    wanted = {
        "supabase/config.toml": config,
        "supabase/pictures/a.png": "a",
        "supabase/pictures/deep/b.bin": "b",
        "assets/c.txt": "c",
    }
    write(tmp_path, {**wanted, "supabase/not/x": "x", "other/y": "y"})
    assert set(read_project(str(tmp_path), {}).files) == set(wanted)
