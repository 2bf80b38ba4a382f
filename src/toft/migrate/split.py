"""Pure: a file is cut into statements where the Supabase CLI cuts it.

The CLI has no SQL parser. It cuts at each `;` outside quotes, dollar quotes, comments, parentheses and
`BEGIN ATOMIC ... END`, and it does so with peculiarities that a file can depend on. We keep them: what runs
here must run there, and the history stores the pieces.

* a backslash in a string means nothing (so `E'it\\'s'` ends too early); outside it hides the next character;
* the first `)` closes all open parentheses at once;
* the letters `end` close a BEGIN ATOMIC body even inside a word, and all bodies around it;
* in `/*/` the slash already closes the comment, and in `$$$` the third dollar closes the string.
"""

from __future__ import annotations

import re

import msgspec

#: what JavaScript's trim() takes away
_SPACE = "".join(
    ("\t\n\v\f\r \u00a0\u1680", *map(chr, range(0x2000, 0x200B)), "\u2028\u2029\u202f\u205f\u3000\ufeff")
)

#: what neither ends a statement nor opens anything but strings, in long runs (large files are mostly that);
#: a pair of parentheses is among it, and as above its first `)` closes it
_PLAIN = r"[aA](?![tT][oO][mM]) | '[^']*+' | -(?!-) | /(?!\*)"
_RUN = re.compile(
    rf"""(?: [^'"$\\;()/\-aA]++ | {_PLAIN} | \( (?: [^'"$\\)/\-aA]++ | {_PLAIN} )*+ \) )*+""", re.VERBOSE
)
_OUTSIDE = re.compile(r"['\"$\\;(]|--|/\*|atomic", re.IGNORECASE)
_WITHIN = {
    ")": re.compile(r"['\"$\\;()]|--|/\*|atomic", re.IGNORECASE),
    "end": re.compile(r"['\"$\\;(]|--|/\*|atomic|end", re.IGNORECASE),
}
_DOLLAR = re.compile(r"\$(\w*)(\$?)")
_BEGIN_ATOMIC = re.compile(r"(?<![\w$])begin\s+atomic\Z", re.IGNORECASE)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


class Piece(msgspec.Struct, frozen=True):
    """One statement as it is sent. start: where its text begins, in characters of the file's text.

    rows: what follows a COPY FROM stdin.
    """

    text: str
    start: int
    rows: str | None = None


def split(text: str) -> list[Piece]:
    """The statements of a file in order, without their semicolons; comments stay with what follows them."""
    pieces: list[Piece] = []
    start = 0
    while start < len(text):
        end = _end_of_statement(text, start)
        raw = text[start:end].rstrip(";").rstrip(_SPACE)
        body = raw.lstrip(_SPACE)
        if body:
            pieces.append(Piece(body, start + len(raw) - len(body)))
        start = end
    return pieces


def _end_of_statement(text: str, start: int) -> int:
    """The place after the `;` that ends the statement begun at `start`, or the end of the text."""
    at = start
    open_until: list[str] = []  # what the scanner waits for, innermost last: ")" or "end"
    while 0 <= at < len(text):
        if not open_until and (run := _RUN.match(text, at)):
            at = run.end()
        found = (_WITHIN[open_until[-1]] if open_until else _OUTSIDE).search(text, at)
        if found is None:
            break
        sign = found[0].lower()
        at = found.end()
        if sign == ";" and not open_until:
            return at
        elif sign in ("(", "atomic"):
            at = _open(text, start, found, open_until)
        elif sign in (")", "end"):
            _close(open_until)
        elif sign == "\\":
            if text.startswith(")", at) and open_until and open_until[-1] == ")":
                _close(open_until)
            at += text[at : at + 1] not in ("e", "E")  # the e of an `end` counts
        elif sign != ";":
            at = _skip(text, found.start(), sign)
    return len(text)


def _open(text: str, start: int, found: re.Match[str], open_until: list[str]) -> int:
    """Note what a parenthesis or BEGIN ATOMIC waits for. The place to go on from."""
    if found[0] == "(":
        open_until.append(")")
    elif _BEGIN_ATOMIC.search(text, max(start, found.end() - 400), found.end()):
        open_until.append("end")
    else:
        return found.start() + 1
    return found.end()


def _close(open_until: list[str]) -> None:
    """What closes the innermost also closes every one around it that waits for the same."""
    closing = open_until[-1]
    while open_until and open_until[-1] == closing:
        open_until.pop()


def _skip(text: str, at: int, sign: str) -> int:
    """The place after the quote or comment that begins at `at`; -1 when it never ends."""
    match sign:
        case "--":
            return text.find("\n", at) + 1 or -1
        case "/*":
            return _end_of_comment(text, at)
        case "$":
            return _end_of_dollar(text, at)
        case quote:
            return _end_of_quote(text, at, quote)


def _end_of_quote(text: str, at: int, quote: str) -> int:
    while True:
        at = text.find(quote, at + 1)
        if at < 0:
            return -1
        if text[at + 1 : at + 2] != quote:
            return at + 1
        at += 1


def _end_of_dollar(text: str, at: int) -> int:
    tag = _DOLLAR.match(text, at)
    if tag is None or not tag[2]:
        return tag.end() if tag else at + 1
    closing = text.find(tag[0], at + 1)
    return closing + len(tag[0]) if closing >= 0 else -1


def _end_of_comment(text: str, at: int) -> int:
    depth = 1
    while True:
        edge = _COMMENT_EDGE.search(text, at + 1)
        if edge is None:
            return -1
        depth += 1 if edge[0] == "/*" else -1
        at = edge.start()
        if depth == 0:
            return edge.end()
