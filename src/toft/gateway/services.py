"""The three services of one backend, put together at their first use: the place where they meet their world.

Before its first request a backend costs its ports and its record; keys are parsed, pools and caches made only
when somebody asks. Pools hold no connection while idle, and reach a sleeping postmaster by waking it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakValueDictionary

from toft.auth.context import DATABASE_ROLE as AUTH_ROLE
from toft.auth.context import AuthContext
from toft.auth.limits import Limits
from toft.auth.passwords import PasswordWork
from toft.auth.service import AuthService
from toft.auth.social.issuer import Issuers
from toft.gateway.journal import Journal
from toft.gateway.route import EXPLAIN_PREFIX, Route, Service
from toft.gateway.upstream import Upstream
from toft.http.message import Request, Response
from toft.http.outgoing import HttpOutside
from toft.mailbox.box import Box
from toft.mailbox.relay import Relay
from toft.mailbox.routes import MailboxService
from toft.pg.connection import connect
from toft.pg.pool import Pool
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.typed import connect_typed
from toft.protocol.worker import BackendSpec
from toft.rest.context import RestContext
from toft.rest.errors import RestError
from toft.rest.options import from_settings
from toft.rest.prepared import Prepared
from toft.rest.schema.store import SchemaStore
from toft.rest.service import RestService
from toft.storage.blobs.local import LocalBlobs
from toft.storage.context import DATABASE_ROLE as STORAGE_ROLE
from toft.storage.context import S3Keys, StorageContext
from toft.storage.images.studio import Studio
from toft.storage.service import StorageService
from toft.tokens.caller import Caller
from toft.tokens.identify import ProjectKeys
from toft.tokens.jwt import KeyRing
from toft.world import Clock, Entropy

if TYPE_CHECKING:
    from toft.pg.pool import Poolable

_REST_ROLE: Final = "authenticator"


class Surroundings:
    """What all backends of a worker share."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self.clock = clock
        self.entropy = entropy
        self.passwords = PasswordWork(entropy)
        self.studio = Studio()
        self.outside = HttpOutside()
        self.issuers = Issuers(self.outside, clock)
        self._schemas: WeakValueDictionary[str, SchemaStore[Prepared]] = WeakValueDictionary()

    def schemas_of(self, template_key: str) -> SchemaStore[Prepared]:
        """The schema caches of a template's backends; they go with the last of them."""
        store = self._schemas.get(template_key)
        if store is None:
            store = self._schemas[template_key] = SchemaStore()
        return store

    async def close(self) -> None:
        """End the threads, close what is open to the outside."""
        self.passwords.close()
        self.studio.close()
        await self.outside.close()


class _Answers(Protocol):
    async def handle(self, request: Request, caller: Caller, path: str) -> Response: ...


class _Connections(Protocol):
    def drop_connections(self) -> None: ...

    def close(self) -> None: ...


