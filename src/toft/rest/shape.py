"""Pure: what makes two requests the same to the planner: everything but their values."""

from __future__ import annotations

from collections.abc import Iterable

from toft.rest.request import Act, Payload

type Shape = tuple[object, ...]


def shape_of(
    act: Act,
    schema: str,
    name: str,
    form: Iterable[str],
    payload: Payload | None,
    headers: tuple[str | None, ...],
    *,
    is_head: bool,
) -> Shape:
    """The key of a plan. headers: those that the plan depends on, as they were sent."""
    return (act, schema, name, is_head, headers, payload, *form)
