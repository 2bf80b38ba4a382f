"""A project's folder becomes a Bundle: its files are read, and their meaning is left to the daemon.

The project is the nearest folder, from where one stands upwards, that has a `supabase/config.toml`; else the
folder itself, if it has a `supabase/`.
"""

from __future__ import annotations

import os
import stat

from toft.errors.project import FileUnreadable
from toft.protocol import bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def find_project(start: str) -> str | None:
    """The project's root for a folder, or None where there is no project, nor even the folder any more."""
    try:
        start = os.path.realpath(start)
    except FileNotFoundError:
        return None
    folder = start
    while not os.path.isfile(f"{folder}/{bundle.CONFIG}"):
        above = os.path.dirname(folder)
        if above == folder:
            return start if os.path.isdir(start + "/supabase") else None
        folder = above
    return folder


def read_project(root: str, environ: Mapping[str, str], migrations: str = bundle.MIGRATIONS) -> bundle.Bundle:
    """All files of the project that belong into its bundle, and the variables that config.toml asks for.

    migrations: the folder of migrations, relative to the root. Raises `FileUnreadable`.
    """
    files = {
        path: _read(root, path) for path in _walk(root, "supabase") if bundle.is_wanted(path, migrations)
    }
    if not migrations.startswith("supabase/"):
        files.update((path, _read(root, path)) for path in _list(root, migrations))
    config = files.get(bundle.CONFIG, b"").decode(errors="replace")
    for pattern in bundle.seed_patterns(config) if _has_own_seeds(config) else ():
        files.update((path, _read(root, path)) for path in _expand(root, pattern) if path not in files)
    keys = bundle.signing_keys_path(config)
    if keys is not None and _is_file(f"{root}/{keys}"):
        files[keys] = _read(root, keys)
    for place in bundle.object_folders(config) if "objects_path" in config else ():
        folder = os.path.normpath("supabase/" + place)
        files.update((path, _read(root, path)) for path in _find_all(root, folder) if path not in files)
    names = bundle.env_names(config) if "env(" in config else []
    return bundle.Bundle(files, _find_env(root, names, environ) if names else {})


def _has_own_seeds(config: str) -> bool:
    """Whether config.toml says anything about seeds but what `supabase init` writes; a quick look."""
    bare = "".join(config.split())
    return bare.replace('sql_paths=["./seed.sql"]', "").count("sql_paths") > 0


def _walk(root: str, folder: str) -> Iterator[str]:
    """Regular files below a folder of the project, without those folders that hold no SQL."""
    for entry in _scan(root, folder):
        path = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if bundle.is_wanted(path + "/x.sql"):
                yield from _walk(root, path)
        elif entry.is_file():
            yield path


def _find_all(root: str, folder: str) -> Iterator[str]:
    """Every regular file below a folder, or the file of that name."""
    if _is_file(f"{root}/{folder}"):
        yield folder
    for entry in _scan(root, folder):
        path = f"{folder}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _find_all(root, path)
        elif entry.is_file():
            yield path


def _list(root: str, folder: str) -> Iterator[str]:
    return (f"{folder}/{entry.name}" for entry in _scan(root, folder) if entry.is_file())


def _scan(root: str, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(f"{root}/{folder}") as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(folder, error) from None


def _read(root: str, path: str) -> bytes:
    try:
        with open(f"{root}/{path}", "rb") as file:
            return file.read()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: OSError) -> FileUnreadable:
    cause = f"cannot be read: {os.strerror(error.errno or 0)}"
    return FileUnreadable(file=path, line=1, cause=cause, advice="check its permissions")


def _expand(root: str, pattern: str) -> list[str]:
    """The project's paths for a pattern of `sql_paths`, which is relative to `supabase/`."""
    if "**" not in pattern and not any(char in pattern for char in "*?["):
        found = [pattern]
    else:
        import glob

        found = glob.glob(pattern, root_dir=root + "/supabase")
    paths = [os.path.normpath("supabase/" + path) for path in found]
    return [path for path in paths if _is_file(f"{root}/{path}")]


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _find_env(root: str, names: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The values of variables: from the environment, else from the `.env` files of `supabase/` and above."""
    found = {name: environ[name] for name in names if environ.get(name)}
    missing = [name for name in names if name not in found]
    texts = list(_env_texts(root, environ.get("SUPABASE_ENV", ""))) if missing else []
    if not any(name in text for text in texts for name in missing):
        return found
    from toft.protocol import dotenv

    return dotenv.resolve(names, environ, texts)


def _env_texts(root: str, environment: str) -> Iterator[str]:
    """What the `.env` files say, in the order in which they count."""
    for folder in ("supabase/", ""):
        for name in bundle.env_file_names(environment):
            if _is_file(f"{root}/{folder}{name}"):
                yield _read(root, folder + name).decode(errors="replace")
