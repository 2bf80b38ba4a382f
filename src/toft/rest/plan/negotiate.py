"""Pure: which of the acceptable media types the answer has, and who makes its body."""

from __future__ import annotations

from toft.rest.errors import not_acceptable
from toft.rest.parse.headers import JSON, OPENAPI, parse_media
from toft.rest.plan.nodes import CustomMaker, Maker, ReadNode
from toft.rest.request import Media
from toft.rest.schema.model import Name, SchemaCache

_BUILT_IN = {"json": Maker("json"), "any": Maker("json"), "csv": Maker("csv"), "geojson": Maker("geojson")}
NO_BODY = Maker("none")


def negotiate(
    schema: SchemaCache,
    accepts: tuple[Media, ...],
    target: Name,
    *,
    selects_all: bool,
    allows_plans: bool,
) -> tuple[Maker, Media]:
    """The first acceptable type that there is. Raises PGRST107."""
    for media in accepts:
        found = _match(schema, media, target, selects_all, allows_plans)
        if found is not None:
            return found
    raise not_acceptable(media.text for media in accepts)


def _match(
    schema: SchemaCache, media: Media, target: Name, selects_all: bool, allows_plans: bool
) -> tuple[Maker, Media] | None:
    match media.kind:
        case "object":
            return Maker("single", media.nulls_stripped), media
        case "array-stripped":
            return Maker("json", nulls_stripped=True), media
        case "plan":
            plan_of = media.plan_of
            if not allows_plans or plan_of is None or plan_of.kind == "plan":
                return None
            found = _match(schema, plan_of, target, selects_all, allows_plans)
            return None if found is None else (found[0], media)
        case _:
            return _handler(schema, media, target, selects_all)


def _handler(
    schema: SchemaCache, media: Media, target: Name, selects_all: bool
) -> tuple[Maker, Media] | None:
    mime = media.text.lower() if media.kind == "other" else media.text
    keys: list[tuple[Name | None, str]] = [(target, "*/*"), (target, mime)] if selects_all else []
    for key in (*keys, (None, mime)):
        handler = schema.handlers.get(key)
        if handler is not None:
            maker = CustomMaker(function=handler.function, target=handler.target)
            return maker, parse_media(handler.sent_as)
    maker = _BUILT_IN.get(media.kind)
    return None if maker is None else (maker, JSON if media.kind == "any" else media)


def negotiate_root(accepts: tuple[Media, ...]) -> Media:
    """The root's description has one type. Raises PGRST107."""
    if any(media.kind in {"openapi", "json", "any"} for media in accepts):
        return OPENAPI
    raise not_acceptable(media.text for media in accepts)


def selects_everything(node: ReadNode) -> bool:
    """Whether rows are asked for as they are."""
    return len(node.selects) == 1 and node.selects[0].field.name == "*" and not node.embeds
