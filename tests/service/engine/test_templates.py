"""Making templates and cloning them."""

from __future__ import annotations

import asyncio
import os
import pwd
import secrets
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kit.fix_engine import SMALL_BOOTSTRAP, Clone, EngineLab, methods
from toft.engine.bootstrap import Bootstrap, Script
from toft.engine.clone import clone
from toft.engine.marks import ROLES, find_marks
from toft.engine.pack import pack
from toft.engine.template import Template, base_key, build_base, load_template, read_index, seal, verify
from toft.errors.backend import DiskFull
from toft.errors.engine import TemplateFailed
from toft.host import processes
from toft.host.confine import Method
from toft.pg.connection import connect
from toft.pg.sqlstate import PostgresError


@pytest.fixture
def clean(engine_lab: EngineLab) -> Iterator[None]:
    """Nothing unfinished, no socket folder and no process is left by the test."""
    before = sorted(os.listdir(engine_lab.run))
    yield
    left = [name for name in os.listdir(engine_lab.templates) if name.startswith(".")]
    assert left == []
    assert sorted(os.listdir(engine_lab.run)) == before
    mine = str(engine_lab.root)
    commands = [Path(f"/proc/{pid}/cmdline") for pid in processes.all_pids()]
    running = [path.read_bytes() for path in commands if path.exists()]
    assert not [line for line in running if mine.encode() in line and b"postgres" in line]


async def test_a_template_is_lean(engine_lab: EngineLab, major: int) -> None:
    """Two databases, one small log segment, no free space or visibility maps, nothing that a start makes."""
    template = await engine_lab.template(major)
    index = read_index(template)
    names = [name for name, *_ in index.files]
    assert len([name for name in index.directories if name.startswith("base/")]) == 2
    assert not [
        name for name in names if name.endswith(("_fsm", "_vm", "pg_internal.init", "postmaster.pid"))
    ]
    assert [size for name, _, _, size in index.files if name.startswith("pg_wal/")] == [1 << 20]
    assert len(names) < 540
    assert template.path.stat().st_size < 14 << 20
    assert verify(template)


async def test_a_template_is_made_once(engine_lab: EngineLab, major: int) -> None:
    """The same engine and scripts give the same name; what is there is returned as it is."""
    template = await engine_lab.template(major)
    engine = engine_lab.engine(major)
    written = template.path.stat().st_mtime_ns
    again = await build_base(engine, SMALL_BOOTSTRAP, engine_lab.templates, engine_lab.launch())
    assert again == template
    assert again.path.stat().st_mtime_ns == written
    assert template.key == base_key(engine, SMALL_BOOTSTRAP)
    other = msgspec.structs.replace(SMALL_BOOTSTRAP, version="another")
    assert base_key(engine, other) != template.key
    assert template.password not in repr(template)


async def test_scripts_run_as_their_roles(make_clone: Any) -> None:
    """On a connection of that role's own; and afterwards it has a password that nobody knows."""
    made: Clone = await make_clone()
    await made.start()
    assert await made.ask("select name from made_by") == "postgres"
    with pytest.raises(PostgresError) as caught:
        await made.connect("postgres", made.password)
    assert caught.value.sqlstate == "28P01"


async def test_databases_can_be_made_without_naming_a_template(make_clone: Any) -> None:
    """Prisma's shadow database and Django's test database are made so; and they sort and fold as expected."""
    made: Clone = await make_clone()
    await made.start()
    session = await made.connect()
    await session.script("create database shadow")
    other = await connect(str(made.spec.socket_path), "supabase_admin", made.password, "shadow")
    await other.script("create table t (id int primary key, words text); insert into t values (1, 'Äpfel')")
    assert await other.query("select lower(words), words > 'Zebra' from t") == [["äpfel", "t"]]
    assert await other.query("select to_tsvector('simple', 'Über Äpfel')::text") == [["'äpfel':2 'über':1"]]
    other.close()


async def test_a_failing_script_is_named(engine_lab: EngineLab, major: int, clean: None) -> None:
    """With the server's own words, and nothing is left of the attempt."""
    scripts = (
        *SMALL_BOOTSTRAP.scripts,
        Script(name="wrong", role="postgres", sql="select 1;\nselect nonsense"),
    )
    with pytest.raises(TemplateFailed) as caught:
        await build_base(
            engine_lab.engine(major),
            Bootstrap(version="wrong", scripts=scripts),
            engine_lab.templates,
            engine_lab.launch(),
        )
    assert "wrong.sql" in str(caught.value)
    assert "nonsense" in str(caught.value)


