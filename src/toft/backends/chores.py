"""Pure: what job processes are asked to do, and what they answer. One JSON object per line, both ways.

Each chore names its lane. Lanes are kept apart so that a long chore never stands before a short one: `clone`
has a caller waiting, `snap` copies what may be large, `sweep` has time, `plan` reads projects, `build` and
`push` run tenants' SQL.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from toft.backends.recipe import Question, Recipe
from toft.engine.capture import Source
from toft.engine.prepare import Engine
from toft.engine.template import Launch
from toft.protocol.push import PushWish
from toft.protocol.worker import Secrets

type LaneName = Literal["clone", "snap", "sweep", "plan", "build", "push"]


class CloneTemplate(msgspec.Struct, frozen=True, tag=True):
    """Make a backend's folder, with a copy of a template's data directory. Answered by its `Secrets`.

    secrets: what it has already; None when it is new. objects_uid: who keeps its objects, if not we.
    """

    lane: ClassVar[LaneName] = "clone"
    templates: Path
    key: str
    folder: Path
    uid: int | None
    secrets: Secrets | None = None
    objects_uid: int | None = None


class Snap(msgspec.Struct, frozen=True, tag=True):
    """Copy a running backend into the new folder. Answered by `Captured`."""

    lane: ClassVar[LaneName] = "snap"
    source: Source
    objects: Path
    folder: Path


class CopySnapshot(msgspec.Struct, frozen=True, tag=True):
    """Make a backend's folder, with a copy of a snapshot in it, or with itself. Answered by its `Secrets`."""

    lane: ClassVar[LaneName] = "snap"
    snapshot: Path
    folder: Path
    uid: int | None
    moves: bool = False


class Remove(msgspec.Struct, frozen=True, tag=True):
    """Remove directories for good. Answered by nothing."""

    lane: ClassVar[LaneName] = "sweep"
    paths: tuple[Path, ...]


class Measure(msgspec.Struct, frozen=True, tag=True):
    """What directories take on the disk. Answered by a list of bytes, in the same order."""

    lane: ClassVar[LaneName] = "sweep"
    paths: tuple[Path, ...]


class FindEngines(msgspec.Struct, frozen=True, tag=True):
    """Find and prepare the engines of this machine. Answered by a list of engines, best first."""

    lane: ClassVar[LaneName] = "plan"
    home: Path
    bindir: Path | None


class AdmitProject(msgspec.Struct, frozen=True, tag=True):
    """Check that the file holds the bundle of this digest, and give it its name. Answered by nothing."""

    lane: ClassVar[LaneName] = "plan"
    received: Path
    digest: str
    path: Path


class MakeRecipe(msgspec.Struct, frozen=True, tag=True):
    """Read a project (or none) and say which template serves it. Answered by a `Recipe`."""

    lane: ClassVar[LaneName] = "plan"
    question: Question
    bundle: Path | None
    engines: tuple[Engine, ...]


class BuildTemplate(msgspec.Struct, frozen=True, tag=True):
    """Make the template of a recipe, from the longest part of it that there is. Answered by `Built`."""

    lane: ClassVar[LaneName] = "build"
    recipe: Recipe
    question: Question
    bundle: Path | None
    engine: Engine
    templates: Path
    launch: Launch


class PushProject(msgspec.Struct, frozen=True, tag=True):
    """Apply a project's pending migrations to a lease. Answered by `PushReport`.

    opens_as: role → password. The chore ends when its time is over.
    """

    lane: ClassVar[LaneName] = "push"
    question: Question
    bundle: Path
    socket_path: Path
    opens_as: dict[str, str]
    wish: PushWish

    def __repr__(self) -> str:
        return f"PushProject({self.question!r})"


class NewTemplate(msgspec.Struct, frozen=True):
    """A template that was made on the way."""

    key: str
    kind: str
    size_bytes: int


class Built(msgspec.Struct, frozen=True):
    """templates: those that were made. applied: how many files were run. notices: what was said of them."""

    templates: tuple[NewTemplate, ...]
    applied: int
    notices: tuple[str, ...] = ()


type Chore = (
    CloneTemplate
    | Snap
    | CopySnapshot
    | Remove
    | Measure
    | FindEngines
    | AdmitProject
    | MakeRecipe
    | BuildTemplate
    | PushProject
)


class Request(msgspec.Struct, frozen=True):
    """To a job process."""

    seq: int
    chore: Chore


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How far a chore is, for people."""

    seq: int
    text: str


class Finished(msgspec.Struct, frozen=True, tag=True):
    """A chore was done."""

    seq: int
    answer: msgspec.Raw


class Failed(msgspec.Struct, frozen=True, tag=True):
    """It was not; `problem` is the error as problem+json."""

    seq: int
    problem: dict[str, Any]


type Reply = Progress | Finished | Failed


def encode(message: object) -> bytes:
    """One message, or an answer, as JSON; paths are texts."""
    return msgspec.json.encode(message, enc_hook=str)


def decode[T](raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """What `encode` wrote."""
    return msgspec.json.decode(raw, type=kind, dec_hook=_decode_path)


def _decode_path(kind: type[Any], value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(kind)
