"""Pure: a project as a value: the files that a database is made from, and a digest of them.

The client reads files and does not interpret them; the daemon interprets them and reads no user's folder.
So the same bundle serves another machine. Paths are relative to the project's root, with `/` between
their parts and already normalised (`supabase/migrations/1_a.sql`). On the CLI's quick path: cheap standard
library only.
"""

from __future__ import annotations

from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # the same as hashlib's, without loading OpenSSL
    except ImportError:  # an interpreter built without it
        from hashlib import sha256

CONFIG = "supabase/config.toml"
ROLES = "supabase/roles.sql"
MIGRATIONS = "supabase/migrations"

_MAGIC = b"toft bundle 1\n"
#: folders under supabase/ that hold no SQL of ours and may be large
_LEFT_OUT = frozenset({"functions", "node_modules", ".temp", ".branches", "tests", "snippets"})
#: sections whose values no lease needs: their secrets stay at home
_UNASKED = ("studio", "analytics", "edge_runtime", "functions", "experimental", "realtime", "remotes")
_STRING = r"""#[^\n]*|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'"""
_SEED_PATHS = rf"""(?m)^[ \t]*(?:[\w.]+\.)?sql_paths[ \t]*=[ \t]*(\[(?:[^\]"'#]|{_STRING})*|[^\n]*)"""


class Bundle:
    """files: path → bytes. env: the variables that config.toml asks for by `env(NAME)` and that are set."""

    __slots__ = ("env", "files")

    def __init__(self, files: Mapping[str, bytes], env: Mapping[str, str] | None = None) -> None:
        self.files = dict(files)
        self.env = dict(env or {})

    def digest(self) -> str:
        """64 hexadecimal digits; equal for equal content, whatever the order it was read in."""
        whole = sha256(_MAGIC)
        for part in self._parts():
            whole.update(part)
        return whole.hexdigest()

    def encode(self) -> bytes:
        """The bytes that travel to the daemon; `decode` gives the bundle back."""
        return b"".join((_MAGIC, *self._parts()))

    def _parts(self) -> Iterator[bytes]:
        """A line of JSON that says what is in it, then the files' bytes, all in the order of their paths."""
        paths = sorted(self.files)
        contents = {
            "files": [[path, len(self.files[path])] for path in paths],
            "env": [[name, self.env[name]] for name in sorted(self.env)],
        }
        yield plain_json.encode(contents) + b"\n"
        for path in paths:
            yield self.files[path]

    @classmethod
    def decode(cls, raw: bytes) -> Bundle:
        """Raises ValueError when the bytes are not those of a bundle."""
        import json  # the daemon's side: it has it already

        end = raw.find(b"\n", len(_MAGIC))
        if not raw.startswith(_MAGIC) or end < 0:
            raise ValueError("not a bundle")
        files: dict[str, bytes] = {}
        try:
            contents = json.loads(raw[len(_MAGIC) : end])
            at = end + 1
            for path, size in contents["files"]:
                if not isinstance(path, str) or not isinstance(size, int) or size < 0:
                    raise ValueError("a file of the bundle has no proper name or size")
                files[path] = raw[at : at + size]
                at += size
            env = {str(name): str(value) for name, value in contents["env"]}
        except (KeyError, TypeError, RecursionError) as fault:
            raise ValueError("the bundle's table of contents is not understood") from fault
        if at != len(raw):
            raise ValueError("the bundle is cut short or too long")
        return cls(files, env)

    def __repr__(self) -> str:
        return f"Bundle({len(self.files)} files)"


def is_wanted(path: str, migrations: str = MIGRATIONS) -> bool:
    """Whether a file of the project belongs into its bundle: SQL, and the mails' templates.

    Everything directly in the migrations folder does, whatever its name: what lies there decides which file
    is the first one. Seeds outside `supabase/` come in by `seed_patterns`.
    """
    if path == CONFIG or path.startswith(migrations + "/"):
        return True
    parts = path.split("/")
    return path.endswith((".sql", ".html")) and parts[0] == "supabase" and _LEFT_OUT.isdisjoint(parts)


def signing_keys_path(config: str) -> str | None:
    """The file that `signing_keys_path` names, if it lies in supabase/; a quick look, for the quick path."""
    for line in config.splitlines():
        name, found, value = line.partition("=")
        if found and name.rpartition(".")[2].strip(" \t\"'") == "signing_keys_path":
            path = value.partition("#")[0].strip().strip("\"'").removeprefix("./")
            if path and not path.startswith("/") and ".." not in path.split("/"):
                return f"supabase/{path}"
    return None


def env_names(config: str) -> list[str]:
    """The variables that a config.toml asks for by `env(NAME)`, in the sections that matter for a lease."""
    names: dict[str, None] = {}
    section = ""
    for line in config.splitlines():
        stripped = line.strip()
        if stripped.startswith("["):
            section = stripped.lstrip("[ \t").partition("]")[0]
        elif "env(" in stripped and stripped[0] != "#" and section.split(".")[0] not in _UNASKED:
            names.update((name, None) for name in _env_values(stripped))
    return list(names)


def _env_values(line: str) -> Iterator[str]:
    """The names of all `"env(NAME)"` in a line; without `re`, which costs as much as starting Python."""
    for quote in "\"'":
        for piece in line.split(quote + "env(")[1:]:
            name, found, _ = piece.partition(")" + quote)
            if found and name and not any(char in "()\"'" or char.isspace() for char in name):
                yield name


def seed_patterns(config: str) -> list[str]:
    """Every pattern in a `sql_paths` of the text, as it stands there: relative to `supabase/`.

    A reading by eye, for a client that has no TOML parser at hand: it may find too much, never too little.
    """
    import re

    patterns: dict[str, None] = {}
    for value in re.finditer(_SEED_PATHS, config):
        for text in re.finditer(_STRING, value[1]):
            if not text[0].startswith("#"):
                patterns[text[1] if text[1] is not None else text[2]] = None
    return list(patterns)


def object_folders(config: str) -> list[str]:
    """Every `objects_path` of the text, as it stands there: relative to `supabase/`. Also by eye."""
    folders: dict[str, None] = {}
    for line in config.splitlines():
        name, _, value = line.partition("=")
        if name.strip().rpartition(".")[2] == "objects_path":
            quote = value.strip()[:1]
            if quote and quote in "\"'":
                folders[value.strip()[1:].partition(quote)[0]] = None
    return list(folders)


def env_file_names(environment: str) -> list[str]:
    """The `.env` files looked for in each folder from `supabase/` upwards; what is found first counts.

    environment: the value of SUPABASE_ENV, or empty.
    """
    name = environment or "development"
    shared = [] if name == "test" else [".env.local"]
    return [f".env.{name}.local", *shared, f".env.{name}", ".env"]
