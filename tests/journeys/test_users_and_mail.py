"""`toft user`, `toft mail` and `toft.mail`: what tests and agents need of Auth, against a real backend."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

from tests.kit.fix_daemon import RunningDaemon
from tests.kit.real_cli import RealCli
from toft.errors.service import MailNotCome, MailNotFound, MailUrlMissing
from toft.mail import Mailbox

CONFIG = "[auth.email]\nenable_confirmations = true\n"


@pytest.fixture
def cli(toftd: RunningDaemon, folder: Path) -> RealCli:
    return RealCli(toftd, folder)


def api(env: dict[str, str], token: str = "") -> httpx.Client:
    """A caller of the lease's API, signed in or not."""
    headers = {"apikey": env["SUPABASE_PUBLISHABLE_KEY"], "x-supabase-api-version": "2024-01-01"}
    return httpx.Client(
        base_url=env["SUPABASE_URL"],
        headers={**headers, **({"authorization": f"Bearer {token}"} if token else {})},
    )


async def test_the_life_of_a_user(cli: RealCli) -> None:
    """Created, listed, signed in without a password, deleted; what cannot be done is one line."""
    cli.json("lease", "create")
    env = cli.json("lease", "env")
    words = ("--password", "a-long-enough-one", "--data", '{"name": "Ada"}', "--app-data", '{"role": "chef"}')
    made = cli.json("user", "create", "Ada@example.com", *words)
    assert (made["email"], made["user_metadata"]["name"]) == ("ada@example.com", "Ada")
    assert made["app_metadata"]["role"] == "chef"
    assert cli.refusal("user", "create", "ada@example.com")["code"] == "TOFT-SERVICE-REFUSED"
    assert cli.refusal("user", "create", "ada", "--data", "[]")["code"] == "TOFT-USAGE"
    session = cli.json("user", "token", "ada@example.com")
    assert session["user"]["id"] == made["id"]
    with api(env) as http:
        grant = {"email": "ada@example.com", "password": "a-long-enough-one"}
        assert http.post("/auth/v1/token?grant_type=password", json=grant).status_code == 200
        again = {"refresh_token": session["refresh_token"]}
        assert http.post("/auth/v1/token?grant_type=refresh_token", json=again).status_code == 200
    token = cli("user", "token", "new@example.com").stdout.strip()
    with api(env, token) as http:
        assert http.get("/auth/v1/user").json()["email"] == "new@example.com"
    assert cli.json("user", "token", made["id"])["user"]["email"] == "ada@example.com"
    listed = cli.json("user", "list")["users"]
    assert [user["email"] for user in listed] == ["new@example.com", "ada@example.com"]
    assert "ada@example.com" in cli("user", "list").stdout
    assert cli.json("user", "delete", "ada@example.com") == {"deleted": made["id"]}
    for gone in ("ada@example.com", made["id"]):
        assert cli.refusal("user", "delete", gone)["code"] == "TOFT-USER-NOT-FOUND"


async def test_mail_is_waited_for_and_read(cli: RealCli) -> None:
    """The code of a sign-up's mail confirms it, from the shell and from Python; links work in any client."""
    cli.write({"supabase/config.toml": CONFIG})
    cli.json("lease", "create")
    env = cli.json("lease", "env")
    assert env["TOFT_MAIL_URL"] == env["SUPABASE_URL"] + "/mail"
    assert cli.json("mail", "list") == {"messages": []}
    assert cli.refusal("mail", "show", "nothing")["code"] == "TOFT-MAIL-NOT-FOUND"
    assert cli.refusal("mail", "wait", "a@b.example", "--timeout", "0s")["code"] == "TOFT-MAIL-NOT-COME"
    assert cli.refusal("mail", "wait", "a@b.example", "--timeout", "x")["code"] == "TOFT-USAGE"
    with api(env) as http:
        body = {"email": "ada@example.com", "password": "a-long-enough-one"}
        assert "access_token" not in http.post("/auth/v1/signup", json=body).json()
        mail = cli.json("mail", "wait", "ada@example.com")
        assert len(mail["Code"]) == 6
        assert cli.json("mail", "links") == {"links": [mail["Link"]], "codes": [mail["Code"]]}
        assert cli("mail", "links").stdout == mail["Link"] + "\n"
        assert mail["Code"] in cli("mail", "show", mail["ID"]).stdout
        [listed] = cli.json("mail", "list", "--to", "ada@example.com", "--query", "subject:confirm")[
            "messages"
        ]
        assert listed["ID"] == mail["ID"]
        assert "ada@example.com" in cli("mail", "list").stdout
        proof = {"type": "signup", "email": "ada@example.com", "token": mail["Code"]}
        assert "access_token" in http.post("/auth/v1/verify", json=proof).json()

        mailbox = Mailbox(env["TOFT_MAIL_URL"])
        assert mailbox.wait("Ada@example.com").code == mail["Code"]
        with pytest.raises(MailNotCome):
            mailbox.wait("ada@example.com", timeout=0)
        assert http.post("/auth/v1/recover", json={"email": "ada@example.com"}).json() == {}
        reset = mailbox.wait("ada@example.com", subject="reset")
        assert http.get(reset.link).headers["location"].startswith("http://127.0.0.1:3000#access_token=")
    mailbox.clear()
    assert mailbox.list() == []
    with pytest.raises(MailNotFound):
        mailbox.read("latest")


async def test_a_command_finds_its_mailbox(cli: RealCli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `toft run` the mailbox needs no address; elsewhere that is said."""
    script = "from toft.mail import Mailbox; print(Mailbox().list())"
    done = cli("run", "--", sys.executable, "-c", script)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    monkeypatch.delenv("TOFT_MAIL_URL", raising=False)
    with pytest.raises(MailUrlMissing):
        Mailbox()
