"""The table of Storage's routes, special ones first. `{bucket}` is one segment, `{key}` all that follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import unquote

import msgspec

from toft.http.message import Response
from toft.storage import buckets, health, links, listing, objects, uploads
from toft.storage.call import Call
from toft.storage.images import render

type Endpoint = Callable[[Call], Awaitable[Response]]


class Route(msgspec.Struct, frozen=True):
    """One method of one path; `operation` is what `storage.operation()` says meanwhile."""

    method: str
    path: tuple[str, ...]
    endpoint: Endpoint
    operation: str


class Match(msgspec.Struct, frozen=True):
    """A route, and the variable parts of the path, decoded."""

    route: Route
    variables: dict[str, str]


def _route(line: str, endpoint: Endpoint, operation: str) -> Route:
    method, path = line.split(" ")
    return Route(method, tuple(path.strip("/").split("/")), endpoint, operation)


def _read_routes(path: str, endpoint: Endpoint, get: str, head: str) -> tuple[Route, Route]:
    return _route(f"GET {path}", endpoint, get), _route(f"HEAD {path}", endpoint, head)


ROUTES: tuple[Route, ...] = (
    _route("GET /status", health.status, "storage.status"),
    _route("GET /version", health.version, "storage.version"),
    _route("GET /health", health.health, "storage.health"),
    _route("DELETE /cdn", health.purge_cache, "storage.object.purge_cache"),
    _route("DELETE /cdn/{bucket}", health.purge_cache, "storage.object.purge_cache"),
    _route("DELETE /cdn/{bucket}/{key}", health.purge_cache, "storage.object.purge_cache"),
    _route("POST /bucket", buckets.create_bucket, "storage.bucket.create"),
    _route("GET /bucket", buckets.list_buckets, "storage.bucket.list"),
    _route("POST /bucket/{bucket}/empty", buckets.empty_bucket, "storage.bucket.empty"),
    _route("GET /bucket/{bucket}", buckets.read_bucket, "storage.bucket.get"),
    _route("PUT /bucket/{bucket}", buckets.update_bucket, "storage.bucket.update"),
    _route("DELETE /bucket/{bucket}", buckets.delete_bucket, "storage.bucket.delete"),
    _route("POST /object/list/{bucket}", listing.list_level, "storage.object.list"),
    _route("POST /object/list-v2/{bucket}", listing.list_pages, "storage.object.list_v2"),
    _route("POST /object/move", objects.move, "storage.object.move"),
    _route("POST /object/copy", objects.copy, "storage.object.copy"),
    _route("POST /object/upload/sign/{bucket}/{key}", links.sign_upload, "storage.object.sign_upload_url"),
    _route("PUT /object/upload/sign/{bucket}/{key}", links.upload_signed, "storage.object.upload_signed"),
    _route("POST /object/sign/{bucket}/{key}", links.sign_download, "storage.object.sign"),
    _route("POST /object/sign/{bucket}", links.sign_downloads, "storage.object.sign_many"),
    _route("GET /object/sign/{bucket}/{key}", links.read_signed, "storage.object.get_signed"),
    *_read_routes(
        "/render/image/authenticated/{bucket}/{key}", render.render_authenticated,
        "storage.render.image_authenticated", "storage.render.image_authenticated",
    ),
    *_read_routes(
        "/render/image/public/{bucket}/{key}", render.render_public,
        "storage.render.image_public", "storage.render.image_public",
    ),
    *_read_routes(
        "/render/image/sign/{bucket}/{key}", render.render_signed,
        "storage.render.image_sign", "storage.render.image_sign",
    ),
    *_read_routes(
        "/object/info/public/{bucket}/{key}", objects.info_public,
        "storage.object.info_public", "storage.object.info_public",
    ),
    *_read_routes(
        "/object/info/authenticated/{bucket}/{key}", objects.info_authenticated,
        "object.get_authenticated_info", "object.head_authenticated_info",
    ),
    *_read_routes(
        "/object/info/{bucket}/{key}", objects.info_tolerant,
        "object.get_authenticated_info", "object.head_authenticated_info",
    ),
    *_read_routes(
        "/object/public/{bucket}/{key}", objects.read_public,
        "storage.object.get_public", "storage.object.info_public",
    ),
    *_read_routes(
        "/object/authenticated/{bucket}/{key}", objects.read_authenticated,
        "storage.object.get_authenticated", "object.head_authenticated_info",
    ),
    *_read_routes(
        "/object/{bucket}/{key}", objects.read_tolerant,
        "storage.object.get_authenticated", "object.head_authenticated_info",
    ),
    _route("POST /object/{bucket}/{key}", uploads.upload, "storage.object.upload"),
    _route("PUT /object/{bucket}/{key}", uploads.replace, "storage.object.upload_update"),
    _route("DELETE /object/{bucket}/{key}", objects.delete_one, "storage.object.delete"),
    _route("DELETE /object/{bucket}", objects.delete_many, "storage.object.delete_many"),
)  # fmt: skip


def find_route(method: str, raw_path: str) -> Match | None:
    """The route for a path that is still percent-encoded: `%2F` is part of a key, never a border."""
    segments = tuple(raw_path.removeprefix("/").split("/"))
    for route in ROUTES:
        if route.method == method:
            variables = _match(route.path, segments)
            if variables is not None:
                return Match(route, variables)
    return None


def _match(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    takes_rest = pattern[-1] == "{key}"
    if len(segments) < len(pattern) or (len(segments) > len(pattern) and not takes_rest):
        if not (len(segments) == len(pattern) + 1 and segments[-1] == ""):
            return None
        segments = segments[:-1]  # a slash at the end changes nothing
    variables: dict[str, str] = {}
    for index, part in enumerate(pattern):
        if part == "{key}":
            variables["key"] = unquote("/".join(segments[index:]))
            if not variables["key"]:
                return None
        elif part == "{bucket}":
            variables["bucket"] = unquote(segments[index])
            if not variables["bucket"]:
                return None
        elif part != segments[index]:
            return None
    return variables
