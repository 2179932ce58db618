"""The checkpoint and the view of a session."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from attrs import frozen

from codex_checkpoints.core.checkpoint.records import Caps as EffectiveCaps
from codex_checkpoints.operations.services import Services


@frozen
class ShowParams:
    """A session, and a turn for the state at its end."""

    session_id: str
    turn_id: str | None = None


@frozen
class ViewParams:
    """A session, a turn of it, and caps by name that override the effective ones."""

    session_id: str
    turn_id: str | None = None
    caps: dict[str, Any] | None = None


@frozen
class CheckpointText:
    """A checkpoint, and the uris of files in it that are not what the session saw.

    `edited` are those of files that the session itself changed; `seenIn` has, by uri, the number of
    the turn in which it read or changed a file last.
    """

    text: str
    changed: tuple[str, ...]
    edited: tuple[str, ...]
    seen_in: dict[str, int]


@frozen
class ViewText:
    """A view, and the caps it was made with."""

    text: str
    caps: EffectiveCaps


def show(services: Services, params: ShowParams) -> CheckpointText:
    """Return the bytes of a checkpoint, and which of its files changed."""
    shown = services.sessions.show(params.session_id, params.turn_id)
    if shown.changed:
        services.changed((shown.session_id,), "rollout")
    services.shown(shown.session_id)
    files = [each for each in shown.checkpoint.artifacts.values() if each.kind == "file"]
    changed = tuple(sorted(each.uri for each in files if each.is_changed))
    state = services.sessions.open(params.session_id)[1].now().state
    known, opened = state.observations.files(), [turn.opened_seq for turn in state.turns.counting()]
    edits = {uri: each.edited for uri, each in known.items()}
    edited = (each.uri for each in files if 0 <= edits.get(each.uri, -1) <= shown.checkpoint.seq)
    turns = {each.uri: bisect_right(opened, each.last_observed_seq) for each in files}
    seen_in = {uri: turn for uri, turn in turns.items() if turn}
    return CheckpointText(shown.data.decode(), changed, tuple(sorted(edited)), seen_in)


def view(services: Services, params: ViewParams) -> ViewText:
    """Return a view and the caps in force."""
    view = services.sessions.view(params.session_id, params.turn_id, params.caps)
    if view.of.changed:
        services.changed((view.of.session_id,), "rollout")
    services.shown(view.of.session_id)
    return ViewText(view.text, view.caps)
