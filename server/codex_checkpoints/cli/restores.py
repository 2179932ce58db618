"""The commands about markers, pins, hints, restores and portable files."""

from __future__ import annotations

import argparse
import os

from codex_checkpoints.cli.commands import (
    A_TURN,
    ANY_SESSION,
    JSON,
    MARKER,
    OF_OURS,
    REFUSED,
    SESSION,
    Commands,
    Later,
    answer,
    ask,
    asks,
    count,
    flag,
    one_of,
    report,
    value,
    whole,
    wrong,
)

TYPE_CHECKING = False  # `typing` takes long to load
if TYPE_CHECKING:
    from codex_checkpoints.cli.opening import Terminal
    from codex_checkpoints.presentation import restores as texts
else:
    texts = Later("presentation.restores")

_PATH = "a file in the session's folder, or lines of it: src/a.py#L3-L9"
_TO_PIN = (
    value("path", "PATH", _PATH, nargs="?"),
    value("--message", "REF", "a message: #120, its id, or t3 for the request of turn 3"),
    value("--note", "ID", "a note: the key of a fact, or the id of a decision"),
    value("--text", "TEXT", "a text of your own, one line"),
)


def add_marking(commands: Commands) -> None:
    """Add the commands about markers, pins and hints."""
    add = commands.add
    label = value("--label", "LABEL", "what to call it", required=True)
    turn = value("--turn", "TURN", f"{A_TURN}; by default the last one that ended", dest="turn_id")
    add("mark", "put a marker on a turn, to come back to", _mark, SESSION, JSON, label, turn)
    add("marks", "list the markers of a session", _marks, SESSION, JSON)
    add("unmark", "take a marker away", _unmark, SESSION, JSON, MARKER)
    label = value("label", "LABEL", "what to call it from now on")
    add("relabel", "give a marker another label", _relabel, SESSION, JSON, MARKER, label)
    about = "pin something for digests and state packs, or list what is pinned"
    add("pin", about, _pin, SESSION, JSON, one_of(*_TO_PIN))
    add("unpin", "take a pin away", _unpin, SESSION, JSON, one_of(*_TO_PIN, required=True))
    about = "store or list an agent's verdicts on the artifacts it was given"
    items = value("items", "JSON", '[{"uri": …, "verdict": …}, …]', nargs="?")
    add("hints", about, _hints, SESSION, items, JSON)


def add_restoring(commands: Commands) -> None:
    """Add the commands about restores."""
    add = commands.add
    about = "soft continues with context, hard resets the context for performance"
    mode = value("--mode", None, about, choices=("soft", "hard"), required=True)
    about = "how large the state pack of a hard restore may be"
    budget = value("--budget", "TOKENS", about, type=count)
    about = "include your last N messages in a hard restore, 0 to 5; 3 unless you say"
    window = value("--window", "N", about, type=whole, default=3)
    about = "add a digest of so many tokens to a hard restore"
    digest = value("--digest-tokens", "N", about, type=whole, default=0)
    reason = value("--reason", "TEXT", "why, for the state pack and the record")
    dry_run = flag("--dry-run", "only show what it would do")
    about = "open a branch at a marker; the session itself does not change"
    choices = (mode, budget, window, digest, reason, dry_run)
    add("restore", about, _restore, SESSION, MARKER, JSON, *choices)
    session = value("session_id", "SESSION", OF_OURS, nargs="?")
    add("restores", "list the restores of a session, or all", _restores, session, JSON)
    operation = value("operation_id", "OPERATION", "its id; `restores` lists them")
    add("restore-details", "print everything about a restore", _details, operation, JSON)
    about = "show the tree of sessions to which a session belongs"
    add("lineage", about, _lineage, SESSION, JSON)
    about = "of this session, as source or branch"
    session = value("--session", "SESSION", about, dest="session_id")
    about = "of this operation, by its whole id"
    operation = value("--operation", "OPERATION", about, dest="operation_id")
    add("audit", "list the events of the audit log", _audit, session, operation, JSON)
    add(
        "verify",
        "check that the records of operations are unchanged; exit code 1 with findings",
        _verify,
        JSON,
    )


def add_portable(commands: Commands) -> None:
    """Add `export` and `import`."""
    file = value("file", "FILE", "the file to write", type=os.path.abspath)
    force = flag("--force", "replace a file that is there")
    dry_run = flag("--dry-run", "only show what it would hold")
    about = "write what a session knows to a portable file"
    commands.add("export", about, _export, ANY_SESSION, file, force, dry_run, JSON)
    file = value("file", "FILE", "the file to read", type=os.path.abspath)
    cwd = value("--cwd", "DIR", "the folder of the session", default=".")
    dry_run = flag("--dry-run", "only show what it would do")
    about = "make a session from a portable file, for a folder of this machine"
    commands.add("import", about, _import, file, cwd, dry_run, JSON)


_mark = asks("marking.mark", texts.marker_lines)
_relabel = asks("marking.relabel", texts.marker_lines)
_marks = asks("marking.marks", texts.markers_lines)
_unpin = asks("marking.unpin", texts.pin_lines)
_restores = asks("restores.restores", texts.restore_lines)
_details = asks("restores.restore_details", texts.detail_lines)
_lineage = asks("restores.lineage", texts.lineage_lines)
_audit = asks("restores.audit", texts.event_lines)
_export = asks("portable.export", texts.exported_lines)
_import = asks("portable.make", texts.imported_lines)


def _verify(options: argparse.Namespace, services: Terminal) -> int:
    found = ask(options, services, "restores.verify")
    done = report(options, found, texts.verify_lines(found))
    return REFUSED if found.findings else done


def _unmark(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import Unmarked, UnmarkParams, taken_away
    from codex_checkpoints.presentation.terminal import plain

    gone = taken_away(services, UnmarkParams(options.session_id, options.checkpoint_id))
    record = Unmarked(gone.session_id, gone.checkpoint_id, removed=True)
    return report(options, record, [plain(f"removed: {gone.label}")])


def _pin(options: argparse.Namespace, services: Terminal) -> int:
    named = (options.path, options.message, options.note, options.text)
    operation = "marking.pins" if named == (None,) * 4 else "marking.pin"
    return answer(options, services, operation, texts.pin_lines)


def _hints(options: argparse.Namespace, services: Terminal) -> int:
    import orjson

    from codex_checkpoints import wire
    from codex_checkpoints.operations.marking import HintsParams

    if options.items is not None:
        try:
            items = {"sessionId": options.session_id, "items": orjson.loads(options.items)}
            options.items = wire.structure(items, HintsParams).items
        except wire.BadParams as error:
            raise wrong("; ".join(error.problems)) from None
        except ValueError:
            raise wrong("the hints are not JSON") from None
    return answer(options, services, "marking.hints", texts.hint_lines)


def _restore(options: argparse.Namespace, services: Terminal) -> int:
    operation = "restores.restore_preview" if options.dry_run else "restores.restore"
    return answer(options, services, operation, texts.restored_lines)
