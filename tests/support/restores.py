"""Restores over a home: a session of three turns, its markers, and the branches made of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from codex_checkpoints.core.checkpoint.records import to_json
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.restore.plan import RestoreParams
from codex_checkpoints.service.restore.restore import RestoreResult, Restoring
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import records
from homes import Home, thread
from rollouts import (
    Form,
    Step,
    assistant,
    based_on,
    patch,
    rollout,
    session,
    shell,
    tokens,
    turn,
    user,
)

MODES: tuple[RestoreMode, ...] = ("soft", "hard")


def three_turns() -> tuple[Step, ...]:
    return (
        turn(user("Fix the login"), shell("cat a.py", "one", reads=["a.py"]), assistant("Read.")),
        turn(user("And the logout"), patch(add="b.py"), tokens(90_000)),
        turn(user("later-words"), assistant("Done.")),
    )


def put(home: Home, form: Form = "paginated", **where: Any) -> Path:  # noqa: ANN401 - as `Home.put`
    """Put the session, which works in the user's own folder."""
    (home.user / "a.py").write_text("one")
    (home.user / "b.py").write_text("x\n")
    head = session(form, thread=thread(1), cwd=str(home.user))
    return home.put(rollout(head, *three_turns()), **where)


def put_fork(home: Home, cwd: Path | None = None) -> Path:
    """Put a second session whose history begins with all of the first."""
    data = home.path().read_bytes()
    base = based_on(thread(1), len(data.splitlines()), len(data))
    head = session(thread=thread(2), cwd=str(cwd or home.user), history_base=base)
    return home.put(rollout(head, turn(user("In the fork"), assistant("Yes."), name="f1")), 2)


def marked(
    sessions: Sessions, session_id: str = thread(1), turn: str | None = "2", label: str = "here"
) -> str:
    """Mark a turn; return the id of the marker."""
    markers = Markers(sessions)
    return markers.mark(session_id, label, turn).marker.checkpoint_id


def restore(
    sessions: Sessions,
    marker: str,
    mode: RestoreMode,
    session_id: str = thread(1),
    *,
    now: Callable[[], str] = records.now,
    new_id: Callable[[], str] = records.new_id,
    **wish: Any,  # noqa: ANN401 - as `RestoreParams`
) -> RestoreResult:
    restoring = Restoring(sessions, now, new_id)
    return restoring.restore(RestoreParams(session_id, marker, mode, **wish))


def restored(
    sessions: Sessions, mode: RestoreMode, session_id: str = thread(1), turn: str | None = "2"
) -> RestoreResult:
    """Mark a turn and restore it."""
    return restore(sessions, marked(sessions, session_id, turn), mode, session_id)


def state(sessions: Sessions, session_id: str, turn: str | None = None) -> dict[str, Any]:
    """Return a checkpoint without its place in the session."""
    shown = to_json(sessions.show(session_id, turn).checkpoint)
    return {key: shown[key] for key in shown if key != "seq"}
