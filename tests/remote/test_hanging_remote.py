"""A server that accepts connections and never answers: nothing here waits for it (TEA-6)."""

import json
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from codex_checkpoints.storage.remote.contract import RemoteUnreachable
from codex_checkpoints.storage.remote.postgres import PostgresHistoryStore
from peer import Peer
from two_machines import Machines

SOON = 5.0
"""Seconds; the limit of the socket is 40."""


@pytest.fixture
def silent() -> Generator[socket.socket]:
    """Give a listening socket; the system accepts connections, and nobody reads them."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def address_of(silent: socket.socket) -> str:
    return f"postgresql://ana@127.0.0.1:{silent.getsockname()[1]}/codex"


@pytest.fixture
def peer(machines: Machines, silent: socket.socket) -> Generator[Peer]:
    """Start the language server of a machine whose remote does not answer."""
    choice = machines.here.state / "remote.json"
    choice.write_text(json.dumps(json.loads(choice.read_text()) | {"place": address_of(silent)}))
    with Peer(machines.here.root, env=machines.here.environment()) as started:
        started.start()
        yield started


@contextmanager
def asked(peer: Peer, silent: socket.socket, method: str) -> Generator[int]:
    """Give the id of a request that waits for the remote, which keeps the connection."""
    number = peer.ask(f"checkpoints/{method}", {})
    silent.settimeout(SOON)
    connected, _ = silent.accept()
    with connected:
        assert connected.recv(1), "the login"
        yield number


@pytest.mark.parametrize("method", ["remoteSessions", "remoteStatus"])
def test_language_server_ends_soon_while_its_remote_hangs(
    peer: Peer, silent: socket.socket, method: str
) -> None:
    with asked(peer, silent, method):
        begun = time.monotonic()
        peer.answer(peer.ask("shutdown"))
        peer.notify("exit")
        assert peer.process.wait(SOON) == 0
        assert time.monotonic() - begun < SOON


def test_cancelled_request_of_a_hanging_remote_is_answered_at_once(
    peer: Peer, silent: socket.socket
) -> None:
    with asked(peer, silent, "remoteSessions") as number:
        begun = time.monotonic()
        peer.notify("$/cancelRequest", {"id": number})
        peer.answer(number)
        assert time.monotonic() - begun < SOON
    assert peer.call("checkpoints/sessions", {})["items"] == [], "and other requests go on"


def test_interrupted_store_fails_now_and_later(silent: socket.socket) -> None:
    store = PostgresHistoryStore(address_of(silent))
    timer = threading.Timer(0.2, store.interrupt)
    timer.start()

    begun = time.monotonic()
    for _ in range(2):
        with pytest.raises(RemoteUnreachable):
            store.is_made()
    assert time.monotonic() - begun < SOON
    store.close()
