"""Fresh Supabase databases: a cluster of its own for each test, cloned from a template made once per session.

`supabase` runs a test on every engine that this machine has among 18, 15 and, when TOFT_TEST_PG17 names a bin
folder, 17. `supabase_of(major)` makes one of a certain version.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from toft.auth import schema as auth_schema
from toft.engine import postmaster
from toft.engine.binaries import find_engines
from toft.engine.bootstrap import Script, load_bootstrap
from toft.engine.clone import clone
from toft.engine.postmaster import PostmasterSpec
from toft.engine.prepare import Engine
from toft.engine.template import Launch, Template, build_base
from toft.pg.connection import Connection, connect
from toft.pg.sqlstate import PostgresError
from toft.storage import schema as storage_schema

MAJORS = (18, 17, 15) if os.environ.get("TOFT_TEST_PG17") else (18, 15)
#: Who may log in to a cluster of these tests.
LOGINS = ("supabase_admin", "postgres", "authenticator", "supabase_auth_admin", "supabase_storage_admin")
PASSWORD = "only-for-tests"
#: of this run alone: the number of processes is limited by user
UNPRIVILEGED_UID = 50_000 + os.getpid() % 10_000


class SupabaseCluster:
    """A running clone of a base template."""

    def __init__(self, spec: PostmasterSpec, running: postmaster.Running) -> None:
        self.spec = spec
        self.engine = spec.engine
        self.major = spec.engine.major
        self.socket_path = str(spec.socket_path)
        self.running = running
        self._open: list[Connection] = []

    async def connect(
        self, user: str = "postgres", database: str = "postgres", password: str = PASSWORD
    ) -> Connection:
        """A session; closed with the cluster."""
        session = await connect(self.socket_path, user, password, database)
        self._open.append(session)
        return session

    async def close(self) -> None:
        for session in self._open:
            session.close()
        await postmaster.stop(self.running, "immediate")


class SupabaseTemplates:
    """Templates of this session, by major version."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._engines: dict[int, Engine] | None = None
        self._templates: dict[int, Template] = {}
        self._clones = 0
        as_root = os.geteuid() == 0
        self.launch = Launch(
            run_dir=root / "run",
            uid=UNPRIVILEGED_UID if as_root else None,
            confinement="setpriv" if as_root else "none",
        )
        self.launch.run_dir.mkdir(mode=0o711)

    def engine(self, major: int) -> Engine:
        if self._engines is None:
            engines = [*find_engines(self.root / "home")]
            seventeen = os.environ.get("TOFT_TEST_PG17")
            if seventeen:
                engines += find_engines(self.root / "home", Path(seventeen))[:1]
            self._engines = {}
            for engine in engines:
                self._engines.setdefault(engine.major, engine)
        if major not in self._engines:
            pytest.skip(f"no Postgres {major} on this machine")
        return self._engines[major]

    async def template(self, major: int) -> Template:
        engine = self.engine(major)
        if major not in self._templates:
            services = [
                Script(name=name, role=role, sql=sql)
                for room in (auth_schema, storage_schema)
                for name, role, sql in room.scripts(major)
            ]
            self._templates[major] = await build_base(
                engine, load_bootstrap(major, services), self.root / "templates", self.launch
            )
        return self._templates[major]

    async def start(self, major: int) -> SupabaseCluster:
        template = await self.template(major)
        self._clones += 1
        place = self.root / f"c{self._clones}"
        place.mkdir(mode=0o711)
        clone(template, place / "pgdata", self.launch.uid)
        spec = PostmasterSpec(
            engine=self.engine(major),
            data_dir=place / "pgdata",
            socket_dir=self.launch.run_dir / f"c{self._clones}",
            log_path=place / "log",
            uid=self.launch.uid,
            confinement=self.launch.confinement,
        )
        cluster = SupabaseCluster(spec, await postmaster.start(spec))
        admin = await cluster.connect("supabase_admin", password=template.password)
        await admin.script("".join(f"alter role {name} password '{PASSWORD}';" for name in LOGINS))
        return cluster

    async def stop(self, cluster: SupabaseCluster) -> None:
        await cluster.close()
        shutil.rmtree(cluster.spec.data_dir.parent)
        shutil.rmtree(cluster.spec.socket_dir, ignore_errors=True)


@pytest.fixture(scope="session")
def supabase_templates() -> Iterator[SupabaseTemplates]:
    """Where templates of this session are made; removed at its end."""
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="toft-sb-", dir=memory if memory.is_dir() else None))
    root.chmod(0o711)
    yield SupabaseTemplates(root)
    shutil.rmtree(root)


@pytest.fixture(params=MAJORS, ids=lambda major: f"pg{major}")
async def supabase(
    request: pytest.FixtureRequest, supabase_templates: SupabaseTemplates
) -> AsyncIterator[SupabaseCluster]:
    """A fresh Supabase database, on each engine in turn."""
    cluster = await supabase_templates.start(request.param)
    yield cluster
    await supabase_templates.stop(cluster)


async def refused(session: Connection, sql: str) -> str | None:
    """Run statements; the SQLSTATE when they fail, None when they do not."""
    try:
        await session.script(sql)
    except PostgresError as error:
        return error.sqlstate
    return None


async def value(session: Connection, sql: str) -> str | None:
    """The only value of the only row."""
    [[only]] = await session.query(sql)
    return only
