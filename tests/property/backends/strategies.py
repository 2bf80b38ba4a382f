"""Backends and sightings of every kind."""

from __future__ import annotations

from toft.backends.backend import Backend, Wish
from toft.ids import BackendId, TemplateKey
from toft.protocol.worker import ServiceSettings


def make_backend(**fields: object) -> Backend:
    """A backend that has just been wished for, but for what is said otherwise."""
    facts: dict[str, object] = {
        "id": BackendId("b_1"),
        "template_key": TemplateKey("base-1"),
        "engine_id": "18-wheel-1",
        "wish": Wish.STARTED,
        "http_port": 20000,
        "db_port": 20001,
        "uid": None,
        "settings": ServiceSettings(),
        "created_at": "2026-01-01T00:00:00.000+00:00",
        "created_mono": 0.0,
    }
    return Backend(**{**facts, **fields})  # pyright: ignore[reportArgumentType] -- facts of a test
