"""Packing a directory and unpacking it again."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toft.engine.pack import digest, pack, unpack

type Tree = dict[str, Tree | bytes]

names = st.text("abc", min_size=1, max_size=3)
contents = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda head, zeros: head + bytes(zeros), st.binary(max_size=50), st.integers(0, 70_000)),
    st.builds(lambda block, times: block * times, st.binary(min_size=1, max_size=4), st.integers(0, 90_000)),
)
folders = st.recursive(
    contents, lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=8
).filter(lambda tree: isinstance(tree, dict))


def write(folder: Path, tree: Tree) -> None:
    folder.mkdir()
    for name, value in tree.items():
        if isinstance(value, bytes):
            (folder / name).write_bytes(value)
        else:
            write(folder / name, value)


def read(folder: Path) -> Tree:
    return {path.name: read(path) if path.is_dir() else path.read_bytes() for path in folder.iterdir()}


@given(tree=folders)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_directory_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, tree: Tree) -> None:
    """Any tree of files and directories, empty ones and zeros included."""
    place = tmp_path_factory.mktemp("pack")
    write(place / "a", tree)
    index = pack(place / "a", place / "packed")
    unpack(place / "packed", index, place / "b", None)
    assert read(place / "b") == tree


def test_everything_belongs_to_the_owner_alone(tmp_path: Path) -> None:
    """Modes are 0700 and 0600 whatever the source and the umask say; as root the owner is set."""
    write(tmp_path / "a", {"d": {"f": b"x"}, "g": b"y" * 300_000})
    (tmp_path / "a/g").chmod(0o644)
    owner = 60_000 if os.geteuid() == 0 else None
    unpack(tmp_path / "p", pack(tmp_path / "a", tmp_path / "p"), tmp_path / "b", owner)
    for path in (tmp_path / "b", *(tmp_path / "b").rglob("*")):
        status = path.stat()
        assert stat.S_IMODE(status.st_mode) == (0o700 if path.is_dir() else 0o600)
        if owner is not None:
            assert (status.st_uid, status.st_gid) == (owner, owner)


def test_zeros_at_the_end_take_no_room(tmp_path: Path) -> None:
    """A log segment is mostly zeros; neither the pack nor a clone holds them."""
    write(tmp_path / "a", {"segment": b"begin" + bytes(1 << 20)})
    index = pack(tmp_path / "a", tmp_path / "p")
    unpack(tmp_path / "p", index, tmp_path / "b", None)
    assert (tmp_path / "p").stat().st_size <= 4096
    assert (tmp_path / "b/segment").stat().st_size == 5 + (1 << 20)
    assert (tmp_path / "b/segment").stat().st_blocks * 512 <= 8192


def test_a_pack_that_changed_is_noticed(tmp_path: Path) -> None:
    """One flipped bit gives another digest."""
    write(tmp_path / "a", {"f": b"content"})
    index = pack(tmp_path / "a", tmp_path / "p")
    assert digest(tmp_path / "p") == index.digest
    with (tmp_path / "p").open("r+b") as file:
        file.write(b"C")
    assert digest(tmp_path / "p") != index.digest


def test_only_files_and_directories_are_packed(tmp_path: Path) -> None:
    """A link would lead out of the directory."""
    write(tmp_path / "a", {})
    (tmp_path / "a/link").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="neither a file nor a directory"):
        pack(tmp_path / "a", tmp_path / "p")
