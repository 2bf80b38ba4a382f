"""Run the suites of auth-js and supabase_auth against leases: `tools/conformance_auth.py RUNNERS --work DIR`.

RUNNERS: the folder of `run_auth_js.py`, `run_auth_py.py` and `variants.py` (docs/conformance.md). Each server
variant of upstream is a lease with a config.toml of its own. Some tests send no API key, as upstream's local
servers allow and the hosted door does not: in front of the leases stands a door that adds the anon key where
there is none, which for Auth is no bearer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx

from toft.http.message import Request, Response
from toft.http.server import listen

TOFT = [sys.executable, "-m", "toft.cli.main"]
KEYS = "signing_keys.json"
_ONE_DATABASE = "test_modify_confirm_email_using_update_user_by_id"
#: what an answer says about its own way here, which is not that of the door
_HOP = (b"connection", b"transfer-encoding", b"content-length", b"keep-alive", b"date", b"server")

GOOGLE = '[auth.external.google]\nenabled = true\nclient_id = "c.apps.googleusercontent.com"\nsecret = "s"\n'
PHONE = '[auth.sms]\nenable_signup = true\nmax_frequency = "1s"\n'
MFA = "".join(
    f"[auth.mfa.{kind}]\nenroll_enabled = true\nverify_enabled = true\n" for kind in ("totp", "phone")
)
SERVER = "[auth.oauth_server]\nenabled = true\nallow_dynamic_registration = true\n"


def common(port: int, *, anonymous: bool, sign_up: bool = True) -> str:
    """The head of a docker variant's config.toml."""
    return (
        f'[auth]\nsite_url = "http://localhost:{port}"\nadditional_redirect_urls = ["https://supabase.io/docs"]\n'
        f"enable_signup = {str(sign_up).lower()}\nenable_anonymous_sign_ins = {str(anonymous).lower()}\n"
    )


def with_keys(secret: str) -> str:
    return f'jwt_secret = "{secret}"\nsigning_keys_path = "./{KEYS}"\n'


def docker_variants(secret: str, *, anonymous_off: bool) -> dict[str, str]:
    """Upstream's four servers, as config.toml. anonymous_off: as auth-js wants the first of them."""
    own = f'jwt_secret = "{secret}"\n'
    confirm = "[auth.email]\nenable_confirmations = true\n"
    texts = PHONE + "enable_confirmations = true\nmailbox = false\n"
    return {
        "autoconfirm-off": common(9999, anonymous=not anonymous_off) + own + confirm + texts + MFA + GOOGLE,
        "autoconfirm-on": common(9998, anonymous=True) + with_keys(secret) + PHONE + MFA + SERVER,
        "signup-disabled": common(9997, anonymous=True, sign_up=False)
        + own
        + "[auth.email]\nenable_signup = false\nenable_confirmations = true\n"
        + "[auth.sms]\nenable_signup = false\n",
        "asymmetric": common(9996, anonymous=True) + with_keys(secret) + PHONE + MFA,
    }


def cli_variant(upstream: dict[str, Any]) -> str:
    """The full-featured server: upstream's own config.toml, with two changes."""
    auth: dict[str, Any] = upstream["auth-js"]["cli"]["config"]["auth"]
    auth["external"]["google"]["secret"] = "a-secret"  # with none, Toft plays the provider
    auth["sms"]["mailbox"] = False  # upstream has no provider here, and a test wants it to fail
    return as_toml(("auth",), auth)


def as_toml(path: tuple[str, ...], table: dict[str, Any]) -> str:
    """A table and those below it."""
    plain = {name: value for name, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{'.'.join(path)}]", *(f'"{name}" = {json.dumps(value)}' for name, value in plain.items())]
    below = "".join(
        as_toml((*path, name), cast("dict[str, Any]", value))
        for name, value in table.items()
        if isinstance(value, dict)
    )
    return "\n".join(lines) + "\n" + below


def signing_keys(upstream: dict[str, Any], variant: str) -> str:
    """Upstream's published keys of a variant, the one that signs first."""
    keys: list[dict[str, Any]] = json.loads(upstream["auth-js"][variant]["env"]["GOTRUE_JWT_KEYS"])
    keys.sort(key=lambda key: "sign" not in key["key_ops"])
    return json.dumps(keys)


def lease(folder: Path, name: str, config: str, keys: str | None) -> dict[str, str]:
    """The variables of a lease with this configuration."""
    project = folder / name / "supabase"
    project.mkdir(parents=True, exist_ok=True)
    (project / "config.toml").write_text(config)
    if keys is not None:
        (project / KEYS).write_text(keys)
    words = ["lease", "create", "--ttl", "1h", "--dir", str(folder / name), "--label", name, "--json"]
    made = json.loads(subprocess.run([*TOFT, *words], check=True, stdout=subprocess.PIPE, text=True).stdout)
    words = ["lease", "env", made["id"], "--format", "json"]
    return json.loads(subprocess.run([*TOFT, *words], check=True, stdout=subprocess.PIPE, text=True).stdout)


