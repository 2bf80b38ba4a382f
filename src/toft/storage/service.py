"""The spine of Storage: a request goes to its route, and whatever is refused on the way is worded here."""

from __future__ import annotations

from toft.http.message import Request, Response
from toft.pg.sqlstate import ConnectionLost, Unreachable
from toft.storage.call import Call
from toft.storage.context import StorageContext
from toft.storage.errors import StorageError, access_denied, database_is_away, invalid_key, no_route, render
from toft.storage.routes import find_route
from toft.storage.s3 import door as s3
from toft.storage.s3.door import S3Door
from toft.storage.sweep import Sweeper
from toft.storage.tus import door as tus
from toft.storage.tus.door import TusDoor
from toft.tokens.caller import Caller, Refusal


class StorageService:
    """One backend's Storage."""

    def __init__(self, context: StorageContext) -> None:
        self._context = context
        self._tus = TusDoor(context)
        self._s3 = S3Door(context)
        self._sweeper = Sweeper(context)

    async def handle(self, request: Request, caller: Caller | Refusal, path: str) -> Response:
        """Answer a request. `path` is what follows `/storage/v1`, percent-encoded as it came."""
        try:
            if isinstance(caller, Refusal):
                raise access_denied("Invalid Compact JWS")
            self._sweeper.maybe_begin()
            if path.startswith(tus.PREFIX):
                return await self._tus.handle(request, caller, path)
            if self._context.settings.speaks_s3 and (path == s3.PREFIX or path.startswith(f"{s3.PREFIX}/")):
                return await self._s3.handle(request, caller, path)
            match = find_route(request.method, path)
            if match is None:
                raise no_route(request.method, path)
            if any("\0" in variable for variable in match.variables.values()):
                raise invalid_key(match.variables.get("key", ""))
            route_path = path.partition("?")[0]
            call = Call(self._context, request, caller, route_path, match.variables, match.route.operation)
            return await match.route.endpoint(call)
        except (ConnectionLost, Unreachable) as error:
            self._context.report(f"storage {path}: {error}")
            return _answer(request, database_is_away())
        except StorageError as error:
            return _answer(request, error)


def _answer(request: Request, error: StorageError) -> Response:
    response = render(error)
    if request.method == "HEAD":
        return Response(response.status, [*response.headers, (b"content-length", b"0")])
    return response
