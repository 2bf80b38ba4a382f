"""Pure: where things of a home lie. Only names are computed here."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Places(msgspec.Struct, frozen=True):
    """The folders of one home, and of its sockets."""

    home: Path
    run: Path

    @property
    def state(self) -> Path:
        return self.home / "state.sqlite3"

    @property
    def lock(self) -> Path:
        return self.home / "toftd.lock"

    @property
    def log(self) -> Path:
        return self.home / "logs" / "toftd.log"

    @property
    def contents(self) -> tuple[Path, ...]:
        """Everything that a daemon puts into a home, but for its log and its lock."""
        wal = (self.state.with_name(self.state.name + end) for end in ("", "-wal", "-shm"))
        folders = ("engines", "templates", "projects", "backends", "snapshots", "trash", "wheels")
        return (*(self.home / name for name in folders), *wal)

    @property
    def control_socket(self) -> Path:
        return self.run / "toftd.sock"

    @property
    def launch_lock(self) -> Path:
        """What clients hold while they start a daemon."""
        return self.run / "launch.lock"

    @property
    def templates(self) -> Path:
        return self.home / "templates"

    @property
    def projects(self) -> Path:
        return self.home / "projects"

    @property
    def backends(self) -> Path:
        return self.home / "backends"

    @property
    def snapshots(self) -> Path:
        """Copies of running backends: the checkpoints of leases, and what forks are made of."""
        return self.home / "snapshots"

    @property
    def trash(self) -> Path:
        """Directories on their way out; on the same file system, so that going there is a rename."""
        return self.home / "trash"

    @property
    def sockets(self) -> Path:
        return self.run / "b"

    @property
    def workers(self) -> Path:
        """Where gateway workers listen for a daemon: theirs to write to."""
        return self.run / "w"

    def project(self, digest: str) -> Path:
        return self.projects / digest

    def backend(self, backend_id: str) -> Path:
        return self.backends / backend_id

    def data(self, backend_id: str) -> Path:
        return self.backends / backend_id / "pgdata"

    def next(self, backend_id: str) -> Path:
        """What will take the place of a backend's data and objects is made ready here."""
        return self.backends / backend_id / "next"

    def postmaster_log(self, backend_id: str) -> Path:
        return self.backends / backend_id / "log"

    def objects(self, backend_id: str) -> Path:
        return self.backends / backend_id / "objects"

    def socket_folder(self, backend_id: str) -> Path:
        return self.sockets / backend_id

    def socket(self, backend_id: str) -> Path:
        return self.sockets / backend_id / ".s.PGSQL.5432"

    def worker_socket(self, number: int) -> Path:
        return self.workers / f"{number}.sock"
