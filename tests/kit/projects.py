"""Projects for tests: from texts, or from a folder as it lies on disk; and how they are applied to a
cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from toft.client import project as client
from toft.migrate.project import Options, Project, read_project
from toft.migrate.run import Applied, apply
from toft.pg.connection import Connection
from toft.protocol.bundle import CONFIG, MIGRATIONS, Bundle

if TYPE_CHECKING:
    from tests.kit.fix_supabase import SupabaseCluster

PROJECTS = Path(__file__).parent.parent / "projects"


def bundle_of(files: Mapping[str, str | bytes], env: Mapping[str, str] | None = None) -> Bundle:
    """A bundle of these files. A name without a folder is that of a migration."""
    raw = {
        path if "/" in path else f"{MIGRATIONS}/{path}": text.encode() if isinstance(text, str) else text
        for path, text in files.items()
    }
    return Bundle(raw, env)


def project_of(
    files: Mapping[str, str | bytes],
    *,
    config: str = "",
    env: Mapping[str, str] | None = None,
    **options: object,
) -> Project:
    """The project that these files are; see `bundle_of`."""
    if config:
        files = {**files, CONFIG: config}
    return read_project(bundle_of(files, env), Options(**options))  # pyright: ignore[reportArgumentType] - tests


def read_folder(root: Path) -> Bundle:
    """The bundle of a project's folder, as `toft run` reads it."""
    return client.read_project(str(root), {})


async def apply_to(cluster: SupabaseCluster, project: Project, start_at: int = 0) -> Applied:
    """Apply a project to a cluster, with connections of its own."""

    async def dial(role: str) -> Connection:
        return await cluster.connect(role)

    return await apply(project, dial, start_at)
