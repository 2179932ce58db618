"""A PostgreSQL server of the tests' own, from the system's package, on a loopback port."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from glob import glob
from pathlib import Path

from attrs import frozen
from pg8000.native import Connection, identifier

from codex_checkpoints.storage.remote.postgres import PostgresHistoryStore

ADMIN = "administrator"


@frozen
class PostgresServer:
    """A running server; `data` is its folder."""

    port: int
    data: Path
    bin: Path

    def url(self, login: str, database: str) -> str:
        """Return the address of a database for a login."""
        return f"postgresql://{login}@127.0.0.1:{self.port}/{database}"

    def connect(self, login: str, database: str) -> Connection:
        """Connect by plain SQL."""
        return Connection(login, host="127.0.0.1", port=self.port, database=database)

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server at once, as a failure would."""
        self.control("stop", "-m", mode)

    def start(self) -> None:
        """Start the server again."""
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        )
        self.control("start", "-w", "-o", options, "-l", str(self.data / "log"))

    def use_certificate(self, certificate: Path, key: Path) -> None:
        """Offer TLS from now on."""
        for source in (certificate, key):
            copy = self.data / source.name
            shutil.copyfile(source, copy)
            copy.chmod(0o600)
            if os.getuid() == 0:
                shutil.chown(copy, "postgres", "postgres")
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write("ssl = on\n")
        self.control("reload")

    def control(self, *words: str) -> None:
        """Run `pg_ctl`."""
        run(str(self.bin / "pg_ctl"), "-D", str(self.data), *words)


@frozen
class Team:
    """A database with a store, made by an administrator."""

    server: PostgresServer
    name: str
    _open: ExitStack

    def admin(self) -> Connection:
        """Connect as the administrator."""
        return self.server.connect(ADMIN, self.name)

    def join(self, login: str, *teams: str, org: str = "default", role: str = "person") -> str:
        """Add a login; return its name, which no other test has."""
        its = f"{login}_{self.name}"
        with self.admin() as admin:
            admin.run(f"create role {identifier(its)} login in role codex_checkpoints_{role}")
            admin.run(
                "insert into codex_checkpoints.member values (:login, :org, :teams)",
                login=its,
                org=org,
                teams=list(teams),
            )
        return its

    def store(self, login: str) -> PostgresHistoryStore:
        """Return the store as a login sees it."""
        store = PostgresHistoryStore(self.server.url(login, self.name), {})
        self._open.callback(store.close)
        return store

    def sql(self, login: str) -> Connection:
        """Connect as a login, for plain SQL."""
        return self._open.enter_context(self.server.connect(login, self.name))


def programs() -> Path | None:
    """Return the folder of the server's programs, None where there is no package."""
    found = sorted(glob("/usr/lib/postgresql/*/bin"))
    on_path = shutil.which("initdb")
    places = [*map(Path, found[::-1]), *([Path(on_path).parent] if on_path else [])]
    return next((place for place in places if (place / "pg_ctl").is_file()), None)


def run(*command: str) -> None:
    """Run a program of the server, which does not run as root."""
    user = None
    if os.getuid() == 0:
        user = "postgres"
    subprocess.run(
        command, user=user, group=user, check=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip


@contextmanager
def running() -> Generator[PostgresServer]:
    """Give a new server, and remove it at the end."""
    place = programs()
    assert place is not None
    with tempfile.TemporaryDirectory(prefix="checkpoints-postgres-") as folder:
        data = Path(folder) / "data"
        if os.getuid() == 0:
            its = pwd.getpwnam("postgres")
            os.chown(folder, its.pw_uid, its.pw_gid)
        run(str(place / "initdb"), "-D", str(data), "-U", ADMIN, "-A", "trust", "-N", "-E", "UTF8")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        server = PostgresServer(port, data, place)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def cutting(port: int, after: int) -> Generator[int]:
    """Give the port of a way to a server that is cut after so many bytes towards it."""

    def carry(near: socket.socket, far: socket.socket, left: int | None) -> None:
        with suppress(OSError):
            while (left is None or left > 0) and (data := near.recv(1 << 16)):
                far.sendall(data[:left])
                left = None if left is None else left - len(data)
        for each in (near, far):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            with suppress(OSError):
                near, _ = door.accept()
                with near, socket.create_connection(("127.0.0.1", port)) as far:
                    back = threading.Thread(target=carry, args=(far, near, None))
                    back.start()
                    carry(near, far, after)
                    back.join()

        thread = threading.Thread(target=serve)
        thread.start()
        yield door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)
        thread.join()
