"""Connects to a PostgreSQL server, and turns its errors into those of a store."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection

from codex_checkpoints.core.fields import is_object, text_of
from codex_checkpoints.storage.remote.address import Address, BadAddress
from codex_checkpoints.storage.remote.contract import (
    RemoteError,
    RemoteFull,
    RemoteRefused,
    RemoteUnreachable,
)

CONNECT_SECONDS = 3.0
STATEMENT_SECONDS = 30
_ANSWER_SECONDS = STATEMENT_SECONDS + 10.0
"""The timeout of the socket: longer than the server's limit for a statement."""

SCHEMA = "codex_checkpoints"

_READ_ONLY = "25006"
"""The SQLSTATE of a write to a server that permits none, as a standby does."""


class ServerConnection:
    """A connection to a server that is opened lazily, and again after it was lost."""

    def __init__(self, address: Address, environment: Mapping[str, str] = os.environ) -> None:
        self.address = address
        self._environment = environment
        self._connection: Connection | None = None
        self._socket: socket.socket | None = None
        self._line: socket.socket | None = None
        """A second handle of the socket, since TLS takes over the first one."""
        self._is_interrupted = False

    def close(self) -> None:
        """Close the connection; the next statement opens a new one."""
        connection, self._connection = self._connection, None
        plain, self._socket = self._socket, None
        if connection is not None:
            with suppress(OSError, InterfaceError):  # the server is gone already
                connection.close()
        if plain is not None:
            _end(plain)
        self._close_line()

    def interrupt(self) -> None:
        """Make the running statement and all later ones fail, from any thread."""
        self._is_interrupted = True
        line = self._line
        if line is not None:
            with suppress(OSError):  # it is closed, or the server is gone
                line.shutdown(socket.SHUT_RDWR)

    def connected(self) -> Connection:
        """Return the open connection; raises `OSError`, `BadAddress`, and the driver's errors."""
        if self._connection is None:
            address = self.address
            plain = socket.create_connection((address.host, address.port), CONNECT_SECONDS)
            try:
                self._line = plain.dup()
                if self._is_interrupted:
                    self.interrupt()  # meanwhile: the login fails
                plain.settimeout(_ANSWER_SECONDS)
                self._connection = Connection(
                    address.user,
                    host=address.host,
                    database=address.database,
                    password=address.password(self._environment),
                    ssl_context=address.tls(),
                    sock=plain,
                    application_name="codex-checkpoints",
                    startup_params={
                        "statement_timeout": f"{STATEMENT_SECONDS}s",
                        "search_path": SCHEMA,
                    },
                )
            except BaseException:
                _end(plain)
                self._close_line()
                raise
            self._socket = plain
        return self._connection

    def _close_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    @contextmanager
    def working(self) -> Generator[Callable[..., list[Any]]]:
        """Give a function that runs a statement; a broken connection is reopened the next time."""
        try:
            with _as_remote_errors(self.address):
                yield partial(self.connected().run, me=self.address.user)
        except RemoteUnreachable:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Generator[Callable[..., list[Any]]]:
        """Give a function that runs a statement in a transaction, which an error rolls back."""
        with self.working() as run:
            run("begin")
            try:
                yield run
            except (DatabaseError, RemoteError):
                run("rollback")
                raise
            except BaseException:
                self.close()  # the server rolls the open transaction back
                raise
            run("commit")


def _end(plain: socket.socket) -> None:
    """Close a socket although the driver may keep a file of it, as after a lost connection."""
    descriptor = plain.detach()
    if descriptor >= 0:
        socket.close(descriptor)


@contextmanager
def _as_remote_errors(address: Address) -> Generator[None]:
    where = f"the PostgreSQL server at {address.host}"
    try:
        yield
    except BadAddress as error:
        raise RemoteRefused(str(error), RIGHTS) from error
    except (OSError, InterfaceError) as error:
        raise RemoteUnreachable(f"{where} cannot be reached: {_brief(error)}", _REACH) from error
    except DatabaseError as error:
        state, said = _state_of(error)
        match "" if state == _READ_ONLY else state[:2]:
            case "" | "28" | "42" | "3D" | "0L" | "0P":
                raise RemoteRefused(f"{where} refuses: {said}", RIGHTS) from error
            case "53":
                raise RemoteFull(f"{where} has no space left: {said}") from error
            case _:
                raise RemoteUnreachable(f"{where} failed: {said}", _REACH) from error


_REACH = "Check the address and the network, then try again; sessions here need no server."
RIGHTS = "Check the login and its teams; `docs/team.md` says how an admin adds a login."


def _state_of(error: DatabaseError) -> tuple[str, str]:
    """Return the SQLSTATE of an error and the server's message, without the values of a row."""
    given: object = error.args[0] if error.args else None
    if not is_object(given):
        return "", type(error).__name__
    return text_of(given.get("C")) or "", (text_of(given.get("M")) or "")[:200]


def _brief(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:200] or type(error).__name__
