"""Runs for Codex's hooks: one JSON object on stdin, an answer or nothing on stdout.

A person waits for their turn while this runs, so no failure may break it: the exit code is always 0
and nothing is printed.  A failure is recorded, and `connect --status` reports it.

If files are copied (`fileCopies`), Codex calls it before each tool.  Such a call opens no session,
so the modules for sessions are imported lazily.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

import orjson

from codex_checkpoints.codex import IN_SCRATCH
from codex_checkpoints.core.fields import object_of
from codex_checkpoints.core.files.copies import NOTE_EVENTS, NoteEvent
from codex_checkpoints.doors.folder_options import folders_in
from codex_checkpoints.places import Places, places_of, settings_of
from codex_checkpoints.service.connect.hook_calls import Call, Event, note_failure
from codex_checkpoints.service.files import copies
from codex_checkpoints.service.files.copies import ToolUse
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.storage import records
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.records import Records

SECONDS = 15.0
"""Timeout after which the process ends; Codex itself would wait longer."""

SECONDS_TO_COPY = 3.0
"""The same for copying files: each tool waits for it."""

LONGEST = 1 << 23
"""Bytes of a call, which may hold a whole prompt."""

SECONDS_TO_NOTE = 2.0
_LONGEST_WORD = 64
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
_SILENT = frozenset({"startup", "clear"})
"""Sources of a session that is still empty (AGN-1)."""

_EVENTS: tuple[Event, ...] = ("SessionStart", "PreCompact", "PostCompact")


class Failed(Exception):
    """A call that could not be answered; the text is a code and quotes nothing of the call."""


class HookCall:
    """One call."""

    def __init__(self, codex_home: str | None, state_dir: str | None, stdout: int) -> None:
        self._folders = (codex_home, state_dir)
        self._stdout = stdout
        self._call: Call | ToolUse | None = None
        self._decided = threading.Lock()
        """Taken by the answer or by the timeout, whichever comes first."""
        self._gave_up = False

    def give_up(self) -> None:
        """End the process; record a timeout unless the answer is out already."""
        if self._decided.acquire(blocking=False):
            self._gave_up = True
            noting = threading.Thread(target=self._note, args=("timed_out", None), daemon=True)
            noting.start()
            noting.join(SECONDS_TO_NOTE)
        os._exit(0)

    def serve(self, data: bytes) -> None:
        """Answer a call; record a failure."""
        try:
            self._serve(data)
        except Exception as error:  # noqa: BLE001 - no failure may break a turn
            if not self._gave_up:
                self._note(_code_of(error), error)

    def _serve(self, data: bytes) -> None:
        call = self._call = call_of(data)
        match call:
            case None:
                pass
            case ToolUse():
                self._copy(call)
            case Call():
                self._answer(call)

    def _copy(self, use: ToolUse) -> None:
        """Copy the files that a tool is about to write."""
        watch = threading.Timer(SECONDS_TO_COPY, self.give_up)
        watch.daemon = True
        watch.start()
        state_dir = self._places().state_dir
        settings, _ = settings_of(state_dir)
        if settings.file_copies != "off":
            copies.note(Records(state_dir), use, settings.file_copies)
        watch.cancel()

    def _answer(self, call: Call) -> None:
        """Answer a call about a window."""
        from codex_checkpoints import assembly
        from codex_checkpoints.service.connect.hook_handler import HookHandler

        sessions = assembly.assemble(self._places()).sessions
        sessions.projections.follows = True
        try:
            hooking = HookHandler(sessions)
            given = hooking.answer(call)
            if not self._decided.acquire(blocking=False):
                return  # it timed out, which is recorded
            if given.text is not None:
                _write(self._stdout, answer_of(call.event, given.text))
            hooking.confirm(given)
        finally:
            sessions.close()

    def _note(self, code: str, error: Exception | None) -> None:
        """Record a failure; if that fails, report it on stderr, which Codex does not show."""
        kind = None if error is None or code != "internal" else type(error).__name__
        call = self._call
        try:
            failure = {
                "at": records.now(),
                "event": None if call is None else call.event,
                "sessionId": None if call is None else call.session,
                "code": code,
                "error": kind,
            }
            where = self._places()
            if _may_be_made(where):
                note_failure(Records(where.state_dir), failure)
        except Exception as another:  # noqa: BLE001 - the last resort
            _log(f"failure not recorded: {type(another).__name__}")
        _log(code if kind is None else f"{code}: {kind}")

    def _places(self) -> Places:
        return places_of(os.environ, os.path.expanduser("~"), *self._folders)


def call_of(data: bytes) -> Call | ToolUse | None:
    """Read a call; None if it needs no action.  Raises `Failed`."""
    if len(data) > LONGEST:
        raise Failed("limit_exceeded")
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise Failed("invalid_payload") from None
    if not isinstance(value, dict):
        raise Failed("invalid_payload")
    call = cast("Mapping[str, object]", value)
    name = _text(call, "hook_event_name")
    noted: NoteEvent | None = next((each for each in NOTE_EVENTS if each == name), None)
    event: Event | None = next((each for each in _EVENTS if each == name), None)
    source = _text(call, "source", "trigger")
    if (event or noted) is None or (event == "SessionStart" and source in _SILENT):
        return None
    if "transcript_path" in call and call["transcript_path"] is None:
        return None  # Codex keeps no file of this session
    # For a sub-agent `session_id` is the session that it works for, and `agent_id` its own.
    whose = "session_id" if call.get("agent_id") is None else "agent_id"
    session, transcript = _text(call, whose), _text(call, "transcript_path")
    if _ID.fullmatch(session) is None or not transcript or "\0" in transcript:
        raise Failed("invalid_payload")
    if event is not None:
        return Call(event, session.lower(), transcript, source[:_LONGEST_WORD])
    return None if noted is None else _tool_use(call, noted, session.lower(), transcript)


def _tool_use(
    call: Mapping[str, object], event: NoteEvent, session: str, transcript: str
) -> ToolUse | None:
    """Read the call of a tool; None for a tool that gets neither a patch nor a script."""
    command = _text(object_of(call.get("tool_input")), "command")
    call_id, tool, folder = (_text(call, name) for name in ("tool_use_id", "tool_name", "cwd"))
    if not (command and call_id and folder):
        return None
    return ToolUse(event, session, transcript, call_id, tool, command, folder)


def answer_of(event: Event, text: str) -> bytes:
    """Return the answer for Codex, which refuses one with any other key."""
    output = {"hookEventName": event, "additionalContext": text}
    return orjson.dumps({"hookSpecificOutput": output})


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the command `hook` on its own, and end the process: the exit code is always 0."""
    gc.disable()  # the process ends before there is anything worth collecting
    folders = _as_written(arguments) or _parsed(arguments)
    if folders is not None:
        serve(*folders)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    # Codex waits for the end, and an orderly shutdown takes time.
    os._exit(0)


