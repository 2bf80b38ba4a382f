"""Administrators' endpoints: who may, pages, creating, changing, deleting."""

from __future__ import annotations

from tests.kit.fix_auth import AuthBackend


async def make(backend: AuthBackend, **fields) -> dict:
    answer = await backend.admin("POST /admin/users", fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_only_administrators(auth_backend: AuthBackend):
    """No bearer 401; anon and ordinary users 403."""
    session = await auth_backend.sign_up()
    assert (await auth_backend.call("GET /admin/users", apikey=auth_backend.keys.anon_key)).status_code == 401
    for token in (None, session["access_token"], auth_backend.keys.anon_key):
        answer = await auth_backend.call("GET /admin/users", token=token)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_admin")
    assert (await auth_backend.admin("GET /admin/users")).status_code == 200


async def test_create_sign_in_and_read(auth_backend: AuthBackend):
    """A confirmed user signs in; metadata and roles are as given; strength is not checked."""
    user = await make(
        auth_backend, email="Ada@example.com", password="x", email_confirm=True,
        user_metadata={"name": "Ada"}, app_metadata={"plan": "pro"},
    )  # fmt: skip
    assert user["email"] == "ada@example.com"
    assert user["app_metadata"] == {"provider": "email", "providers": ["email"], "plan": "pro"}
    assert user["user_metadata"] == {"name": "Ada", "email_verified": True}
    assert user["identities"][0]["identity_data"]["email"] == "ada@example.com"
    grant = {"email": "ada@example.com", "password": "x"}
    signed_in = await auth_backend.call("POST /token?grant_type=password", grant)
    assert signed_in.status_code == 200
    assert signed_in.json()["weak_password"]["reasons"] == ["length"]
    assert (await auth_backend.admin(f"GET /admin/users/{user['id']}")).json()["id"] == user["id"]
    assert (await auth_backend.admin("GET /admin/users/nobody")).status_code == 404
    unknown = await auth_backend.admin("GET /admin/users/00000000-0000-0000-0000-000000000001")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "user_not_found")


async def test_unconfirmed_user_does_not_sign_in(auth_backend: AuthBackend):
    """Autoconfirm is for sign-ups; an administrator says so."""
    await make(auth_backend, email="ada@example.com", password="a-long-enough-one")
    grant = {"email": "ada@example.com", "password": "a-long-enough-one"}
    answer = await auth_backend.call("POST /token?grant_type=password", grant)
    assert (answer.status_code, answer.json()["code"]) == (400, "email_not_confirmed")