@pytest.mark.parametrize("stage", ["initdb.log", "log"])
async def test_a_cancelled_build_leaves_nothing(engine_lab: EngineLab, stage: str, clean: None) -> None:
    """Neither while initdb runs nor while the scripts do."""
    slow = Script(name="slow", role="supabase_admin", sql="select pg_sleep(60)")
    work = asyncio.ensure_future(
        build_base(
            engine_lab.engine(18),
            Bootstrap(version="slow", scripts=(slow,)),
            engine_lab.templates,
            engine_lab.launch(),
        )
    )
    while not list(engine_lab.templates.glob(f".building-*/{stage}")) and not work.done():
        await asyncio.sleep(0.001)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_a_killed_builder_leaves_no_postmaster(engine_lab: EngineLab, tmp_path: Path) -> None:
    """It is told of its starter's death by the kernel; the folder is for the next daemon to remove."""
    engine_lab.engine(18)
    need_a_name()
    launch = engine_lab.launch()
    builder = processes.spawn(
        [sys.executable, "-c", BUILDER, str(engine_lab.home), str(launch.run_dir), str(launch.uid)],
        {"PYTHONPATH": ":".join(sys.path)},
        output=os.open(tmp_path / "output", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600),
    )
    head = processes.identify(builder)
    assert head is not None
    said = tmp_path / "output"
    while b"started" not in said.read_bytes():
        assert processes.is_alive(head), said.read_text()
        await asyncio.sleep(0.001)
    family = processes.descendants(head.pid)
    assert len(family) >= 4
    os.kill(head.pid, signal.SIGKILL)
    for member in (head, *family):
        await processes.wait_gone(member)


def need_a_name() -> None:
    """Without bubblewrap, which can give it one, initdb needs a user with a name."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        pytest.skip("the user who runs the tests has no name")


BUILDER = """
import asyncio, sys
from pathlib import Path
from toft.engine import template
from toft.engine.binaries import find_engines
from toft.engine.bootstrap import Bootstrap, Script
home, run, uid = sys.argv[1:]
run_scripts = template._run_scripts
async def tell(*args):
    print("started", flush=True)
    await run_scripts(*args)
template._run_scripts = tell
engine = next(engine for engine in find_engines(Path(home)) if engine.major == 18)
slow = Script(name="slow", role="supabase_admin", sql="select pg_sleep(60)")
slow = Bootstrap(version="k", scripts=(slow,))
launch = template.Launch(run_dir=Path(run), uid=None if uid == "None" else int(uid), confinement="none")
asyncio.run(template.build_base(engine, slow, Path(home) / "other-templates", launch))
"""


@pytest.mark.parametrize("method", methods())
async def test_a_template_can_be_made_by_each_method(
    engine_lab: EngineLab, tmp_path: Path, method: Method
) -> None:
    """The same files come out, whoever made them, and belong to us."""
    if method == "none":
        need_a_name()
    template = await engine_lab.template(18)
    other = engine_lab.home / f"templates-{method}"
    made = await build_base(engine_lab.engine(18), SMALL_BOOTSTRAP, other, engine_lab.launch(method))
    assert read_index(made).directories == read_index(template).directories
    assert abs(len(read_index(made).files) - len(read_index(template).files)) <= 2
    assert made.path.stat().st_uid == os.geteuid()


async def test_a_template_that_was_cut_off_is_none(engine_lab: EngineLab, tmp_path: Path) -> None:
    """A part of the pack is missing, or its record: it is made again rather than used."""
    template = await engine_lab.template(18)
    copy = tmp_path / template.key
    copy.mkdir()
    for path in template.path.parent.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    found = load_template(tmp_path, template.key)
    assert found is not None
    assert verify(found)
    with found.path.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"flipped")
    assert not verify(found)
    os.truncate(found.path, 1_000_000)
    assert load_template(tmp_path, template.key) is None
    (copy / "template.json").unlink()
    assert load_template(tmp_path, template.key) is None


async def test_a_running_cluster_cannot_become_a_template(make_clone: Any, engine_lab: EngineLab) -> None:
    """Its pid file tells; a copy of it would be corrupt."""
    made: Clone = await make_clone()
    await made.start()
    with pytest.raises(TemplateFailed, match="not stopped cleanly"):
        seal(
            made.spec.data_dir.parent,
            engine_lab.templates,
            "running",
            kind="project",
            engine_id=made.spec.engine.id,
            password=made.password,
            verifiers={},
        )


async def test_a_project_becomes_a_template(
    make_clone: Any, engine_lab: EngineLab, major: int, tmp_path: Path
) -> None:
    """A clone that was changed and stopped is sealed; clones of that one have the change."""
    made: Clone = await make_clone()
    running = await made.start()
    await made.ask("with t as (insert into made_by values ('project') returning name) select name from t")
    from toft.engine import postmaster

    await postmaster.stop(running, "fast")
    folder = engine_lab.templates / f".project-{major}"
    folder.mkdir()
    made.spec.data_dir.rename(folder / "pgdata")
    sealed = seal(
        folder,
        engine_lab.templates,
        f"project-{major}",
        kind="project",
        engine_id=made.spec.engine.id,
        password=made.password,
        verifiers=(await engine_lab.template(major)).verifiers,
    )
    assert sealed.kind == "project"
    assert not folder.exists()
    clone(sealed, made.spec.data_dir, made.spec.uid)
    await made.start()
    assert await made.ask("select string_agg(name, ',' order by name) from made_by") == "postgres,project"


async def test_a_clone_has_its_own_passwords(make_clone: Any, engine_lab: EngineLab, major: int) -> None:
    """They are in its files before it starts for the first time, and the template's lets nobody in."""
    made: Clone = await make_clone()
    template = await engine_lab.template(major)
    shutil.rmtree(made.spec.data_dir)
    passwords = {role: f"{role}-{secrets.token_hex(16)}" for role in ROLES}
    clone(template, made.spec.data_dir, made.spec.uid, passwords)
    await made.start()
    for role, password in passwords.items():
        session = await made.connect(role, password)
        assert await session.query("select current_user") == [[role]]
        session.close()
        with pytest.raises(PostgresError) as caught:
            await made.connect(role, template.password)
        assert caught.value.sqlstate == "28P01"
    assert verify(template)