def _as_written(arguments: Sequence[str]) -> tuple[str | None, str | None] | None:
    """Read the options as `connect` writes them; None for any others."""
    pairs = dict(zip(arguments[::2], arguments[1::2], strict=False))
    known = pairs.keys() <= {"--codex-home", "--state-dir"}
    if len(arguments) % 2 or not known or any(path[:1] in {"", "-"} for path in pairs.values()):
        return None
    return pairs.get("--codex-home"), pairs.get("--state-dir")


def _parsed(arguments: Sequence[str]) -> tuple[str | None, str | None] | None:
    """Read the options as a person writes them; None if they are wrong, with a line on stderr."""
    about = "Answer one call of a Codex hook, on stdin and stdout."
    try:
        return folders_in("hook", about, arguments)
    except SystemExit:
        return None  # another code would stop a prompt


def serve(codex_home: str | None, state_dir: str | None) -> int:
    """Answer the call on stdin; return 0."""
    if sys.stdin is None or sys.stdout is None or os.environ.get(IN_SCRATCH):
        return 0  # a scratch fork is of no interest
    door = HookCall(codex_home, state_dir, sys.stdout.fileno())
    sys.stdout = sys.stderr  # a stray print must not reach Codex
    watch = threading.Timer(SECONDS, door.give_up)
    watch.daemon = True
    watch.start()
    with contextlib.suppress(KeyboardInterrupt):
        door.serve(sys.stdin.buffer.read(LONGEST + 1))
    watch.cancel()
    return 0


def _may_be_made(where: Places) -> bool:
    """Return whether the state folder may be written: a missing home is not created for it."""
    inside = where.state_dir.startswith(os.path.join(where.codex_home, ""))
    return os.path.isdir(where.codex_home) or not inside


def _text(call: Mapping[str, object], *names: str) -> str:
    """Return the first of some fields that is a text; else an empty one."""
    found = (call.get(name) for name in names)
    return next((value for value in found if isinstance(value, str)), "")


def _code_of(error: Exception) -> str:
    match error:
        case Failed():
            return str(error)
        case Refusal():
            return error.code
        case StorageError():
            return "storage_error"
        case BrokenPipeError():
            return "not_taken"
        case _:
            return "internal"


def _write(stdout: int, data: bytes) -> None:
    while data:
        data = data[os.write(stdout, data) :]


def _log(text: str) -> None:
    with contextlib.suppress(Exception):
        sys.stderr.write(f"codex-checkpoints hook: {text}\n")
