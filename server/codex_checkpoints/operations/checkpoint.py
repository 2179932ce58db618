"""Returns the checkpoint and the view of a session."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from codex_checkpoints.core.checkpoint.recent_artifacts import (
    RecentArtifact,
    plan_origin,
    recent_artifacts,
)
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
    """A checkpoint, and its description for people.

    `changed` are the uris of files that changed since the session saw them.  `planOrigin` says
    which turn the plan is from, as `from turn 9`, and is empty for the newest turn.  `recent` are
    the recent artifacts: files first, then commands, then tool outputs.
    """

    text: str
    changed: tuple[str, ...]
    plan_origin: str
    recent: tuple[RecentArtifact, ...]


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
    checkpoint, opened = shown.checkpoint, services.sessions.open(params.session_id)[1]
    state, updates = opened.now().state, services.sessions.projections.updates_of(opened)
    files = [each for each in checkpoint.artifacts.values() if each.kind == "file"]
    recent = [each.uri for each in files if each.uri in checkpoint.recent_artifacts]
    return CheckpointText(
        shown.data.decode(),
        tuple(sorted(each.uri for each in files if each.is_changed)),
        plan_origin(checkpoint, state, updates),
        recent_artifacts(checkpoint, state, services.sessions.workspace.looks(state.base, recent)),
    )


def view(services: Services, params: ViewParams) -> ViewText:
    """Return a view and the caps in force."""
    view = services.sessions.view(params.session_id, params.turn_id, params.caps)
    if view.of.changed:
        services.changed((view.of.session_id,), "rollout")
    services.shown(view.of.session_id)
    return ViewText(view.text, view.caps)
