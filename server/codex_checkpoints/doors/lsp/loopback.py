"""Accepts one client on a loopback port that knows the token of this start (`serve --tcp`).

Whoever can open a socket on this machine can connect: another user, and a web page, whose browser
sends a request to any address and port.  So nothing is parsed before the token has come, which only
the terminal of the start shows.  It is not in the arguments or the environment, which other users
can read, and it is new for each start.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import sys
import time
from collections.abc import Generator
from typing import BinaryIO

HOST = "127.0.0.1"
_TOKEN_BYTES = 24
_SECONDS = 5.0
"""Timeout in seconds for a client's token; meanwhile no other client is accepted."""


@contextlib.contextmanager
def client(port: int) -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Wait for a client that sends the token as its first line; yield its streams.

    Any other connection is closed without an answer.  Raises `OSError` for a port that is taken.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with socket.create_server((HOST, port)) as listener:
        print(f"waiting for a client on {HOST}:{port}", file=sys.stderr)  # noqa: T201 - a door
        print(f"the first line that it sends must be: {token}", file=sys.stderr, flush=True)  # noqa: T201 - a door
        connection = _first_with(token, listener)
    with (
        connection,
        connection.makefile("rb") as reader,
        connection.makefile("wb") as writer,
    ):
        yield reader, writer


def _first_with(token: str, listener: socket.socket) -> socket.socket:
    while True:
        try:
            connection, _ = listener.accept()
        except ConnectionError:  # it went before it was accepted
            continue
        with contextlib.suppress(OSError):  # it took too long, or is gone
            line = _first_line(connection, len(token) + len(b"\r\n"))
            if secrets.compare_digest(line.removesuffix(b"\r"), token.encode()):
                connection.settimeout(None)
                return connection
        connection.close()


def _first_line(connection: socket.socket, most: int) -> bytes:
    """Return the first line without its LF; no byte after it is read."""
    line = b""
    end = time.monotonic() + _SECONDS
    while len(line) < most:
        connection.settimeout(max(end - time.monotonic(), 0.001))
        byte = connection.recv(1)
        if byte in {b"", b"\n"}:
            break
        line += byte
    return line
