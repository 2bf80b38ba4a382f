"""Users of a backend, by its Auth's own administration: made, listed, signed in, deleted."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from toft.client.services import Api
from toft.errors.service import ServiceRefused, UserNotFound

_SERVICE = "Auth"
_PER_PAGE = 1000


class Users:
    """The users of one backend. `api` carries its secret key. Refusals are `ServiceRefused`."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def create(
        self,
        email: str,
        password: str | None = None,
        *,
        data: dict[str, Any] | None = None,
        app_data: dict[str, Any] | None = None,
        is_confirmed: bool = True,
        password_hash: str | None = None,
    ) -> dict[str, Any]:
        """A new user.

        data, app_data: `user_metadata` and `app_metadata`. password_hash: by bcrypt or argon2.
        """
        message: dict[str, Any] = {"email": email, "email_confirm": is_confirmed}
        message |= {"password": password} if password is not None else {}
        message |= {"password_hash": password_hash} if password_hash is not None else {}
        message |= {"user_metadata": data} if data else {}
        message |= {"app_metadata": app_data} if app_data else {}
        return self._api.call(_SERVICE, "POST", "/auth/v1/admin/users", message)

    def list(self) -> list[dict[str, Any]]:
        """All users, newest first."""
        users: list[dict[str, Any]] = []
        page = 1
        while True:
            path = f"/auth/v1/admin/users?page={page}&per_page={_PER_PAGE}"
            more: list[dict[str, Any]] = self._api.call(_SERVICE, "GET", path)["users"]
            users += more
            if len(more) < _PER_PAGE:
                return users
            page += 1

    def find(self, name: str) -> dict[str, Any]:
        """A user by e-mail, phone number or id. Raises `UserNotFound`."""
        if len(name) == 36 and name.count("-") == 4:
            answer = self._api.ask("GET", f"/auth/v1/admin/users/{quote(name)}")
            if answer.status == 200:
                return answer.body
            raise UserNotFound(user=name)
        wanted = name.lower().removeprefix("+")
        for user in self.list():
            if wanted in (user["email"], user["phone"]):
                return user
        raise UserNotFound(user=name)

    def sign_in(self, name: str) -> dict[str, Any]:
        """A session of this user, who is made first when the e-mail is not known.

        It begins as with a link by mail, so no password is needed, and none is changed. A link or code that
        was sent to this user before is void afterwards.
        """
        email = name if "@" in name else self.find(name)["email"]
        if not email:
            raise ServiceRefused(service=_SERVICE, cause="this user has no e-mail to sign in by")
        if "@" in name:
            made = self._api.ask("POST", "/auth/v1/admin/users", {"email": email, "email_confirm": True})
            if made.status >= 300 and made.code != "email_exists":
                raise ServiceRefused(service=_SERVICE, cause=made.words)
        wish = {"type": "magiclink", "email": email}
        link = self._api.call(_SERVICE, "POST", "/auth/v1/admin/generate_link", wish)
        proof = {"type": link["verification_type"], "token_hash": link["hashed_token"]}
        return self._api.call(_SERVICE, "POST", "/auth/v1/verify", proof)

    def delete(self, name: str) -> dict[str, Any]:
        """Remove a user and all that hangs on it; the user as it was."""
        user = self.find(name)
        self._api.call(_SERVICE, "DELETE", f"/auth/v1/admin/users/{user['id']}")
        return user
