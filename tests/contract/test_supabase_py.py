"""supabase-py, which we did not write, against a gateway worker: all services and the mailbox as one."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from storage3.exceptions import StorageApiError
from supabase import AsyncClient, AsyncClientOptions, acreate_client
from supabase_auth.errors import AuthApiError, AuthWeakPasswordError

from tests.kit.fix_gateway import make_secrets, running_worker
from tests.kit.fix_postgres import find_free_port
from tests.kit.fix_supabase import LOGINS, PASSWORD, SupabaseTemplates
from toft.protocol.worker import Attach, BackendSpec, Detach, Secrets, ServiceSettings

ADA = {"email": "ada@example.com", "password": "a-long-enough-one"}


class Project:
    """A backend behind the real gateway."""

    def __init__(self, url: str, secrets: Secrets, http: httpx.AsyncClient) -> None:
        self.url = url
        self.secrets = secrets
        #: shared by all clients, so that it can be closed: they do not close their own
        self.http = http

    async def client(self, key: str | None = None) -> AsyncClient:
        options = AsyncClientOptions(httpx_client=self.http, auto_refresh_token=False)
        return await acreate_client(self.url, key or self.secrets.publishable_key, options)


@pytest.fixture
async def project(supabase_templates: SupabaseTemplates, tmp_path: Path) -> AsyncIterator[Project]:
    cluster = await supabase_templates.start(18)
    sql = await cluster.connect("postgres")
    await sql.script(
        "create table public.notes (id bigint generated always as identity primary key,"
        " owner uuid not null default auth.uid() references auth.users (id) on delete cascade, text text);"
        "alter table public.notes enable row level security;"
        "create policy own on public.notes to authenticated using (owner = auth.uid());"
        "insert into storage.buckets (id, name) values ('files', 'files');"
        "create policy own_files on storage.objects to authenticated using (bucket_id = 'files'"
        " and (storage.foldername(name))[1] = (select auth.uid())::text)"
    )
    secrets = make_secrets(dict.fromkeys(LOGINS, PASSWORD))
    with running_worker() as worker:
        daemon = await worker.connect()
        port = find_free_port()
        await daemon.do(
            Attach,
            BackendSpec(
                backend_id="b1",
                template_key="t1",
                http_port=port,
                db_port=find_free_port(),
                socket_path=cluster.socket_path,
                objects_path=str(tmp_path / "objects"),
                settings=ServiceSettings(),
                secrets=secrets,
            ),
        )
        async with httpx.AsyncClient(follow_redirects=True) as http:
            yield Project(f"http://127.0.0.1:{port}", secrets, http)
        await daemon.do(Detach, "b1")
        await daemon.close()
    await supabase_templates.stop(cluster)


async def test_a_user_of_all_services(project: Project):
    """Sign up, write rows and files of one's own, see nobody else's, refresh, sign out."""
    ada, bob = await project.client(), await project.client()
    signed = await ada.auth.sign_up(ADA)
    assert signed.session is not None
    await bob.auth.sign_up({**ADA, "email": "bob@example.com"})
    await ada.table("notes").insert({"text": "mine"}).execute()
    assert (await ada.table("notes").select("text, owner").execute()).data == [
        {"text": "mine", "owner": signed.user.id}
    ]
    assert (await bob.table("notes").select("*").execute()).data == []
    path = f"{signed.user.id}/a b.txt"
    await ada.storage.from_("files").upload(path, b"hello", {"content-type": "text/plain"})
    assert await ada.storage.from_("files").download(path) == b"hello"
    with pytest.raises(StorageApiError, match="Object not found"):
        await bob.storage.from_("files").download(path)
    with pytest.raises(StorageApiError, match="row-level security"):
        await bob.storage.from_("files").upload(path, b"mine now")
    link = await ada.storage.from_("files").create_signed_url(path, 60)
    assert (await project.http.get(link["signedURL"])).text == "hello"
    refreshed = await ada.auth.refresh_session()
    assert refreshed.session is not None
    claims = await ada.auth.get_claims()
    assert claims is not None
    assert claims["claims"]["email"] == "ada@example.com"
    await ada.auth.sign_out()
    assert (await ada.table("notes").select("*").execute()).data == []


async def test_a_password_is_recovered_by_mail(project: Project):
    """The mail is in the backend's own box; its code signs in; a weak or the same password is refused."""
    client = await project.client()
    await client.auth.sign_up(ADA)
    await client.auth.sign_out()
    await client.auth.reset_password_for_email(ADA["email"])
    async with httpx.AsyncClient() as http:
        mail = (
            await http.get(f"{project.url}/mail/api/v1/wait", params={"query": f"to:{ADA['email']}"})
        ).json()
    code = mail["Codes"][0]
    await client.auth.verify_otp({"type": "recovery", "email": ADA["email"], "token": code})
    with pytest.raises(AuthWeakPasswordError):
        await client.auth.update_user({"password": "short"})
    with pytest.raises(AuthApiError, match="different from the old password"):
        await client.auth.update_user({"password": ADA["password"]})
    await client.auth.update_user({"password": "quite-new-one"})
    await client.auth.sign_in_with_password({**ADA, "password": "quite-new-one"})


async def test_administrators(project: Project):
    """By the secret key and by the legacy one; nobody else."""
    for key in (project.secrets.secret_key, project.secrets.service_role_key):
        admin = await project.client(key)
        made = await admin.auth.admin.create_user({"email": "x@example.com", "email_confirm": True})
        assert [user.id for user in await admin.auth.admin.list_users()] == [made.user.id]
        link = await admin.auth.admin.generate_link({"type": "magiclink", "email": "x@example.com"})
        client = await project.client()
        signed = await client.auth.verify_otp(
            {"type": "magiclink", "token_hash": link.properties.hashed_token}
        )
        assert signed.user is not None
        assert signed.user.id == made.user.id
        assert (await admin.table("notes").select("*").execute()).data == []
        await admin.auth.admin.delete_user(made.user.id)
    client = await project.client()
    with pytest.raises(AuthApiError, match="User not allowed"):
        await client.auth.admin.list_users()


async def test_tokens_of_auth_are_those_of_the_other_services(project: Project):
    """They are signed asymmetrically, and published."""
    client = await project.client()
    signed = await client.auth.sign_up(ADA)
    assert signed.session is not None
    header = signed.session.access_token.partition(".")[0]
    told = json.loads(base64.urlsafe_b64decode(header + "=="))
    keys = (await project.http.get(f"{project.url}/auth/v1/.well-known/jwks.json")).json()["keys"]
    found = await project.http.get(f"{project.url}/.well-known/openid-configuration/auth/v1")
    assert told["alg"] == "ES256"
    assert [key["kid"] for key in keys] == [told["kid"]]
    assert found.json()["issuer"] == f"{project.url}/auth/v1"
