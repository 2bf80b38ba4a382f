"""Files on the real file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toft.host.files import can_reflink, remove_tree, tree_bytes, write_atomically
from toft.host.watch import Watch, first_readable


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """The new content and mode are there, and no temporary file."""
    path = tmp_path / "f"
    path.write_text("old")
    write_atomically(path, b"new" * 100_000, 0o640)
    assert path.read_bytes() == b"new" * 100_000
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["f"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """Here the name is a directory, which a file cannot replace."""
    path = tmp_path / "d"
    path.mkdir()
    with pytest.raises(OSError):
        write_atomically(path, b"x")
    assert path.is_dir()
    assert os.listdir(tmp_path) == ["d"]


def test_a_tree_is_removed_whatever_it_holds(tmp_path: Path) -> None:
    """Links are removed and not followed; closed directories are opened; nothing there is fine."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    tree = tmp_path / "tree"
    (tree / "closed/inner").mkdir(parents=True)
    (tree / "closed/inner/file").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "closed/inner").chmod(0o500)
    (tree / "closed").chmod(0)
    remove_tree(tree)
    remove_tree(tree)
    assert not tree.exists()
    assert (outside / "kept").exists()
    link = tmp_path / "link"
    link.symlink_to(outside)
    remove_tree(link)
    assert not link.is_symlink()
    assert (outside / "kept").exists()


def test_a_probe_for_shared_blocks_leaves_nothing(tmp_path: Path) -> None:
    """Whatever the answer is."""
    assert can_reflink(tmp_path) in (True, False)
    assert os.listdir(tmp_path) == []


def test_what_a_tree_takes_on_the_disk(tmp_path: Path) -> None:
    """Blocks, not sizes: a hole takes nothing; a tree that is not there takes nothing."""
    (tmp_path / "d").mkdir()
    empty = tree_bytes(tmp_path)
    (tmp_path / "d/full").write_bytes(b"x" * 1_000_000)
    with (tmp_path / "d/hole").open("wb") as file:
        file.truncate(50_000_000)
    assert 1_000_000 <= tree_bytes(tmp_path) - empty < 1_100_000
    assert tree_bytes(tmp_path / "not there") == 0


async def test_a_watch_tells_of_each_write(tmp_path: Path) -> None:
    """It is readable after a write, and not before and not after it was cleared."""
    path = tmp_path / "log"
    path.touch()
    other_end, this_end = os.pipe()
    with Watch(path) as watch, path.open("ab", buffering=0) as file:
        os.write(this_end, b"x")
        assert await first_readable(watch.fileno(), other_end) == other_end
        for _ in range(3):
            file.write(b"line\n")
            assert await first_readable(watch.fileno()) == watch.fileno()
            watch.clear()
        assert await first_readable(watch.fileno(), other_end) == other_end
    os.close(other_end)
    os.close(this_end)


def test_a_file_that_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    """The error names it, and no descriptor is left open."""
    Watch(tmp_path).close()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError, match="nothing"):
        Watch(tmp_path / "nothing")
    assert len(os.listdir("/proc/self/fd")) == before
