"""Runs the commands about markers and pins."""

from __future__ import annotations

import argparse

from codex_checkpoints.doors.cli.commands import (
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
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import restore as texts
from codex_checkpoints.operations import markers
from codex_checkpoints.sections.terminal import plain

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
    label = value("--label", "LABEL", "the name of the marker", required=True)
    turn = value("--turn", "TURN", f"{A_TURN}; by default the last one that ended", dest="turn_id")
    add("mark", _mark, SESSION, JSON, label, turn)
    add("marks", _marks, SESSION, JSON)
    add("unmark", _unmark, SESSION, JSON, MARKER)
    label = value("label", "LABEL", "the new name")
    add("relabel", _relabel, SESSION, JSON, MARKER, label)
    add("pin", _pin, SESSION, JSON, one_of(*_TO_PIN))
    add("unpin", _unpin, SESSION, JSON, one_of(*_TO_PIN, required=True))


_mark = asks(markers.mark, texts.marker_lines)


_relabel = asks(markers.relabel, texts.marker_lines)


_marks = asks(markers.marks, texts.markers_lines)


_unpin = asks(markers.unpin, texts.pin_lines)


def _pin(options: argparse.Namespace, services: Terminal) -> int:
    named = (options.path, options.message, options.note, options.text)
    operation = markers.pins if named == (None,) * 4 else markers.pin
    return answer(options, services, operation, texts.pin_lines)


def _unmark(options: argparse.Namespace, services: Terminal) -> int:

    gone = markers.taken_away(
        services, markers.UnmarkParams(options.session_id, options.checkpoint_id)
    )
    record = markers.Unmarked(gone.session_id, gone.checkpoint_id, removed=True)
    return report(options, record, [plain(f"removed: {gone.label}")])
