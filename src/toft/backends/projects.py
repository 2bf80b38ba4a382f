"""Projects that clients have sent, and the recipe of each question about them.

A bundle is needed only to make a recipe or a template, so few are kept: a client sends one again when it is
asked for.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from types import NoneType

from toft.backends.chores import AdmitProject, MakeRecipe
from toft.backends.engines import Engines
from toft.backends.jobs import Jobs
from toft.backends.recipe import Question, Recipe
from toft.errors.daemon import BadRequest
from toft.errors.project import ProjectUnknown

MOST_BUNDLES = 50
MOST_RECIPES = 500
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Projects:
    """Bundles on the disk, recipes in memory."""

    def __init__(self, folder: Path, jobs: Jobs, engines: Engines) -> None:
        self._folder = folder
        self._jobs = jobs
        self._engines = engines
        self._recipes: OrderedDict[Question, Recipe] = OrderedDict()
        self._making: dict[Question, asyncio.Task[Recipe]] = {}

    def place_to_receive(self, digest: str, stamp: str) -> Path:
        """Where the bytes of a bundle go while they arrive. Raises `BadRequest` for a digest that is none."""
        if not _DIGEST.fullmatch(digest):
            raise BadRequest(cause="a project's digest has 64 hexadecimal digits")
        return self._folder / f".receiving-{digest[:16]}-{stamp}"

    async def admit(self, received: Path, digest: str) -> None:
        """A bundle has arrived: check it, keep it, forget the oldest."""
        await self._jobs.run(AdmitProject(received, digest, self._folder / digest), NoneType)
        self.forget_old(MOST_BUNDLES)

    def has_bundle(self, digest: str) -> bool:
        """Whether the project's files are here."""
        return bool(_DIGEST.fullmatch(digest)) and (self._folder / digest).exists()

    def bundle(self, question: Question) -> Path | None:
        """The file of the project that a question is about. Raises `ProjectUnknown` when it is not here."""
        if question.project is None:
            return None
        if not self.has_bundle(question.project):
            raise ProjectUnknown(digest=question.project)
        return self._folder / question.project

    def known(self, question: Question) -> Recipe | None:
        """The recipe, if it was made before."""
        recipe = self._recipes.get(question)
        if recipe is not None:
            self._recipes.move_to_end(question)
        return recipe

    async def recipe(self, question: Question) -> Recipe:
        """The recipe; those who ask the same at the same time get one answer."""
        recipe = self.known(question)
        if recipe is not None:
            return recipe
        task = self._making.get(question)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._make(question))
            self._making[question] = task
            task.add_done_callback(lambda _: self._making.pop(question, None))
        return await asyncio.shield(task)

    def forget_old(self, most: int, at_work: Collection[str] = ()) -> int:
        """Keep the `most` bundles that came last, and those at work; how many were forgotten."""
        needed = {*at_work, *(question.project for question in self._making)}
        ages: list[tuple[float, Path]] = []
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):
                if path.name not in needed:
                    ages.append((path.stat().st_mtime, path))
        old = sorted(ages)[: max(0, len(ages) - most)]
        for _, path in old:
            path.unlink(missing_ok=True)
        return len(old)

    async def _make(self, question: Question) -> Recipe:
        bundle = self.bundle(question)
        engines = await self._engines.all()
        recipe = await self._jobs.run(MakeRecipe(question, bundle, engines), Recipe)
        self._recipes[question] = recipe
        while len(self._recipes) > MOST_RECIPES:
            self._recipes.popitem(last=False)
        return recipe
