"""Requests that nobody thought of, made of pieces that mean something often enough."""

from __future__ import annotations

import string as letters

from hypothesis import strategies as st

type Query = list[tuple[str, str]]
type Wild = tuple[str, str, Query, bytes, str, str | None]

# fmt: off
_NAMES = ["id", "name", "client_id", "data", "clients", "projects", "people", "details", "count()", '"a\\"b"',
          "*", "lead", "mates", "owner", "tags"]
_OPERATORS = ["eq", "neq", "gt", "like", "ilike(any)", "in", "is", "fts", "fts(english)", "cs", "isdistinct",
              "match(all)", "sl", "adj"]
_VALUES = ["1", "(1,2)", '(a,"b,c")', "null", "{a,b}", '"x"', "*", "", "a b", "x)", "(", "é", "'", "$1", "--"]
_KEYS = ["select", "order", "limit", "offset", "or", "not.and", "columns", "on_conflict", "projects.limit",
         "clients.order", "projects.or", "clients.name", "people.select", "id", "name", "client_id", "data",
         "clients", "projects", "a", "b", "client"]
_MARKS = ["(", ")", ",", ".", ":", "::", "->", "->>", "!", "...", "*", "not.", "asc", "desc", "nullsfirst",
          "and(", "or(", "sum()", "!inner"]
_COLUMNS = ["id", "*", "name", "x:name", "id::text", "data->a", "data->>0", "count()", "id.max()"]
_EMBEDS = ["clients", "projects", "people", "...clients", "y:people", "lead", "projects!inner"]
_ORDERS = ["id", "name.desc", "data->a.nullslast", "clients(name)", "zz"]
_METHODS = ["GET", "GET", "GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"]
_PATHS = ["/clients", "/projects", "/people", "/details", "/rpc/add", "/rpc/projects_of", "/rpc/raw", "/"]
_BODIES = [b"", b"{}", b"[]", b'{"id": 1}', b'[{"id": 1, "name": "x"}]', b'{"a": 1}', b"x", b"5"]
_PREFERENCES = ["return=representation", "count=exact", "count=planned", "resolution=merge-duplicates",
                "missing=default", "x"]
_ACCEPTS = [None, "text/csv", "application/vnd.pgrst.object+json", "image/png", "*/*"]
# fmt: on

words = st.sampled_from([*_NAMES, *_OPERATORS, *_VALUES, *_MARKS])
operations = st.tuples(
    st.sampled_from(["", "not."]), st.sampled_from(_OPERATORS), st.sampled_from(_VALUES)
).map(lambda parts: f"{parts[0]}{parts[1]}.{parts[2]}")
texts = st.one_of(st.text(max_size=12), st.lists(words, max_size=8).map("".join), operations)
leaves = st.tuples(st.sampled_from(["id", "name", "data->a", "data->>0"]), texts).map(".".join)
trees = st.recursive(
    leaves,
    lambda inner: st.tuples(
        st.sampled_from(["and", "or", "not.or"]), st.lists(inner, min_size=1, max_size=3)
    ).map(lambda pair: f"{pair[0]}({','.join(pair[1])})"),
    max_leaves=6,
)
#: selects that are most often right
selects = st.recursive(
    st.sampled_from(_COLUMNS),
    lambda inner: st.tuples(st.sampled_from(_EMBEDS), st.lists(inner, max_size=3)).map(
        lambda pair: f"{pair[0]}({','.join(pair[1])})"
    ),
    max_leaves=6,
)
pairs = st.one_of(
    st.tuples(st.sampled_from(_KEYS), texts),
    st.tuples(st.sampled_from(["id", "name", "data", "client_id"]), operations),
    st.tuples(st.sampled_from(["or", "and", "not.or"]), trees.map(lambda tree: tree[tree.find("(") :])),
    st.tuples(st.just("select"), st.lists(selects, max_size=3).map(",".join)),
    st.tuples(st.just("order"), st.sampled_from(_ORDERS)),
    st.tuples(
        st.sampled_from(["limit", "offset", "projects.limit"]), st.sampled_from(["0", "1", "7", "-1", "x"])
    ),
)
requests = st.tuples(
    st.sampled_from(_METHODS),
    st.sampled_from(_PATHS),
    st.lists(pairs, max_size=5),
    st.sampled_from(_BODIES),
    st.sampled_from(_PREFERENCES),
    st.sampled_from(_ACCEPTS),
)

_SAFE = set(f'{letters.ascii_letters}{letters.digits}().,*:"{{}}-_>!')


def encoded(query: Query) -> str:
    """As a client would write it."""
    return "&".join("=".join(_encode(text) for text in pair) for pair in query)


def _encode(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if chr(byte) in _SAFE else f"%{byte:02X}" for byte in raw)
