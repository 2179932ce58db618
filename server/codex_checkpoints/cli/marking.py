"""The commands about markers and pins."""

from __future__ import annotations

import argparse

from codex_checkpoints.cli.commands import (
    A_TURN,
    JSON,
    MARKER,
    SESSION,
    Commands,
    answer,
    asks,
    one_of,
    report,
    value,
)
from codex_checkpoints.cli.opening import Terminal
from codex_checkpoints.operations import marking
from codex_checkpoints.presentation import restores as texts
from codex_checkpoints.presentation.terminal import plain

_PATH = "a file in the session's folder, or lines of it: src/a.py#L3-L9"


_TO_PIN = (
    value("path", "PATH", _PATH, nargs="?"),
    value("--message", "REF", "a message: #120, its id, or t3 for the request of turn 3"),
    value("--note", "ID", "a note: the key of a fact, or the id of a decision"),
    value("--text", "TEXT", "a text of your own, one line"),
)


def add(commands: Commands) -> None:
    """Add the commands."""
    add = commands.add
    label = value("--label", "LABEL", "what to call it", required=True)
    turn = value("--turn", "TURN", f"{A_TURN}; by default the last one that ended", dest="turn_id")
    add("mark", "put a marker on a turn, to come back to", _mark, SESSION, JSON, label, turn)
    add("marks", "list the markers of a session", _marks, SESSION, JSON)
    add("unmark", "remove a marker", _unmark, SESSION, JSON, MARKER)
    label = value("label", "LABEL", "what to call it from now on")
    add("relabel", "give a marker another label", _relabel, SESSION, JSON, MARKER, label)
    about = "pin something for digests and state packs, or list what is pinned"
    add("pin", about, _pin, SESSION, JSON, one_of(*_TO_PIN))
    add("unpin", "remove a pin", _unpin, SESSION, JSON, one_of(*_TO_PIN, required=True))


_mark = asks(marking.mark, texts.marker_lines)


_relabel = asks(marking.relabel, texts.marker_lines)


_marks = asks(marking.marks, texts.markers_lines)


_unpin = asks(marking.unpin, texts.pin_lines)


def _pin(options: argparse.Namespace, services: Terminal) -> int:
    named = (options.path, options.message, options.note, options.text)
    operation = marking.pins if named == (None,) * 4 else marking.pin
    return answer(options, services, operation, texts.pin_lines)


def _unmark(options: argparse.Namespace, services: Terminal) -> int:

    gone = marking.taken_away(
        services, marking.UnmarkParams(options.session_id, options.checkpoint_id)
    )
    record = marking.Unmarked(gone.session_id, gone.checkpoint_id, removed=True)
    return report(options, record, [plain(f"removed: {gone.label}")])
