"""Command lines that put a process behind walls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toft.host.confine import Confinement, confine, renounce

ARGV = ["/e/bin/postgres", "-D", "/h/b/1/pgdata"]


def option(line: list[str], name: str, count: int) -> list[tuple[str, ...]]:
    return [tuple(line[at + 1 : at + 1 + count]) for at, word in enumerate(line) if word == name]


def test_without_walls_the_command_is_itself() -> None:
    """Nothing stands before it."""
    assert confine(Confinement(method="none"), ARGV) == ARGV


def test_setpriv_becomes_the_user_and_drops_everything_else() -> None:
    """No group, no capability and no way back is kept."""
    line = confine(Confinement(method="setpriv", uid=400001), ARGV)
    assert line == [
        "/usr/bin/setpriv",
        "--reuid=400001",
        "--regid=400001",
        "--clear-groups",
        "--no-new-privs",
        "--inh-caps=-all",
        "--",
        *ARGV,
    ]


def test_bubblewrap_for_an_ordinary_user() -> None:
    """A user namespace, no capability, and every namespace but the file system's is new and empty."""
    walls = Confinement(method="bubblewrap", read_only=("/usr/lib",), writable=("/h/b/1/pgdata",))
    line = confine(walls, ARGV)
    assert line[-len(ARGV) - 1 :] == ["--", *ARGV]
    assert {"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net"} <= set(line)
    assert "--cap-add" not in line
    assert option(line, "--ro-bind", 2) == [("/usr/lib", "/usr/lib")]
    assert option(line, "--bind", 2) == [("/h/b/1/pgdata", "/h/b/1/pgdata")]


def test_bubblewrap_for_root_changes_the_user_inside() -> None:
    """Of root's capabilities only the two that this takes are kept, and only until it is done."""
    line = confine(Confinement(method="bubblewrap", uid=400001, read_only=("/usr/lib",)), ARGV)
    assert "--unshare-user" not in line
    assert option(line, "--cap-add", 1) == [("CAP_SETUID",), ("CAP_SETGID",)]
    assert ("/usr/bin/setpriv", "/usr/bin/setpriv") in option(line, "--ro-bind", 2)
    assert line.index("/usr/bin/setpriv", line.index("--chdir")) > line.index("--")


def test_folders_above_are_made_so_that_another_user_can_pass() -> None:
    """bubblewrap alone would make them for root's eyes only."""
    line = confine(
        Confinement(method="bubblewrap", read_only=("/usr/lib",), writable=("/h/b/1/pgdata",)), ARGV
    )
    assert option(line, "--dir", 1) == [("/h",), ("/h/b",), ("/h/b/1",), ("/usr",)]


def test_what_lies_in_a_folder_that_is_shown_is_not_shown_twice() -> None:
    """Each mount costs; but a writable one inside a read-only one is needed."""
    walls = Confinement(
        method="bubblewrap", read_only=("/e", "/e/share/extension", "/e/lib"), writable=("/e/pgdata",)
    )
    line = confine(walls, ARGV)
    assert option(line, "--ro-bind", 2) == [("/e", "/e")]
    assert option(line, "--bind", 2) == [("/e/pgdata", "/e/pgdata")]
    assert line.index("--ro-bind") < line.index("--bind")


def test_a_server_keeps_the_network_when_it_says_so() -> None:
    """Gateway workers listen on the host's loopback."""
    line = confine(Confinement(method="bubblewrap", shares_network=True), ARGV)
    assert "--unshare-net" not in line
    assert "--unshare-pid" in line


def test_a_helper_ends_with_who_started_it() -> None:
    """And a postmaster does not."""
    for method, uid in (("setpriv", 5), ("none", None)):
        assert "--pdeathsig=QUIT" in confine(Confinement(method=method, uid=uid, dies_with_parent=True), ARGV)
        assert "--pdeathsig=QUIT" not in confine(Confinement(method=method, uid=uid), ARGV)


paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(read_only=st.lists(paths, max_size=6), writable=st.lists(paths, max_size=3))
def test_every_path_that_was_asked_for_is_reachable(read_only: list[str], writable: list[str]) -> None:
    """Each is mounted, or lies in one that is; outer ones first; and no folder is made inside a mount."""
    walls = Confinement(method="bubblewrap", read_only=tuple(read_only), writable=tuple(writable))
    line = confine(walls, ARGV)
    mounted = [place for name in ("--ro-bind", "--bind") for _, place in option(line, name, 2)]
    order = [line[at + 2] for at, word in enumerate(line) if word in ("--ro-bind", "--bind")]
    assert order == sorted(order)
    assert len(set(mounted)) == len(mounted)
    for path in (*read_only, *writable):
        assert any(path == place or path.startswith(place + "/") for place in mounted)
    for path in writable:
        assert (path, path) in option(line, "--bind", 2)
    for (folder,) in option(line, "--dir", 1):
        assert not any(folder == place or folder.startswith(place + "/") for place in mounted)


def test_renounce_keeps_one_capability() -> None:
    """Root without the rest of root's rights, and with no way to get them back."""
    line = renounce(["worker", "--flag"], "dac_override", "/bin/setpriv")
    assert line[0] == "/bin/setpriv"
    assert line[-3:] == ["--", "worker", "--flag"]
    assert {"--bounding-set=-all,+dac_override", "--no-new-privs", "--inh-caps=-all"} <= set(line)
