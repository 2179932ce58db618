"""Edits off the plan are told by the server, once, to whoever asked for it (DSC-68)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from homes import Home, more, thread
from peer import Peer
from rollouts import Form, Step, patch, plan, rollout, session, shell, turn, user

ON: Mapping[str, object] = {"settings": {"driftGuard": True}}
FORMS: tuple[Form, ...] = ("paginated", "legacy")
BEGUN = (turn(user("Add token refresh"), plan(("Write src/auth.py", False)), patch(add="src/auth.py")),)


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return request.param


@pytest.fixture
def home(tmp_path: Path, form: Form) -> Home:
    """Hold a session that has a plan, and has worked on one file of it."""
    home = Home(tmp_path)
    home.put(rollout(session(form, thread=thread(1), cwd=str(home.user)), *BEGUN))
    return home


class Session:
    """A session that goes on, and a client that listens."""

    def __init__(self, home: Home, form: Form, peer: Peer, options: object) -> None:
        self._home, self._form, self._peer = home, form, peer
        self._said = 0
        peer.start(options)
        peer.call("checkpoints/show", {"sessionId": thread(1)})
        self._heard_of("begun")  # from here on it is followed

    def goes_on(self, *steps: Step) -> list[dict[str, Any]]:
        """Append a turn; return what the client was told of edits until it heard of the turn."""
        self._said += 1
        return self._heard_of(f"go on, {self._said}", *steps)

    def _heard_of(self, text: str, *steps: Step) -> list[dict[str, Any]]:
        ordinal = self._home.path().read_bytes().count(b"\n")
        asked = turn(*steps, user(text, ref=f"m-{text}"), name=f"n-{text}")
        with self._home.path().open("ab") as file:
            file.write(more(asked, thread=thread(1), ordinal=ordinal, form=self._form))
        self._fence(text)
        strayed: list[dict[str, Any]] = []
        while not self._peer.notifications.empty():
            message = self._peer.notifications.get()
            if message["method"] == "checkpoints/strayed":
                strayed.append(message["params"])
        return strayed

    def _fence(self, text: str) -> None:
        """Wait until a session that came later is told of: the follower goes through it in order."""
        number = 100 + self._said
        while True:
            shown = self._home.stored()
            if shown is not None and shown["task"]["text"] == text:
                break
            self._peer.heard("checkpoints/changed")
        self._home.put(rollout(session(thread=thread(number)), turn(user(text))), number)
        kept: list[dict[str, Any]] = []
        while True:
            message = self._peer.notifications.get(timeout=20)
            if message["method"] == "checkpoints/strayed":
                kept.append(message)
            elif thread(number) in message["params"]["sessionIds"]:
                break
        for message in kept:
            self._peer.notifications.put(message)
