"""Endless requests by chance over `fix_rest.SCHEMA` and `HOSTILE`: most right, some nearly, some noise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from urllib.parse import quote

#: tables and columns whose names break what does not quote them
HOSTILE = """
create table public."sel""ect" ("a.b" int primary key, "1st, (x)" text, "or\\der" text, "ün ï->>" jsonb);
create table public."from" ("where" int primary key, "a.b" int references public."sel""ect",
  "%s" text);
insert into public."sel""ect" values (1, 'x', null, '{"k": [1]}'), (2, '', 'y', null);
insert into public."from" values (1, 1, 'z');
grant all on public."sel""ect", public."from" to service_role;
""" % ("x" * 63)

_COLUMNS = {
    "clients": ["id", "name"],
    "projects": ["id", "name", "client_id", "data", "data->a", "data->>kind", "data->tags->>0"],
    "people": ["id", "name", "boss_id"],
    "members": ["project_id", "person_id"],
    "notes": ["id", "body", "stars", "owner"],
    "project_names": ["id", "name", "client_id"],
    'sel"ect': ['"a.b"', '"1st, (x)"', '"or\\\\der"', '"ün ï->>"', '"ün ï->>"->k', '"ün ï->>"->k->>0'],
    "from": ["where", '"where"', '"a.b"', "x" * 63],
}
_EMBEDS = {
    "clients": ["projects", "project_names", "...projects"],
    "projects": ["clients", "people", "members", "...clients", "c:clients!inner", "people!inner"],
    "people": ["people", "boss_id", "projects", "members"],
    "members": ["projects", "people", "...people"],
    "notes": [],
    "project_names": ["clients", "people"],
    'sel"ect': ["from", '"from"!inner', "...from"],
    "from": ['"sel\\"ect"', '"odd ..":"sel\\"ect"!inner'],
}
_TARGETS = {"boss_id": "people", "c": "clients", '"from"': "from", '"sel\\"ect"': 'sel"ect'}
# fmt: off
_VALUES = ["1", "2", "x", "", "null", "é", "a b", "'",
           '"', "\\", "%", "{1,2}", "{}", "1e400", "\x00", "$1", "--",
           "*"]
_OPERATORS = ["eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "match", "imatch", "isdistinct", "cs",
              "cd", "ov", "fts", "plfts(english)", "wfts", "eq(any)", "like(all)", "sl", "adj"]
_BODIES = [b'{"id": 7, "name": "n"}', b'[{"id": 8, "name": "a"}, {"id": 9, "name": "b"}]', b"{}", b"[]",
           b'{"name": null}', b'{"id": 1e30}', b'{"name": {"deep": [1, 2]}}', b'{"nope": 1}', b"", b"[1]",
           b'"x"', b'{"id": 1, "id": 2}', b'{"name": "\xff"}']
_TYPES = ["nope", "int", "double precision", "select", "a b", "timestamp with time zone", "Text", "json"]
_METHODS = {"GET": 60, "HEAD": 4, "POST": 14, "PATCH": 10, "DELETE": 6, "PUT": 4, "OPTIONS": 2}
# fmt: on
_PREFERENCES = [
    "",
    "return=representation",
    "return=headers-only",
    "count=exact",
    "count=planned",
    "count=estimated",
    "resolution=merge-duplicates",
    "resolution=ignore-duplicates,return=representation",
    "missing=default",
    "handling=strict,max-affected=1",
    "handling=strict,odd",
]  # fmt: skip
_ACCEPTS = ["", "*/*", "text/csv", "application/vnd.pgrst.object+json", "application/vnd.pgrst.plan", "x/y"]
_HEADERS = [("Range", "0-1"), ("Range", "5-2"), ("Accept-Profile", "public"), ("Content-Type", "text/csv")]

# fmt: off
_CRUMBS = [
    *"().,:!*&=%+;?#/-", "%00", "%FF", "%", "%2", "%C3%28", "select=", "id=", "eq.", "in.(", "or=(", "and(",
    "not.", "->", "->>", "::", "...", '"', "limit=", "9" * 30, "1", "x", "clients(", "\xe9",
    "items=0-",
]
# fmt: on

type WildRequest = tuple[str, str, bytes, dict[str, str]]


def wild_requests(seed: int) -> Iterator[WildRequest]:
    """Method, target, body and headers, for ever and always the same for a seed."""
    chance = random.Random(seed)
    while True:
        yield _Maker(chance).make()


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def make(self) -> WildRequest:
        chance = self._chance
        method = chance.choices(
            ["GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"], [60, 4, 14, 10, 6, 4, 2]
        )[0]
        headers = {
            "Prefer": self._one(_PREFERENCES),
            "Accept": self._one(_ACCEPTS) if self._rarely() else "*/*",
        }
        if self._rarely():
            headers |= dict([self._one(_HEADERS)])
        kind = chance.random()
        if kind < 0.1:
            return self._call(headers)
        if kind < 0.13:
            return self._noise(method)
        table = self._one(list(_COLUMNS))
        pairs = [*self._filters(table), *self._shape(table, method)]
        chance.shuffle(pairs)
        query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)
        if chance.random() < 0.04:
            query = self._damaged(query)
        body = self._one(_BODIES) if method in {"POST", "PATCH", "PUT"} else b""
        return method, f"/{_quoted(table)}?{query}", body, headers

    def _call(self, headers: dict[str, str]) -> WildRequest:
        function = self._one(["add", "projects_of", "touch", "timeout", "missing"])
        arguments = {"add": "a=1&b=2", "projects_of": "client=1"}.get(function, "")
        if self._one([True, False]):
            extra = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in self._filters("projects"))
            return "GET", f"/rpc/{function}?{arguments}&{extra}", b"", headers
        body = self._one([b'{"a": 1}', b'{"client": 1}', b"{}", b"", b'{"a": "x", "b": []}'])
        return "POST", f"/rpc/{function}", body, headers

    def _noise(self, method: str) -> WildRequest:
        """What no client sends: any bytes as path, query, body and headers."""
        chance = self._chance
        path = self._one(["", "rpc/add", "clients", "projects", chance.randbytes(4).decode("latin-1")])
        query = "".join(self._one(_CRUMBS) for _ in range(chance.randrange(12)))
        deep = chance.randrange(1, 400)
        body = self._one(
            [chance.randbytes(chance.randrange(40)), b"[" * deep + b"]" * deep, b'{"id":' * deep]
        )
        headers = {"Prefer": self._one(_CRUMBS), "Accept": self._one(_CRUMBS), "Range": self._one(_CRUMBS)}
        return method, f"/{_quoted(path)}?{query}", body, headers

    def _filters(self, table: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for _ in range(self._chance.randrange(3)):
            column = self._column(table)
            if self._rarely():
                found.append((self._one(["or", "and", "not.or"]), self._logic(table, 2)))
            else:
                found.append((column, self._operation()))
        return found

    def _logic(self, table: str, depth: int) -> str:
        leaves: list[str] = []
        for _ in range(self._chance.randrange(1, 4)):
            if depth and self._rarely():
                leaves.append(self._one(["and", "or", "not.and"]) + self._logic(table, depth - 1))
            else:
                leaves.append(f"{self._column(table)}.{self._operation()}")
        return f"({','.join(leaves)})"

    def _operation(self) -> str:
        negation = "not." if self._rarely() else ""
        kind = self._chance.random()
        if kind < 0.15:
            return f"{negation}in.({','.join(self._value() for _ in range(self._chance.randrange(4)))})"
        if kind < 0.3:
            return f"{negation}is.{self._one(['null', 'not_null', 'true', 'unknown'])}"
        operator = self._one(_OPERATORS) if self._rarely() else self._one(["eq", "gt", "lte", "neq"])
        return f"{negation}{operator}.{self._value()}"

    def _value(self) -> str:
        return self._one(_VALUES) if self._rarely() else str(self._chance.randrange(5))

    def _shape(self, table: str, method: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        if self._one([True, False]):
            found.append(("select", self._select(table, 2)))
        if self._rarely():
            direction = self._one(["", ".desc", ".asc.nullsfirst"])
            found.append(("order", f"{self._column(table)}{direction}"))
        if self._rarely() and method != "PUT":
            found.append((self._one(["limit", "offset"]), self._one(["0", "1", "3", "99", "-1", "x"])))
        if self._rarely():
            found.append(
                (self._one(["columns", "on_conflict"]), self._one(["id", "name", '"id","name"', "x"]))
            )
        return found

    def _select(self, table: str, depth: int) -> str:
        items: list[str] = []
        for _ in range(self._chance.randrange(1, 4)):
            item = self._column(table)
            if depth and _EMBEDS[table] and self._rarely():
                embed = self._one(_EMBEDS[table])
                target = embed.removeprefix("...").split(":")[-1].split("!")[0]
                item = f"{embed}({self._select(_TARGETS.get(target, target), depth - 1)})"
            elif self._rarely():
                casts = [f"x:{item}", f"{item}::text", f"{item}::{self._one(_TYPES)}"]
                item = self._one(["*", "count()", f"{item}.count()", *casts])
            items.append(item)
        return ",".join(items)

    def _column(self, table: str) -> str:
        if self._chance.random() < 0.03:
            return self._one(["nope", '"odd ""', "a.b"])
        return self._one(_COLUMNS[table])

    def _damaged(self, text: str) -> str:
        if not text:
            return "&"
        at = self._chance.randrange(len(text))
        return text[:at] + self._one(list("(),.:&=%+\"'*-> \xff")) + text[at + self._chance.randrange(3) :]

    def _rarely(self) -> bool:
        return self._chance.random() < 0.25

    def _one[T](self, items: list[T]) -> T:
        return self._chance.choice(items)


def _quoted(text: str) -> str:
    return quote(text, safe='().,*:"{}-_>!')
