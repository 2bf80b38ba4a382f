"""`toft lease` and `toft psql` in a shell, against real backends, from the first call to the last."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon
from tests.kit.real_cli import RealCli
from toft.protocol.dotenv import parse


@pytest.fixture
def cli(toftd: RunningDaemon, folder: Path) -> RealCli:
    return RealCli(toftd, folder)


def shell(cli: RealCli, script: str) -> str:
    """Run a script as a user's shell would, with `toft` in its way."""
    toft = f'toft() {{ "{sys.executable}" -m toft.cli.main "$@"; }}\n'
    done = subprocess.run(
        ["sh", "-euc", toft + script],
        cwd=cli.folder,
        env=cli.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_life_of_a_lease(cli: RealCli, toftd: RunningDaemon) -> None:
    """Created, listed, shown, renewed, released: each step tells the same lease, and the last one ends it."""
    made = cli.json("lease", "create", "--label", "mine", "--ttl", "10m")
    assert (made["label"], made["ttl_seconds"], made["held"]) == ("mine", 600, False)
    [listed] = cli.json("lease", "list")["leases"]
    assert (listed["id"], listed["url"]) == (made["id"], made["url"])
    assert cli.json("lease", "show", "mine")["password"] == made["password"]
    renewed = cli.json("lease", "renew", made["id"], "--ttl", "2h", "--credential", made["credential"])
    assert renewed["ttl_seconds"] == 7200
    assert cli.refusal("lease", "renew", made["id"], "--credential", "x")["code"] == "TOFT-ACCESS-CREDENTIAL"
    assert cli.json("lease", "release", "mine") == {"released": made["id"]}
    await toftd.until_gone(made)
    assert cli.json("lease", "list") == {"leases": []}
    assert cli.refusal("lease", "show", made["id"])["code"] == "TOFT-LEASE-ENDED"
    assert cli.refusal("lease", "show", "no-such-lease")["code"] == "TOFT-LEASE-NOT-FOUND"


async def test_variables_work_in_each_form(cli: RealCli) -> None:
    """What `lease env` prints sets a shell up, fills a .env file, and is an object for programs."""
    cli.json("lease", "create")
    as_json = cli.json("lease", "env")
    assert json.loads(cli("lease", "env", "--format", "json").stdout) == as_json
    assert parse(cli("lease", "env").stdout) == (as_json, [])
    told = shell(cli, 'eval "$(toft lease env --format shell)"; psql -Atc "select current_user, 6 * 7"')
    assert told == "postgres|42\n"


async def test_psql_finds_the_lease(cli: RealCli) -> None:
    """`toft psql` opens the only lease, or the one that is named; its status is psql's."""
    cli.json("lease", "create", "--label", "one")
    assert cli("psql", "--", "-Atc", "create table a (); select 1").stdout == "CREATE TABLE\n1\n"
    cli.json("lease", "create", "--label", "two")
    assert cli.refusal("psql", "--", "-c", "select 1")["code"] == "TOFT-LEASE-AMBIGUOUS"
    assert cli("psql", "one", "--", "-Atc", "table a").returncode == 0
    assert cli("psql", "two", "--", "-Atc", "table a").returncode == 1