def test_a_template_without_the_verifiers_is_refused(tmp_path: Path) -> None:
    """They must be where a clone's can be put in their place: in a shared catalog."""
    for content in (b"nil", b"-one-two-one", b"two"):
        (tmp_path / "data" / "global").mkdir(parents=True)
        (tmp_path / "data" / "pg_wal").mkdir()
        (tmp_path / "data" / "pg_wal" / "1").write_bytes(b"one two")
        (tmp_path / "data" / "global" / "1260").write_bytes(content)
        index = pack(tmp_path / "data", tmp_path / "pack")
        marks = {"a": "one", "b": "two"}
        if b"one" in content:
            found = find_marks(tmp_path / "pack", index, marks)
            [begin] = [offset for name, offset, _, _ in index.files if name == "global/1260"]
            assert found == {"a": [begin + 1, begin + 9], "b": [begin + 5]}
        else:
            with pytest.raises(LookupError, match="a"):
                find_marks(tmp_path / "pack", index, marks)
        shutil.rmtree(tmp_path / "data")
        (tmp_path / "pack").unlink()


async def test_nobody_is_let_in_without_the_password(make_clone: Any) -> None:
    """Not even the owner of the socket's folder."""
    made: Clone = await make_clone()
    await made.start()
    for user, password in (("supabase_admin", "wrong"), ("postgres", "wrong"), ("nobody", "wrong")):
        with pytest.raises(PostgresError) as caught:
            await made.connect(user, password)
        assert caught.value.sqlstate == "28P01"


def test_a_full_disk_is_said_and_leaves_nothing(full_disk: Path, engine_lab: EngineLab) -> None:
    """The part that fitted is removed again, so that there is room as before."""
    template = asyncio.run(engine_lab.template(18))
    before = os.statvfs(full_disk).f_bfree
    with pytest.raises(DiskFull) as caught:
        clone(template, full_disk / "pgdata", None)
    assert str(full_disk) in str(caught.value)
    assert os.listdir(full_disk) == []
    assert os.statvfs(full_disk).f_bfree == before


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that a clone does not fit on."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts one")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = processes.run(["/usr/bin/mount", "-t", "tmpfs", "-o", "size=4m", "toft-test", str(place)])
    if mounted.status != 0:
        pytest.skip(mounted.errors)
    yield place
    assert processes.run(["/usr/bin/umount", str(place)]).status == 0


def test_what_a_killed_clone_left_is_in_nobodys_way(engine_lab: EngineLab, tmp_path: Path) -> None:
    """The half-made directory is replaced; the finished one has everything."""
    template: Template = asyncio.run(engine_lab.template(18))
    (tmp_path / ".pgdata.cloning/base").mkdir(parents=True)
    (tmp_path / ".pgdata.cloning/base/half").write_text("x")
    clone(template, tmp_path / "pgdata", None)
    assert os.listdir(tmp_path) == ["pgdata"]
    assert not (tmp_path / "pgdata/base/half").exists()
    with pytest.raises(FileExistsError):
        clone(template, tmp_path / "pgdata", None)
    assert os.listdir(tmp_path) == ["pgdata"]
