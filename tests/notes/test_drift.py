"""The server reports edits off the plan once, to clients that asked for it (DSC-68)."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from homes import WAIT, Home, chat, more, thread
from peer import Peer
from rollouts import Form, Step, patch, plan, rollout, session, shell, turn, user

FORMS: tuple[Form, ...] = ("paginated", "legacy")
BEGUN = turn(
    user("Add token refresh"),
    plan(("Write the login", False)),
    patch(add="src/auth.py"),
)


class Listener:
    """A client that listens while one session goes on."""

    def __init__(self, home: Home, form: Form, peer: Peer) -> None:
        self._home, self._form, self._peer = home, form, peer
        self._come = 1
        self._told: list[dict[str, Any]] = []

    def goes_on(self, *steps: Step) -> None:
        """Append a turn to the session."""
        ordinal = self._home.path().read_bytes().count(b"\n")
        asked = turn(user("Go on", ref=f"m{ordinal}"), *steps, name=f"n{ordinal}")
        with self._home.path().open("ab") as file:
            file.write(more(asked, thread=thread(1), ordinal=ordinal, form=self._form))

    def told(self) -> list[list[str]]:
        """Return the files of each notice about what was appended since the last time."""
        # Of one look all changes are told before what strayed: the second newcomer is told after.
        for _ in range(2):
            self._wait_for_another()
        told, self._told = self._told, []
        assert {each["sessionId"] for each in told} <= {thread(1)}
        return [each["uris"] for each in told]

    def _wait_for_another(self) -> None:
        self._come += 1
        self._home.put(chat("Hello", self._come), self._come)
        while True:
            message = self._peer.notifications.get(timeout=WAIT)
            if message["method"] == "checkpoints/strayed":
                self._told.append(message["params"])
            elif thread(self._come) in message["params"]["sessionIds"]:
                return


@contextmanager
def listening(home: Home, form: Form, *, settings: object) -> Generator[Listener]:
    head = session(form, thread=thread(1))
    home.put(rollout(head, BEGUN))
    with Peer(home.root) as peer:
        peer.start({"settings": settings})
        listener = Listener(home, form, peer)
        assert listener.told() == []
        yield listener
        assert peer.stop() == 0


@pytest.mark.parametrize("form", FORMS)
def test_edit_off_the_plan_is_reported_once_and_a_related_one_never(home: Home, form: Form):
    with listening(home, form, settings={"driftGuard": True}) as session:
        session.goes_on(
            patch(add="src/session.py", call="a1"), patch(add="web/login.html", call="a2")
        )
        assert session.told() == []

        session.goes_on(
            patch(add="docs/install.md", call="a3"), patch(add="src/token.py", call="a4")
        )
        assert session.told() == [["docs/install.md"]]

        session.goes_on(
            patch(update="docs/install.md", call="a5"), patch(add="docs/other.md", call="a6")
        )
        assert session.told() == []


def test_file_that_was_only_read_is_not_drift(home: Home):
    with listening(home, "paginated", settings={"driftGuard": True}) as session:
        session.goes_on(shell("cat docs/install.md", "hello", reads=["docs/install.md"], call="a9"))
        assert session.told() == []

        # Nothing speaks of it but the edit itself, even where it is read again at once.
        session.goes_on(
            patch(add="etc/a.cfg", call="a7"),
            shell("cat etc/a.cfg", "a", reads=["etc/a.cfg"], call="a10"),
        )
        assert session.told() == [["etc/a.cfg"]]


def test_drift_is_reported_only_on_request(home: Home):
    with listening(home, "paginated", settings={}) as session:
        session.goes_on(patch(add="docs/install.md", call="a8"))
        assert session.told() == []
