"""Pure: filling in a project's mail templates: the part of Go's language that such templates use.

`{{ .Name }}`, `{{ .Data.key }}`, `{{ if … }}`, `{{ else if … }}`, `{{ else }}`, `{{ end }}`, `eq`, `ne`,
`not`, `and`, `or`, `printf`, literals in quotes, and comments. Anything else is a `TemplateFault`; the caller
falls back to the default text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import cast

_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|\(|\)|[^\s()]+')

type Values = Mapping[str, object]
type Node = str | _Print | _Choice


class TemplateFault(Exception):
    """The template cannot be understood."""


class _Print:
    __slots__ = ("expression",)

    def __init__(self, expression: str) -> None:
        self.expression = expression


class _Choice:
    __slots__ = ("branches",)

    def __init__(self, branches: list[tuple[str | None, list[Node]]]) -> None:
        self.branches = branches


def fill(template: str, values: Values, *, escapes: bool) -> str:
    """The text with everything filled in. `escapes`: values are written for HTML."""
    nodes, rest = _parse(_tokens(template), 0)
    if rest is not None:
        raise TemplateFault(f"{rest} without if")
    return _write(nodes, values, escapes)


def _tokens(template: str) -> list[tuple[bool, str]]:
    """(is an action, text) in order, with the blanks gone that `{{-` and `-}}` take away."""
    out: list[tuple[bool, str]] = []
    at = 0
    trims = False
    for found in _ACTION.finditer(template):
        text = template[at : found.start()]
        text = text.lstrip() if trims else text
        out.append((False, text.rstrip() if found[1] else text))
        out.append((True, found[2]))
        trims = bool(found[3])
        at = found.end()
    out.append((False, template[at:].lstrip() if trims else template[at:]))
    out.reverse()
    return out


def _parse(tokens: list[tuple[bool, str]], depth: int) -> tuple[list[Node], str | None]:
    """Nodes up to the `else` or `end` that closes this level, and that word."""
    if depth > 32:
        raise TemplateFault("too deep")
    nodes: list[Node] = []
    while tokens:
        is_action, text = tokens.pop()
        if not is_action:
            nodes.append(text)
        elif text.startswith("if "):
            nodes.append(_parse_choice(text[3:], tokens, depth))
        elif text == "end" or text == "else" or text.startswith("else if "):
            return nodes, text
        elif not text.startswith("/*"):
            nodes.append(_Print(text))
    if depth:
        raise TemplateFault("if without end")
    return nodes, None


def _parse_choice(condition: str, tokens: list[tuple[bool, str]], depth: int) -> _Choice:
    branches: list[tuple[str | None, list[Node]]] = []
    current: str | None = condition
    while True:
        nodes, closing = _parse(tokens, depth + 1)
        branches.append((current, nodes))
        if closing == "end" or closing is None:
            return _Choice(branches)
        current = closing[len("else if ") :] if closing.startswith("else if ") else None


def _write(nodes: Sequence[Node], values: Values, escapes: bool) -> str:
    out: list[str] = []
    for node in nodes:
        if isinstance(node, str):
            out.append(node)
        elif isinstance(node, _Print):
            text = _text(_evaluate(node.expression, values))
            out.append(html.escape(text, quote=True) if escapes else text)
        else:
            for condition, branch in node.branches:
                if condition is None or _evaluate(condition, values):
                    out.append(_write(branch, values, escapes))
                    break
    return "".join(out)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _evaluate(expression: str, values: Values) -> object:
    words = _WORD.findall(expression)
    value, at = _call(words, 0, values)
    if at != len(words):
        raise TemplateFault(f"cannot read {expression}")
    return value


def _call(words: list[str], at: int, values: Values) -> tuple[object, int]:
    """A value, or a function with all operands up to the end or the closing parenthesis."""
    if at >= len(words):
        raise TemplateFault("nothing to write")
    name = words[at]
    if name not in ("eq", "ne", "not", "and", "or", "printf"):
        return _operand(words, at, values)
    at += 1
    operands: list[object] = []
    while at < len(words) and words[at] != ")":
        operand, at = _operand(words, at, values)
        operands.append(operand)
    return _apply(name, operands), at


def _apply(name: str, operands: list[object]) -> object:
    if not operands:
        raise TemplateFault(f"{name} without operands")
    first, rest = operands[0], operands[1:]
    match name:
        case "eq":
            return any(first == other for other in rest)
        case "ne":
            return bool(rest) and first != rest[0]
        case "not":
            return not first
        case "and":
            return next((value for value in operands if not value), operands[-1])
        case "or":
            return next((value for value in operands if value), operands[-1])
        case _:
            return _print_formatted(_text(first), rest)


def _print_formatted(pattern: str, operands: list[object]) -> str:
    waiting = iter(operands)
    return re.sub(r"%[svdq]", lambda _: _text(next(waiting, "")), pattern)


def _operand(words: list[str], at: int, values: Values) -> tuple[object, int]:
    word = words[at]
    if word == "(":
        value, at = _call(words, at + 1, values)
        if at >= len(words) or words[at] != ")":
            raise TemplateFault("parenthesis without end")
        return value, at + 1
    if word[0] in '"`':
        return word[1:-1].replace('\\"', '"'), at + 1
    if word in ("true", "false"):
        return word == "true", at + 1
    if word.lstrip("-").isdecimal():
        return int(word), at + 1
    if not word.startswith("."):
        raise TemplateFault(f"no such function: {word}")
    value: object = values
    for name in word.split("."):
        if name:
            value = cast("Values", value).get(name) if isinstance(value, Mapping) else None
    return value, at + 1
