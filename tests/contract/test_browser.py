"""A real browser, Debian's Chromium, against a lease: the consent page, and social logins by supabase-js."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, async_playwright, expect

from tests.kit.fix_daemon import RunningDaemon
from tests.kit.real_cli import RealCli
from toft.client.services import Api
from toft.client.users import Users
from toft.http.message import Request, Response
from toft.http.server import listen

CHROMIUM = shutil.which("chromium")
SUPABASE_JS = (
    Path(__file__).parents[2] / "examples/todos/node_modules/@supabase/supabase-js/dist/umd/supabase.js"
)
CONFIG = """
[auth.oauth_server]
enabled = true
allow_dynamic_registration = true
[auth.external.github]
enabled = true
client_id = "a-client"
"""
PAGE = """<!doctype html><button>Sign in with GitHub</button><p></p>
<script src="/supabase.js"></script><script>
const {url, key, flow} = SETTINGS;
const client = supabase.createClient(url, key, {auth: {flowType: flow}});
document.querySelector('button').onclick = () =>
  client.auth.signInWithOAuth({provider: 'github', options: {redirectTo: location.origin + '/back'}});
client.auth.onAuthStateChange((event, session) => {
  if (session) document.querySelector('p').textContent = JSON.stringify([
    session.user.email, session.user.app_metadata.provider, !!session.provider_token, location.pathname]);
});
</script>"""
EMAIL, PASSWORD = "ada@example.com", "a-long-enough-one"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: tools/system-packages installs it")


class App:
    """An application of a user's own: serves pages, and keeps the addresses that browsers came to."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[bytes, bytes]] = {}
        self.came: list[str] = []

    async def handle(self, request: Request) -> Response:
        self.came.append(f"{request.raw_path}?{request.query}")
        kind, body = self.pages.get(request.raw_path, (b"text/html", b"<!doctype html><title>back</title>"))
        return Response(200, [(b"content-type", kind)], body)


@pytest.fixture
async def app() -> AsyncIterator[tuple[App, str]]:
    """The application and its address."""
    served = App()
    listener = await listen(served.handle)
    yield served, f"http://127.0.0.1:{listener.port}"
    await listener.close()


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # as root Chromium has no sandbox of its own; the pages are ours
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest.fixture
def env(toftd: RunningDaemon, folder: Path) -> dict[str, str]:
    """The variables of a lease with a user."""
    cli = RealCli(toftd, folder)
    cli.write({"supabase/config.toml": CONFIG})
    cli.json("lease", "create")
    env = cli.json("lease", "env")
    Users(Api(env["SUPABASE_URL"], env["SUPABASE_SECRET_KEY"])).create(EMAIL, PASSWORD)
    return env


@pytest.mark.parametrize("answer", ["Allow", "Deny"])
async def test_consent_page_without_javascript(
    env: dict[str, str], app: tuple[App, str], browser: Browser, answer: str
) -> None:
    """A person reads who asks for what, signs in, and allows or denies it; forms are all that it takes."""
    auth = env["SUPABASE_URL"] + "/auth/v1"
    back = app[1] + "/back"
    wish = {"client_name": "Notes <for> you", "redirect_uris": [back], "token_endpoint_auth_method": "none"}
    client = Api(auth).call("Auth", "POST", "/oauth/clients/register", wish)
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    asked = {
        "client_id": client["client_id"], "redirect_uri": back, "response_type": "code", "state": "s-1",
        "scope": "openid email offline_access", "code_challenge_method": "plain", "code_challenge": verifier,
    }  # fmt: skip
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(str(httpx.URL(f"{auth}/oauth/authorize", params=asked)))
    await page.get_by_label("E-mail").fill(EMAIL)
    await page.get_by_label("Password").fill("wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_have_text("Invalid login credentials")
    await page.get_by_label("E-mail").fill(EMAIL)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading")).to_have_text("Notes <for> you asks for access")
    await expect(page.get_by_text("see your e-mail address")).to_be_visible()
    await expect(page.get_by_text(EMAIL)).to_be_visible()
    await page.get_by_role("button", name=answer).click()
    await expect(page).to_have_title("back")
    told = dict(httpx.URL(page.url).params)
    assert told["state"] == "s-1"
    if answer == "Deny":
        assert told["error"] == "access_denied"
        return
    form = {
        "grant_type": "authorization_code", "client_id": client["client_id"], "code": told["code"],
        "code_verifier": verifier, "redirect_uri": back,
    }  # fmt: skip
    async with httpx.AsyncClient() as http:
        tokens = (await http.post(f"{auth}/oauth/token", data=form)).json()
        bearer = {"authorization": f"Bearer {tokens['access_token']}"}
        assert (await http.get(f"{auth}/oauth/userinfo", headers=bearer)).json()["email"] == EMAIL


@pytest.mark.skipif(not SUPABASE_JS.exists(), reason="no supabase-js: run tools/node-packages examples/todos")
@pytest.mark.parametrize("flow", ["implicit", "pkce"])
async def test_sign_in_with_github(
    env: dict[str, str], app: tuple[App, str], browser: Browser, flow: str
) -> None:
    """An app's button leads to the test provider and back, signed in, in both of auth-js's flows."""
    settings = {"url": env["SUPABASE_URL"], "key": env["SUPABASE_PUBLISHABLE_KEY"], "flow": flow}
    page_of_app = (b"text/html", PAGE.replace("SETTINGS", json.dumps(settings)).encode())
    script = await asyncio.to_thread(SUPABASE_JS.read_bytes)
    app[0].pages = {"/": page_of_app, "/back": page_of_app, "/supabase.js": (b"text/javascript", script)}
    page = await browser.new_page()
    await page.goto(app[1] + "/")
    await page.get_by_role("button", name="Sign in with GitHub").click()
    await expect(page.get_by_role("heading", name="Sign in with github")).to_be_visible()
    await page.get_by_role("button", name="Grace Hopper").click()
    who = page.locator("p")
    await expect(who).to_have_text(
        json.dumps(["grace@example.com", "github", True, "/back"], separators=(",", ":"))
    )
    assert any(("code=" in came) == (flow == "pkce") for came in app[0].came if came.startswith("/back"))
    await page.reload()
    await expect(who).to_contain_text("grace@example.com")
