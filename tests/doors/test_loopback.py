"""`serve --tcp`: who may speak to a server that listens on a port of this machine."""

import json
import re
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from homes import WAIT, Home, chat, thread

TAKEN = b""
"""What a client reads whose connection is closed without an answer."""


class Listening:
    """A server that listens on a port, and the token that it printed."""

    def __init__(self, home: Home) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.process = home.start("serve", "--tcp", str(self.port))
        self.token = self._printed()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), WAIT)

    def said_to(self, data: bytes) -> bytes:
        """Return all that is answered to these bytes until the server closes the connection."""
        with self.connect() as client:
            client.sendall(data)
            answer = b""
            try:
                while more := client.recv(65_536):
                    answer += more
            except ConnectionResetError:
                pass
            return answer

    def _printed(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(rb"must be: (\S{32,})$", line.rstrip())
            if found is not None:
                return found[1].decode()
        raise AssertionError("no token")


@contextmanager
def listening(home: Home) -> Generator[Listening]:
    server = Listening(home)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.put(chat("one"))
    return home


@pytest.fixture
def server(home: Home) -> Generator[Listening]:
    with listening(home) as server:
        yield server


def framed(*messages: dict[str, object]) -> bytes:
    bodies = (json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages)
    return b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies)


INITIALIZE: dict[str, object] = {"id": 1, "method": "initialize", "params": {"capabilities": {}}}


def export(to: Path) -> dict[str, object]:
    params = {"sessionId": thread(1), "to": str(to)}
    return {"id": 2, "method": "checkpoints/export", "params": params}


def test_client_with_the_token_is_served_and_nobody_after_it(server: Listening) -> None:
    with server.connect() as client, client.makefile("rwb") as stream:
        stream.write(server.token.encode() + b"\n" + framed(INITIALIZE))
        stream.flush()
        assert stream.readline().startswith(b"Content-Length")
        with pytest.raises(ConnectionRefusedError):
            server.connect()
    assert server.process.wait(WAIT) == 0


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_first_requests_may_come_with_the_token(server: Listening, end: bytes) -> None:
    done = framed(INITIALIZE, {"id": 2, "method": "shutdown"}, {"method": "exit"})

    told = server.said_to(server.token.encode() + end + done)

    assert b'"serverInfo"' in told
    assert told.count(b"Content-Length") == 2


@pytest.mark.parametrize(
    "request_line",
    [
        *(f"{verb} / HTTP/1.1" for verb in ("GET", "POST", "PUT", "OPTIONS", "DELETE", "PATCH")),
        "POST /{token} HTTP/1.1",
        "{token} / HTTP/1.1",
        "GET http://rebound.example/ HTTP/1.1",
        "CONNECT 127.0.0.1:1 HTTP/1.1",
        "PRI * HTTP/2.0",
        "Content-Length: {length}",
        "",
        "x" * 100_000,
        "\x16\x03\x01\x02",
    ],
    ids=lambda line: line[:24],
)
def test_web_page_is_not_a_client(server: Listening, tmp_path: Path, request_line: str) -> None:
    """A page of any origin can have its browser send this, also by a name bound to this address."""
    pack = tmp_path / "pack.jsonl"
    body = framed(INITIALIZE, export(pack))
    line = request_line.format(token=server.token, length=len(body))
    headers = b"Host: rebound.example\r\nOrigin: https://page.example\r\n"
    page = line.encode() + b"\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body

    assert server.said_to(page) == TAKEN
    assert server.said_to(body) == TAKEN
    assert not pack.exists()
    assert server.process.poll() is None
    # A client with the token is still served.
    ended = framed(INITIALIZE, {"id": 2, "method": "shutdown"}, {"method": "exit"})
    assert b'"serverInfo"' in server.said_to(server.token.encode() + b"\n" + ended)


@pytest.mark.parametrize("change", ["", "first", "last", "longer", "shorter"])
def test_wrong_token_is_refused(server: Listening, change: str) -> None:
    token = server.token
    wrong = {
        "": "",
        "first": ("a" if token[0] != "a" else "b") + token[1:],
        "last": token[:-1] + ("a" if token[-1] != "a" else "b"),
        "longer": token + "a",
        "shorter": token[:-1],
    }[change]

    assert server.said_to(wrong.encode() + b"\n" + framed(INITIALIZE)) == TAKEN


def test_token_is_new_each_time_and_no_other_user_can_read_it(home: Home) -> None:
    with listening(home) as one, listening(home) as other:
        assert one.token != other.token
        seen = subprocess.run(
            ["ps", "-e", "-o", "args"], capture_output=True, check=False, text=True
        ).stdout
        assert one.token not in seen
        for path in home.root.rglob("*"):
            assert not path.is_file() or one.token.encode() not in path.read_bytes()


def test_request_before_initialize_is_refused_even_with_the_token(
    server: Listening, tmp_path: Path
) -> None:
    pack = tmp_path / "pack.jsonl"
    ended = framed(export(pack), {"method": "exit"})

    told = server.said_to(server.token.encode() + b"\n" + ended)

    assert orjson.loads(told.partition(b"\r\n\r\n")[2])["error"]["code"] == -32002
    assert not pack.exists()