@asynccontextmanager
async def door(url: str, anon_key: str) -> AsyncGenerator[str]:
    """An address that leads to `url`, for callers without an API key too."""
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:

        async def handle(request: Request) -> Response:
            headers = [pair for pair in request.headers.raw if pair[0] not in (b"host", b"connection")]
            if request.headers.get(b"apikey") is None:
                headers.append((b"apikey", anon_key.encode()))
            address = request.raw_path + (f"?{request.query}" if request.query else "")
            body = await request.body.read(2 << 20)
            answer = await http.request(request.method, address, headers=headers, content=body)
            told = [(name.lower(), value) for name, value in answer.headers.raw if name.lower() not in _HOP]
            return Response(
                answer.status_code, [pair for pair in told if pair[0] != b"content-encoding"], answer.content
            )

        listener = await listen(handle)
        try:
            yield f"http://127.0.0.1:{listener.port}"
        finally:
            await listener.close()


async def run(*words: str) -> int:
    """A runner, with its own words on our terminal."""
    print("$", " ".join(words), flush=True)
    process = await asyncio.create_subprocess_exec(sys.executable, *words)
    return await process.wait()


async def run_docker(args: argparse.Namespace, upstream: dict[str, Any], script: str, folder: Path) -> int:
    """A suite that wants the four servers."""
    is_js = script == "run_auth_js.py"
    secret = upstream["auth-js"]["autoconfirm_on"]["env"]["GOTRUE_JWT_SECRET"]
    words = [str(args.runners / script), "--work", str(args.work / ("js" if is_js else "py"))]
    words += ["--report", str(args.work / f"{'docker' if is_js else 'py'}.json")]
    words += ["--docker-jwt-secret" if is_js else "--jwt-secret", secret]
    words += ["--suite", "docker"] if is_js else []
    doors: list[Any] = []
    try:
        for name, config in docker_variants(secret, anonymous_off=is_js).items():
            variant = name.replace("-", "_")
            keys = signing_keys(upstream, variant) if KEYS in config else None
            env = lease(folder, f"{'js' if is_js else 'py'}-{name}", config, keys)
            opened = door(env["SUPABASE_URL"] + "/auth/v1", env["SUPABASE_ANON_KEY"])
            words += [f"--url-{name}", await opened.__aenter__()]
            doors.append(opened)
        if is_js:
            return await run(*words)
        # signs up at one server and administrates at another: upstream's have one database, leases have not
        known = args.work / "known-py.txt"
        known.write_text(f"{_ONE_DATABASE}\n")
        status = await run(*words, "--known", str(known))
        at = words.index("--url-autoconfirm-on") + 1
        words[at] = words[words.index("--url-autoconfirm-off") + 1]
        words[words.index("--report") + 1] = str(args.work / "py-one-database.json")
        return status or await run(*words, "--grep", _ONE_DATABASE)
    finally:
        for opened in doors:
            await opened.__aexit__(None, None, None)


async def run_cli(args: argparse.Namespace, upstream: dict[str, Any], folder: Path) -> int:
    """The suite of one full-featured server."""
    js = args.work / "js"
    await run(str(args.runners / "run_auth_js.py"), "--work", str(js), "--install-only")
    keys = js / "packages/core/auth-js/test/supabase/signing_keys.json"
    own = folder / KEYS  # the runner copies it to where it came from
    own.write_bytes(keys.read_bytes())
    env = lease(folder, "cli", cli_variant(upstream), own.read_text())
    known = args.work / "known.txt"
    known.write_text("passkey\\.e2e\nWebAuthn MFA\n")
    async with door(env["SUPABASE_URL"], env["SUPABASE_ANON_KEY"]) as url:
        return await run(
            str(args.runners / "run_auth_js.py"), "--work", str(js), "--suite", "cli",
            "--url", url + "/auth/v1", "--signing-keys", str(own), "--known", str(known),
            "--report", str(args.work / "cli.json"),
        )  # fmt: skip


async def main() -> int:
    """Run what was asked for; 0 when all of it passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runners", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="a folder that is kept for the next time")
    parser.add_argument(
        "--suites", nargs="+", choices=("cli", "docker", "py"), default=["cli", "docker", "py"]
    )
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    file = args.work / "variants.json"
    await run(str(args.runners / "variants.py"), "--out", str(file))
    upstream: dict[str, Any] = json.loads(file.read_text())
    failed = 0
    with tempfile.TemporaryDirectory(prefix="toft-auth-") as folder:
        os.chmod(folder, 0o711)  # noqa: PTH101 -- Postgres has a user of its own
        home = str(Path(folder) / "home")
        os.environ.update(TOFT_HOME=home, TOFT_RUN=home + "/run", TOFT_POOL_SIZE="0", TOFT_POOL_CLONED="0")
        try:
            for suite in args.suites:
                if suite == "cli":
                    failed += await run_cli(args, upstream, Path(folder)) != 0
                else:
                    script = "run_auth_js.py" if suite == "docker" else "run_auth_py.py"
                    failed += await run_docker(args, upstream, script, Path(folder)) != 0
        finally:
            await run("-m", "toft.cli.main", "daemon", "stop", "--purge")
    return failed


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
