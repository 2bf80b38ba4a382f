"""One request of the Data API tried by several callers, side by side. Nothing that it does stays."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, cast
from urllib.parse import quote

from toft.client.services import Api
from toft.client.users import Users

_TRIAL: Final = "/explain/rest/v1"
_LINK: Final = re.compile(r"<https?://[^/]+(/[^>]*)>")
#: characters of a request's target that stay as they were typed
_TARGET: Final = "!#$%&'()*+,/:;=?@[]~-._{}\""

type Members = dict[str, Any]


class Trial:
    """What one caller got. rows: the body as rows; None where there is none or it is an error."""

    def __init__(self, caller: str, status: int, body: object, explanation: Members | None) -> None:
        self.caller = caller
        self.status = status
        self.body = body
        self.explanation = explanation

    @property
    def is_refused(self) -> bool:
        return self.status >= 300

    @property
    def rows(self) -> list[Any] | None:
        if self.is_refused or self.body is None or self.body == "":
            return None
        return cast("list[Any]", self.body) if isinstance(self.body, list) else [self.body]

    @property
    def outcome(self) -> str:
        """In one line: how many rows, or the refusal."""
        if self.is_refused:
            error = cast("Members", self.body) if isinstance(self.body, dict) else {"message": self.body}
            return f"{error.get('code', '')} {error.get('message') or ''}".strip()
        rows = self.rows
        if rows is None:
            return "done, no rows asked back"
        return "1 row" if len(rows) == 1 else f"{len(rows)} rows"

    @property
    def reason(self) -> str:
        """Why: of a refusal its hint, else what decided which rows there are."""
        if self.is_refused and isinstance(self.body, dict):
            return str(cast("Members", self.body).get("hint") or "")
        return str((self.explanation or {}).get("hint", ""))

    def to_json(self) -> Members:
        return {
            "caller": self.caller,
            "status": self.status,
            "rows": self.rows,
            "error": self.body if self.is_refused else None,
            "explanation": self.explanation,
        }


def try_out(
    lease: Members, users: Sequence[str], method: str, target: str, message: object, headers: dict[str, str]
) -> list[Trial]:
    """The request as anon, as each user and as service_role. Raises `UserNotFound`, `ServiceUnreachable`.

    target: path and query as they follow `/rest/v1`. A user is signed in for it.
    """
    url = str(lease["url"])
    public, secret = str(lease["publishable_key"]), str(lease["secret_key"])
    accounts = Users(Api(url, secret))
    known = [(name, accounts.find(name)) for name in users]
    callers: list[tuple[str, str, dict[str, str]]] = [("anon", public, {})]
    for name, user in known:
        token = accounts.sign_in(user["email"] or user["id"])["access_token"]
        callers.append((name, public, {"authorization": f"Bearer {token}"}))
    callers.append(("service_role", secret, {}))
    path = _TRIAL + "/" + quote(target, safe=_TARGET).lstrip("/")
    trials: list[Trial] = []
    for name, key, proof in callers:
        api = Api(url, key)
        answer = api.ask(method, path, message, more={**headers, **proof})
        link = _LINK.match(answer.headers.get("toft-explain", ""))
        explanation = api.ask("GET", link[1]).body if link is not None else None
        told = cast("Members", explanation) if isinstance(explanation, dict) else None
        trials.append(Trial(name, answer.status, answer.body, told))
    return trials


def matrix(trials: Sequence[Trial]) -> tuple[list[str], list[list[bool]]]:
    """The rows that anybody sees, as JSON, in the order of who sees most; and for each row, who sees it."""
    seen = [[json.dumps(row, ensure_ascii=False) for row in trial.rows or ()] for trial in trials]
    rows = list(dict.fromkeys(row for own in sorted(seen, key=len, reverse=True) for row in own))
    return rows, [[row in own for own in seen] for row in rows]
