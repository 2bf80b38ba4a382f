"""The templates of this home: made once, whoever asks; collected by least recent use.

Several leases of one new project build one template: the first begins, the others hear its progress and wait.
A build goes on when those who wait go away: the next one will be glad of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from toft.backends import records
from toft.backends.chores import BuildTemplate, Built
from toft.backends.engines import Engines
from toft.backends.jobs import Jobs, Report
from toft.backends.projects import Projects
from toft.backends.recipe import Question, Recipe
from toft.backends.records import TemplateRecord
from toft.backends.trash import Trash
from toft.engine.template import Launch, load_template
from toft.errors.shape import ToftError
from toft.host.files import tree_bytes
from toft.ids import TemplateKey
from toft.store.connection import Store
from toft.store.transaction import Transaction
from toft.telemetry.events import TemplateBuilt, TemplateCollected
from toft.telemetry.events import TemplateFailed as BuildFailed
from toft.telemetry.log import Telemetry
from toft.world import Clock

#: of a template that no lease has asked for yet
NEVER_USED = -1e12


class _Build:
    """One template that is being made, and who hears of it."""

    def __init__(self, task: asyncio.Task[Built], project: str | None) -> None:
        self.task = task
        self.project = project
        self.listeners: list[Report] = []


class Templates:
    """Templates by key."""

    def __init__(
        self,
        folder: Path,
        launch: Launch,
        store: Store,
        jobs: Jobs,
        engines: Engines,
        projects: Projects,
        trash: Trash,
        clock: Clock,
        tell: Telemetry,
    ) -> None:
        self._folder = folder
        self._launch = launch
        self._store = store
        self._jobs = jobs
        self._engines = engines
        self._projects = projects
        self._trash = trash
        self._clock = clock
        self._tell = tell
        self._known: dict[TemplateKey, TemplateRecord] = {}
        self._builds: dict[TemplateKey, _Build] = {}
        #: called when a template was made: others may have to go
        self.made: Callable[[], None] = lambda: None

    def load(self) -> None:
        """Read the records. One without a directory is dropped; a template without a record gets one."""
        on_disk = {path.name for path in self._folder.iterdir()}
        with self._store.transaction() as tx:
            for record in records.load_templates(self._store):
                if record.key in on_disk:
                    self._known[record.key] = record
                else:
                    records.delete_template(tx, record.key)
        for name in on_disk - self._known.keys():
            template = None if name.startswith(".") else load_template(self._folder, name)
            if template is None:
                self._trash.throw(self._folder / name)
            else:
                size = tree_bytes(self._folder / name)
                self._save([TemplateRecord(TemplateKey(name), template.kind, size, NEVER_USED, None)])

    def has(self, key: TemplateKey) -> bool:
        """Whether the template is there."""
        return key in self._known

    def recipe(self, key: TemplateKey) -> Recipe | None:
        """How backends of this template are made."""
        record = self._known.get(key)
        return record.recipe if record is not None else None

    def used_mono(self, key: TemplateKey) -> float:
        """When a lease last asked for it."""
        record = self._known.get(key)
        return record.used_mono if record is not None else NEVER_USED

    def usable(self) -> list[TemplateKey]:
        """Keys of those that backends can be made from."""
        return [key for key, record in self._known.items() if record.recipe is not None]

    def use(self, tx: Transaction, key: TemplateKey) -> None:
        """A lease asked for it."""
        record = self._known.get(key)
        if record is None:
            return
        used = msgspec.structs.replace(record, used_mono=self._clock.mono())
        records.touch_template(tx, key, used.used_mono)
        self._known[key] = used

    async def ensure(self, recipe: Recipe, question: Question, report: Report) -> Built | None:
        """Have the template of a recipe. None: it was there; else what was done. Raises what went wrong."""
        if self.has(recipe.key):
            self._learn(recipe)
            return None
        if recipe.kind == "project":
            base = Recipe(key=recipe.base_key, base_key=recipe.base_key, engine_id=recipe.engine_id)
            await self.ensure(base, Question(), report)
        build = self._builds.get(recipe.key) or self._begin(recipe, question)
        build.listeners.append(report)
        try:
            return await asyncio.shield(build.task)
        finally:
            build.listeners.remove(report)

    def collect(self, most: int, most_bytes: int, in_use: Collection[TemplateKey]) -> list[TemplateRecord]:
        """Throw away templates, those used longest ago first, until the rest keeps the bounds.

        Never one in use. Base templates count for nothing and stay, for they are small, dear to make and the
        root of all others, unless no template at all is to stay.
        """
        kinds = ("project", "base") if most == 0 else ("project",)
        projects = [record for record in self._known.values() if record.kind in kinds]
        by_use = sorted(projects, key=lambda record: record.used_mono)
        count = sum(record.recipe is not None for record in by_use)
        size = sum(record.size_bytes for record in by_use)
        gone: list[TemplateRecord] = []
        for record in by_use:
            if count <= most and size <= most_bytes and most:
                break
            if record.key in in_use or record.key in self._builds:
                continue
            count -= record.recipe is not None
            size -= record.size_bytes
            gone.append(record)
        with self._store.transaction() as tx:
            for record in gone:
                records.delete_template(tx, record.key)
        for record in gone:
            del self._known[record.key]
            self._trash.throw(self._folder / record.key)
            self._tell(TemplateCollected(key=record.key, size_bytes=record.size_bytes))
        return gone

    def forget(self, key: TemplateKey) -> None:
        """A template that turned out to be damaged: throw it away, so that the next lease makes it anew."""
        if self._known.pop(key, None) is None or key in self._builds:
            return
        with self._store.transaction() as tx:
            records.delete_template(tx, key)
        self._trash.throw(self._folder / key)

    def projects_at_work(self) -> set[str]:
        """Digests of the projects whose files are being applied."""
        return {build.project for build in self._builds.values() if build.project is not None}

    def is_building(self) -> bool:
        """Whether one is being made."""
        return bool(self._builds)

    async def close(self) -> None:
        """Stop what is being made."""
        tasks = [build.task for build in self._builds.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _learn(self, recipe: Recipe) -> None:
        """A template made on the way to another is asked for by itself: keep its recipe."""
        record = self._known[recipe.key]
        if record.recipe != recipe:
            self._save([msgspec.structs.replace(record, recipe=recipe)])

    def _begin(self, recipe: Recipe, question: Question) -> _Build:
        task = asyncio.get_running_loop().create_task(self._make(recipe, question))
        build = _Build(task, question.project)
        self._builds[recipe.key] = build
        build.task.add_done_callback(lambda task: self._is_over(recipe.key, task))
        return build

    def _is_over(self, key: TemplateKey, task: asyncio.Task[Built]) -> None:
        del self._builds[key]
        if not task.cancelled():
            task.exception()  # its listeners hear of it; nobody else has to

    async def _make(self, recipe: Recipe, question: Question) -> Built:
        begun = self._clock.mono()
        chore = BuildTemplate(
            recipe=recipe,
            question=question,
            bundle=self._projects.bundle(question) if recipe.kind == "project" else None,
            engine=await self._engines.get(recipe.engine_id),
            templates=self._folder,
            launch=self._launch,
        )
        try:
            built = await self._jobs.run(chore, Built, lambda text: self._pass_on(recipe.key, text))
        except ToftError as error:
            self._tell(BuildFailed(key=recipe.key, code=error.code, cause=str(error)))
            raise
        self._save(
            [
                TemplateRecord(
                    key=TemplateKey(made.key),
                    kind=made.kind,
                    size_bytes=made.size_bytes,
                    used_mono=NEVER_USED if made.kind == "base" else self._clock.mono(),
                    recipe=recipe if made.key == recipe.key else None,
                )
                for made in built.templates
            ]
        )
        took = (self._clock.mono() - begun) * 1000
        self._tell(TemplateBuilt(key=recipe.key, kind=recipe.kind, applied=built.applied, took_ms=took))
        self.made()
        return built

    def _pass_on(self, key: TemplateKey, text: str) -> None:
        build = self._builds.get(key)
        for listener in build.listeners if build is not None else ():
            listener(text)

    def _save(self, made: list[TemplateRecord]) -> None:
        with self._store.transaction() as tx:
            for record in made:
                records.save_template(tx, record)
        self._known.update((record.key, record) for record in made)
