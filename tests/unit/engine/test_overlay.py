"""Which extension files are laid over a server's own."""

from __future__ import annotations

import pytest

from toft.engine.overlay import our_files, overlay, trust, trusted_names

STAND_INS = sorted(name.removesuffix(".control") for name in our_files() if name.endswith(".control"))
#: Each of these is a way to files, programs or other sessions' memory.
NEVER = {
    "adminpack",
    "amcheck",
    "file_fdw",
    "lo",
    "old_snapshot",
    "pageinspect",
    "pg_buffercache",
    "pg_freespacemap",
    "pg_surgery",
    "pg_visibility",
    "plperlu",
    "plpython3u",
    "pltclu",
    "xml2",
}


def test_what_reaches_out_of_the_database_is_never_trusted() -> None:
    """The list of trusted names and the list of dangerous ones have nothing in common."""
    assert not trusted_names() & NEVER


@pytest.mark.parametrize("name", STAND_INS)
def test_a_stand_in_never_hides_a_real_extension(name: str) -> None:
    """With a real control file there, neither control file nor scripts of ours are laid over it."""
    real = "comment = 'the real one'\nmodule_pathname = '$libdir/x'\n"
    laid = overlay({name: real})
    assert f"{name}.control" not in laid or b"the real one" in laid[f"{name}.control"]
    assert not any(file.startswith(f"{name}--") for file in laid)


@pytest.mark.parametrize("name", STAND_INS)
def test_a_stand_in_takes_the_place_of_a_real_one_that_cannot_be_loaded(name: str) -> None:
    """Control file and scripts, as if there were none."""
    laid = overlay({name: "comment = 'the real one'\n"}, broken={name})
    assert laid == overlay({})
    assert any(file.startswith(f"{name}--") for file in laid)


def test_trusted_control_files_keep_everything_else() -> None:
    """Only the one line is added."""
    shipped = "# moddatetime\ncomment = 'functions'\nmodule_pathname = '$libdir/moddatetime'\n"
    laid = overlay({"moddatetime": shipped})
    assert laid["moddatetime.control"].decode() == shipped + "trusted = true\n"


@pytest.mark.parametrize("control", ["trusted = true\n", "superuser = false\n", "a = 1\n  trusted=true"])
def test_what_is_trusted_already_stays_as_it_is(control: str) -> None:
    """No override is laid for it."""
    assert trust(control) == control
