"""`settings.py`: where a value comes from, what is refused, and that nothing changes afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toft import settings
from toft.errors.setting import SettingInvalid, SettingUnknown
from toft.settings import Settings, load, parse_bytes, parse_seconds


def home_with(tmp_path: Path, config: str) -> dict[str, str]:
    (tmp_path / "config.toml").write_text(config)
    return {"TOFT_HOME": str(tmp_path)}


def test_flag_wins_over_variable_over_file_over_default(tmp_path: Path) -> None:
    """A flag counts before a variable, that before the file, that before the default; each says so."""
    environ = home_with(tmp_path, 'ttl = "1h"\npool_size = 5\nconfine = "none"\n')
    environ |= {"TOFT_TTL": "2h", "TOFT_POOL_SIZE": "7"}
    loaded = load(environ, {"ttl": "3h"})
    assert (loaded.ttl, loaded.pool_size, loaded.confine, loaded.pool_cloned) == (10800, 7, "none", 2)
    assert [loaded.origins[name] for name in ("ttl", "pool_size", "confine", "pool_cloned")] == [
        "--ttl",
        "TOFT_POOL_SIZE",
        "config.toml",
        "default",
    ]


def test_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    """`TOFT_TTL=` is the same as no TOFT_TTL."""
    loaded = load({"TOFT_HOME": str(tmp_path), "TOFT_TTL": ""})
    assert (loaded.ttl, loaded.origins["ttl"]) == (1800, "default")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOFT_TTL", "soon"),
        ("TOFT_TTL", "-5m"),
        ("TOFT_TTL", "٣m"),
        ("TOFT_POOL_SIZE", "many"),
        ("TOFT_POOL_SIZE", "-1"),
        ("TOFT_MAX_BACKENDS", "0"),
        ("TOFT_MAX_BACKENDS", "9" * 5000),
        ("TOFT_CONFINE", "docker"),
        ("TOFT_DISK_QUOTA", "1X"),
        ("TOFT_RUN", "/" + "r" * 100),
    ],
)
def test_bad_value_names_its_origin(tmp_path: Path, name: str, value: str) -> None:
    """A value that does not fit is refused with the place that it stands in."""
    with pytest.raises(SettingInvalid) as refused:
        load({"TOFT_HOME": str(tmp_path), name: value})
    assert str(refused.value).startswith(f"{name}: ")
    assert refused.value.hint


def test_unknown_variable_warns_and_unknown_key_is_an_error(tmp_path: Path) -> None:
    """A TOFT_ variable of another version only warns; an unknown key in our own file is an error."""
    loaded = load({"TOFT_HOME": str(tmp_path), "TOFT_FUTURE": "x", "TOFT_INSTANCE_ID": "l_1"})
    assert loaded.warnings == ["there is no option for the variable `TOFT_FUTURE`"]
    with pytest.raises(SettingUnknown):
        load(home_with(tmp_path, "future = 1\n"))


@pytest.mark.parametrize("config", ["not toml at all [", 'home = "/elsewhere"\n'])
def test_broken_file_is_refused(tmp_path: Path, config: str) -> None:
    """A config.toml that is no TOML, or says where the home is, is refused."""
    with pytest.raises((SettingInvalid, SettingUnknown)):
        load(home_with(tmp_path, config))


def test_settings_do_not_change() -> None:
    """Assigning to an option fails."""
    with pytest.raises(AttributeError):
        load({"TOFT_HOME": "/nowhere"}).ttl = 5


def test_run_folder_follows_the_home() -> None:
    """Two homes have two run folders, short enough for sockets; one home has always the same."""
    one, two = load({"TOFT_HOME": "/srv/one"}), load({"TOFT_HOME": "/srv/two"})
    assert one.run != two.run
    assert one.run == load({"TOFT_HOME": "/srv/one/"}).run
    assert len(os.fsencode(one.run)) <= settings.LONGEST_RUN


def test_xdg_rules_place_the_home(tmp_path: Path) -> None:
    """Without TOFT_HOME the XDG data folder is used; a relative one is against its rules and ignored."""
    assert load({"XDG_DATA_HOME": str(tmp_path)}).home == f"{tmp_path}/toft"
    assert load({"XDG_DATA_HOME": "relative"}).home != "relative/toft"


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("10y", 315360000)]
)
def test_times(text: str, seconds: int) -> None:
    """Times are numbers with a unit; seconds without one."""
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("64k", 65536), ("2G", 2 << 30), ("2GiB", 2 << 30), ("1mb", 1 << 20)]
)
def test_sizes(text: str, size: int) -> None:
    """Sizes are numbers with a unit, always of 1024."""
    assert parse_bytes(text) == size


def test_every_option_is_described() -> None:
    """Each option has prose, says what it takes, and its variable is TOFT_ and its name."""
    for option in settings.options():
        assert option.prose.endswith(".")
        assert option.takes
        assert option.env == "TOFT_" + option.name.upper()
        assert getattr(Settings, option.name) is option