async def test_create_refusals(auth_backend: AuthBackend):
    """No address, a taken one, an id that is none."""
    await make(auth_backend, email="ada@example.com", phone="+1 555 0100")
    cases = [
        ({}, 400, "validation_failed"),
        ({"email": "ADA@example.com"}, 422, "email_exists"),
        ({"phone": "15550100"}, 422, "phone_exists"),
        ({"email": "bob@example.com", "id": "x"}, 400, "validation_failed"),
        (
            {"email": "bob@example.com", "password": "x", "password_hash": "$2a$"},
            400,
            "validation_failed",
        ),
        ({"email": "bob@example.com", "password_hash": "plain"}, 400, "validation_failed"),
        ({"email": "bob@example.com", "ban_duration": "soon"}, 400, "validation_failed"),
    ]
    for body, status, code in cases:
        answer = await auth_backend.admin("POST /admin/users", body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert (await auth_backend.admin("GET /admin/users")).headers["x-total-count"] == "1"


async def test_pages(auth_backend: AuthBackend):
    """Totals, next and last, order and filter."""
    for number in range(5):
        await make(auth_backend, email=f"u{number}@example.com")
        auth_backend.clock.turn(seconds=1)
    first = await auth_backend.admin("GET /admin/users?page=1&per_page=2")
    assert [user["email"] for user in first.json()["users"]] == ["u4@example.com", "u3@example.com"]
    assert first.json()["aud"] == "authenticated"
    assert first.headers["x-total-count"] == "5"
    assert first.headers["link"] == (
        '</admin/users?page=2&per_page=2>; rel="next", </admin/users?page=3&per_page=2>; rel="last"'
    )
    last = await auth_backend.admin("GET /admin/users?page=3&per_page=2")
    assert last.headers["link"] == '</admin/users?page=3&per_page=2>; rel="last"'
    found = await auth_backend.admin("GET /admin/users?filter=U3")
    assert [user["email"] for user in found.json()["users"]] == ["u3@example.com"]
    assert (await auth_backend.admin("GET /admin/users?filter=%25")).json()["users"] == []
    sorted_up = await auth_backend.admin("GET /admin/users?sort=email asc")
    assert sorted_up.json()["users"][0]["email"] == "u0@example.com"
    for bad in ("page=x", "per_page=-1", "sort=encrypted_password"):
        assert (await auth_backend.admin(f"GET /admin/users?{bad}")).status_code == 400


async def test_update(auth_backend: AuthBackend):
    """Metadata merges, a null deletes, an address moves the identity, a password ends sessions."""
    session = await auth_backend.sign_up()
    path = f"/admin/users/{session['user']['id']}"
    changed = await auth_backend.admin(
        f"PUT {path}",
        {
            "email": "new@example.com",
            "user_metadata": {"a": 1, "sub": None},
            "app_metadata": {"x": 1},
            "role": "boss",
        },
    )
    assert changed.status_code == 200, changed.text
    user = changed.json()
    assert (user["email"], user["role"]) == ("new@example.com", "boss")
    assert user["user_metadata"]["a"] == 1
    assert "sub" not in user["user_metadata"]
    assert user["app_metadata"] == {"provider": "email", "providers": ["email"], "x": 1}
    assert user["identities"][0]["identity_data"]["email"] == "new@example.com"
    assert (await auth_backend.admin(f"PUT {path}", {"password": "short"})).json()["code"] == "weak_password"
    assert (await auth_backend.admin(f"PUT {path}", {"password": "another-long-one"})).status_code == 200
    assert (await auth_backend.call("GET /user", token=session["access_token"])).status_code == 403
    await make(auth_backend, email="bob@example.com")
    taken = await auth_backend.admin(f"PUT {path}", {"email": "bob@example.com"})
    assert (taken.status_code, taken.json()["code"]) == (422, "email_exists")


async def test_delete(auth_backend: AuthBackend):
    """For good, unless a table of the project still refers to the user."""
    session = await auth_backend.sign_up()
    user_id = session["user"]["id"]
    sql = await auth_backend.sql()
    await sql.script(
        "create table public.notes (owner uuid references auth.users (id));"
        f"insert into public.notes values ('{user_id}')"
    )
    refused = await auth_backend.admin(f"DELETE /admin/users/{user_id}")
    assert refused.status_code == 500
    assert refused.json()["message"] == "Database error deleting user"
    assert "notes" in refused.headers["x-toft-cause"]
    await sql.script("delete from public.notes")
    gone = await auth_backend.admin(f"DELETE /admin/users/{user_id}")
    assert (gone.status_code, gone.json()) == (200, {})
    assert (await auth_backend.call("GET /user", token=session["access_token"])).json()[
        "code"
    ] == "user_not_found"
    assert await sql.query("select from auth.sessions") == []


async def test_soft_delete(auth_backend: AuthBackend):
    """The row stays without anything to recognise; the address is free again."""
    session = await auth_backend.sign_up()
    user_id = session["user"]["id"]
    answer = await auth_backend.admin(f"DELETE /admin/users/{user_id}", {"should_soft_delete": True})
    assert answer.status_code == 200
    user = (await auth_backend.admin(f"GET /admin/users/{user_id}")).json()
    assert "deleted_at" in user
    assert "@" not in str(user)
    assert user["user_metadata"] == {}
    assert (await auth_backend.sign_up())["user"]["id"] != user_id


async def test_audit_trail(auth_backend: AuthBackend):
    """Who did what, newest first, and searchable."""
    session = await auth_backend.sign_up()
    await auth_backend.call("POST /logout", token=session["access_token"])
    entries = (await auth_backend.admin("GET /admin/audit")).json()
    assert {"login", "logout", "user_signedup"} <= {entry["payload"]["action"] for entry in entries}
    found = await auth_backend.admin("GET /admin/audit?query=action:logout")
    [entry] = found.json()
    assert entry["payload"]["actor_username"] == "ada@example.com"
    assert entry["ip_address"] == "127.0.0.1"
    assert found.headers["x-total-count"] == "1"
