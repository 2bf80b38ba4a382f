"""The floor: the engine's own pgbench, which pipelines the same statements over the same Unix socket."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from toft.engine.binaries import Engine
from toft.pg.wire import Statement

CONNECTIONS = 4
_PLACE = re.compile(rb"\$(\d+)")


class Pgbench:
    """Runs statements on one database. environ: PGHOST and so on."""

    def __init__(self, engine: Engine, folder: Path, environ: dict[str, str]) -> None:
        self._program = engine.bin_dir / "pgbench"
        self._folder = folder
        self._environ = environ | {"LD_LIBRARY_PATH": ":".join(map(str, engine.lib_dirs))}

    def rate(self, statements: Sequence[Statement], seconds: float, connections: int = CONNECTIONS) -> float:
        """Transactions a second: each is all the statements, prepared, in one pipeline."""
        lines, defined = [b"\\startpipeline"], list[str]()
        for number, statement in enumerate(statements):
            lines.append(_PLACE.sub(b":s%d_\\1" % number, statement.sql) + b";")
            for place, value in enumerate(statement.params, 1):
                defined += ["-D", f"s{number}_{place}={(value or b'').decode()}"]
        script = self._folder / "bench.sql"
        script.write_bytes(b"\n".join([*lines, b"\\endpipeline", b""]))
        line = [str(self._program), "-n", "-M", "prepared", "-c", str(connections), "-j", "1", *defined]
        line += ["-T", str(max(1, round(seconds))), "-f", str(script)]
        done = subprocess.run(line, env=self._environ, capture_output=True, check=False, text=True)
        for text in done.stdout.splitlines():
            if text.startswith("tps = "):
                return float(text.split()[2])
        raise RuntimeError(f"pgbench said no rate: {done.stdout[-300:]} {done.stderr[-300:]}")