class Services:
    """What stands behind the HTTP port of one backend."""

    def __init__(
        self, spec: BackendSpec, upstream: Upstream, surroundings: Surroundings, box: Box, journal: Journal
    ) -> None:
        self._spec = spec
        self._upstream = upstream
        self._surroundings = surroundings
        self._keys: ProjectKeys | None = None
        self._box = box
        self._journal = journal
        #: what Auth has sent, to be read
        self.mailbox = MailboxService(self._box, f"http://127.0.0.1:{spec.http_port}")
        self._made: dict[Service, _Answers] = {}
        self._pools: list[_Connections] = []
        self._is_closed = False

    @property
    def keys(self) -> ProjectKeys:
        """The keys of the project, ready to compare and verify."""
        if self._keys is None:
            secrets = self._spec.secrets
            self._keys = ProjectKeys(
                ring=KeyRing(secrets.jwt_secret, secrets.jwt_keys),
                anon_key=secrets.anon_key,
                service_role_key=secrets.service_role_key,
                publishable_key=secrets.publishable_key,
                secret_key=secrets.secret_key,
            )
        return self._keys

    def rekey(self, spec: BackendSpec) -> None:
        """Sign and verify with the spec's keys from now on; nothing in flight is disturbed."""
        self._spec = spec
        if self._keys is not None:
            self._keys.ring.exchange(spec.secrets.jwt_keys)

    async def handle(self, request: Request, caller: Caller, route: Route) -> Response:
        """Give a request to its service."""
        service = self._find(route.service)
        if route.is_trial and isinstance(service, RestService):
            return await service.handle(request, caller, route.path, is_trial=True)
        return await service.handle(request, caller, route.path)

    async def warm(self) -> None:
        """Let the Data API make ready for its first request, which will tell what is in the way."""
        rest = self._find("rest")
        if isinstance(rest, RestService):
            with suppress(RestError, PostgresError, ConnectionLost, Unreachable):
                await rest.warm()

    def explanation(self, name: str) -> bytes | None:
        """Why the Data API refused something, by the name that its answer gave; None when it is not known."""
        service = self._made.get("rest")
        return service.explanation(name) if isinstance(service, RestService) else None

    def drop_connections(self) -> None:
        """Close what is open towards the postmaster."""
        for pool in self._pools:
            pool.drop_connections()

    def close(self) -> None:
        """Close everything; requests in flight, and those that come late, fail."""
        self._is_closed = True
        for pool in self._pools:
            pool.close()

    def _find(self, service: Service) -> _Answers:
        made = self._made.get(service)
        if made is None:
            made = self._made[service] = self._make(service)
        return made

    def _make(self, service: Service) -> _Answers:
        spec = self._spec
        external_url = f"http://127.0.0.1:{spec.http_port}/{service}/v1"
        match service:
            case "rest":
                return RestService(
                    RestContext(
                        pool=self._pool(connect, _REST_ROLE),
                        clock=self._surroundings.clock,
                        options=from_settings(spec.settings.rest, max_body_bytes=spec.max_body_bytes),
                        schemas=self._surroundings.schemas_of(spec.template_key),
                        entropy=self._surroundings.entropy,
                        explanations_url=f"http://127.0.0.1:{spec.http_port}{EXPLAIN_PREFIX}/",
                    )
                )
            case "auth":
                return AuthService(
                    AuthContext(
                        pool=self._pool(connect_typed, AUTH_ROLE),
                        ring=self.keys.ring,
                        clock=self._surroundings.clock,
                        entropy=self._surroundings.entropy,
                        passwords=self._surroundings.passwords,
                        settings=spec.settings.auth,
                        external_url=external_url,
                        outbox=self._outbox(),
                        issuers=self._surroundings.issuers,
                        limits=Limits(spec.settings.auth.rate_limits, self._surroundings.clock),
                        report=self._journal.reporter("auth"),
                    )
                )
            case "storage":
                return StorageService(
                    StorageContext(
                        pool=self._pool(connect, STORAGE_ROLE),
                        ring=self.keys.ring,
                        clock=self._surroundings.clock,
                        entropy=self._surroundings.entropy,
                        settings=spec.settings.storage,
                        blobs=LocalBlobs(Path(spec.objects_path)),
                        external_url=external_url,
                        studio=self._surroundings.studio,
                        s3_keys=S3Keys(
                            access_key_id=spec.secrets.s3_access_key_id,
                            secret_access_key=spec.secrets.s3_secret_access_key,
                            anonymous_keys=(spec.secrets.anon_key, spec.secrets.publishable_key),
                            service_token=spec.secrets.service_role_key,
                        ),
                        report=self._journal.reporter("storage"),
                    )
                )

    def _outbox(self) -> Box | Relay:
        smtp = self._spec.settings.auth.smtp
        return self._box if smtp is None else Relay(self._box, smtp)

    def _pool[C: Poolable](self, dial: Callable[[str, str, str], Awaitable[C]], role: str) -> Pool[C]:
        password = self._spec.secrets.passwords[role]
        pool = Pool(
            lambda: self._upstream.reach(lambda path: dial(path, role, password)), self._spec.max_pool
        )
        if self._is_closed:
            pool.close()
        self._pools.append(pool)
        return pool
