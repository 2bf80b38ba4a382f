"""The root of the Data API: the description of everything that the caller may use."""

from __future__ import annotations

from toft.http.message import Request, Response
from toft.rest.execute import Executor, Work
from toft.rest.options import RestOptions
from toft.rest.parse.skim import Asked
from toft.rest.schema.model import SchemaCache


async def answer_root(
    executor: Executor, work: Work, asked: Asked, schema: SchemaCache, options: RestOptions, request: Request
) -> Response:
    raise NotImplementedError
