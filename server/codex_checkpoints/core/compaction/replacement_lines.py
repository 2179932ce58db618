"""Makes the lines after which Codex sends a replacement (CKP-18, CKP-27, DSC-54).

They are appended to the session, or make a session of their own.  The store adds time stamps and
ordinals, and writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.history.items import Item
from codex_checkpoints.core.agents.codex.history.rebuild import Rebuild, choose
from codex_checkpoints.core.agents.codex.history.scan import FirstPass, HistoryScan
from codex_checkpoints.core.agents.codex.history.windows import Chain, begun
from codex_checkpoints.core.agents.codex.own_messages import UNDO
from codex_checkpoints.core.fields import Json, object_of, text_of, texts_of, whole_of

_USAGE = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)


@frozen
class RecordLine:
    """One line of a rollout without its envelope."""

    type: str
    payload: Json


@frozen
class TurnTime:
    """A time in two forms: UTC text with milliseconds and `Z`, and ms since 1970."""

    text: str
    ms: int


def moment_of(text: str) -> TurnTime:
    """Return both forms of a time from its text."""
    return TurnTime(text, round(datetime.fromisoformat(text).timestamp() * 1000))


@frozen
class Naming:
    """The task that names a new session in lists: its text, and ids for it (JUN-46)."""

    text: str
    turn_id: str
    item_id: str


@frozen
class NewSession:
    """A new session: the payload of its head, the lines after it, and its windows."""

    meta: Json
    lines: tuple[RecordLine, ...]
    chain: Chain


@frozen
class SourceSession:
    """The session that a new one continues.

    `head` is the payload of its `session_meta`, empty for files that have none.  `window` is the
    size of the window of its model; `settings` is the payload of its newest `turn_context`,
    `thread_settings` that of the newest `thread_settings_applied`.  `cwd` is the folder of its
    head, to which paths are relative; `folder` is its newest one.
    """

    session_id: str
    cwd: str
    head: Json
    window: int | None
    settings: Json | None = None
    folder: str | None = None
    thread_settings: Json | None = None

    @property
    def paginated(self) -> bool:
        """Return whether its lines have ordinals."""
        return self.head.get("history_mode") == "paginated"


def in_place(
    items: Sequence[Json],
    chain: Chain,
    after: int,
    last_token_count: Json | None,
    *,
    undo: bool = False,
) -> tuple[RecordLine, RecordLine]:
    """Return the two lines for a session: the replacement, then its size.

    `chain` ends with the new window.  `after` are the tokens in use from now on (rules, "Tokens");
    `last_token_count` is the payload of the newest `token_count` of the file; `undo` marks the
    record that undoes a compaction.
    """
    return compacted(items, chain, undo=undo), token_count(after, last_token_count)


def in_task(
    lines: tuple[RecordLine, ...], turn_id: str, window: int | None, at: TurnTime
) -> tuple[RecordLine, ...]:
    """Return lines as a task of their own, as Codex writes them for a manual compaction.

    `turn_id` is new.  The task has no message, so it is not a turn and no rollback counts it; it
    names no mode, so the mode of the turn before stays.
    """
    started, complete = (RecordLine("event_msg", each) for each in _task(turn_id, window, at))
    return (started, *lines, complete)


def compacted(items: Sequence[Json], chain: Chain, *, undo: bool = False) -> RecordLine:
    """Return the line of the replacement; old versions read its `message`.

    Unknown ids of windows are left out (WIN-6, WIN-9).
    """
    windows: dict[str, object] = {
        "window_number": chain.number,
        "first_window_id": chain.first,
        "previous_window_id": chain.previous,
        "window_id": chain.current,
    }
    known = {key: value for key, value in windows.items() if value is not None}
    message = "".join(texts_of(items[-1].get("content"))) if items else ""
    payload: dict[str, object] = {"type": UNDO} if undo else {}
    payload |= {"message": message, "replacement_history": list(items), **known}
    return RecordLine("compacted", payload)


def token_count(after: int, last: Json | None) -> RecordLine:
    """Return the line that gives Codex the size of the new window.

    Without it Codex uses the last call before, and lets a model compact again.  The estimate is
    only the total: Codex writes its own like this, and readers can tell it from a reported one
    (CKP-28).  The sums over the session stay.
    """
    info = object_of(object_of(last).get("info"))
    known = object_of(info.get("total_token_usage"))
    total = {key: whole_of(known.get(key)) or 0 for key in _USAGE}
    newest = dict.fromkeys(_USAGE, 0) | {"total_tokens": after}
    new_info: dict[str, object] = {
        "total_token_usage": total,
        "last_token_usage": newest,
        "model_context_window": whole_of(info.get("model_context_window")),
    }
    return RecordLine("event_msg", {"type": "token_count", "info": new_info, "rate_limits": None})


def new_session(
    items: Sequence[Json],
    source: SourceSession,
    naming: Naming,
    at: TurnTime,
    ids: tuple[str, str, str],
) -> NewSession:
    """Return a session that begins with this replacement and that Codex lists.

    Codex takes the model, its effort and the approvals of a resumed session from a `turn_context`
    after the last task; a `comp_hash` in it of another version would make it compact again.  Newer
    versions list a session in the folder of its thread settings.  `ids` are three new ones: the
    session, its first window, and the replacement's window (WIN-13).
    """
    session_id, first, second = ids
    chain = begun(first).opened(second)
    lines = (compacted(items, chain), *_named(session_id, source, naming, at))
    if source.settings is not None:
        settings = {**source.settings, "turn_id": naming.turn_id}
        settings.pop("comp_hash", None)
        if source.folder is not None:
            settings["cwd"] = source.folder
        lines += (RecordLine("turn_context", settings),)
    if source.thread_settings is not None:
        applied = dict(object_of(source.thread_settings.get("thread_settings")))
        if source.folder is not None:
            applied["cwd"] = source.folder
        payload = {**source.thread_settings, "thread_id": session_id, "thread_settings": applied}
        lines += (RecordLine("event_msg", payload),)
    return NewSession(session_meta(session_id, first, source, at), lines, chain)


def session_meta(session_id: str, window_id: str, source: SourceSession, at: TurnTime) -> Json:
    """Return the payload of the head of a session that we make ("Sessions that we make")."""
    head = source.head
    meta: dict[str, object] = {
        "session_id": session_id,
        "id": session_id,
        "forked_from_id": source.session_id,
        "timestamp": at.text,
        "cwd": source.cwd,
        "originator": "codex-checkpoints",
        "cli_version": text_of(head.get("cli_version")) or "0.0.0",
        # A session that Codex would hide from its lists is listed as a session of the command line.
        # A head without `source` means the editor to Codex.
        "source": "vscode" if head.get("source", "vscode") == "vscode" else "cli",
        "model_provider": text_of(head.get("model_provider")),
        "history_mode": "paginated" if source.paginated else "legacy",
        "context_window": {"window_id": window_id},
    }
    # Parts that the model gets, or that the user chose.
    meta |= {key: head.get(key) for key in ("base_instructions", "dynamic_tools", "memory_mode")}
    return {key: value for key, value in meta.items() if value is not None}


def _named(
    session_id: str, source: SourceSession, naming: Naming, at: TurnTime
) -> tuple[RecordLine, ...]:
    """Return a task without items of the history: lists take the name of a session from it."""
    begun_so, complete = _task(naming.turn_id, source.window, at)
    started: Json = {**begun_so, "collaboration_mode_kind": "default"}
    text = naming.text.strip() or "Compacted session"  # Codex lists no session without a text
    no_elements: list[object] = []
    message: Json
    if source.paginated:
        part: Json = {"type": "text", "text": text, "text_elements": no_elements}
        message = {
            "type": "item_completed",
            "thread_id": session_id,
            "turn_id": naming.turn_id,
            "item": {"type": "UserMessage", "id": naming.item_id, "content": [part]},
            "started_at_ms": at.ms,
            "completed_at_ms": at.ms,
        }
    else:
        message = {
            "type": "user_message",
            "message": text,
            "images": [],
            "local_images": [],
            "text_elements": no_elements,
        }
    return tuple(RecordLine("event_msg", payload) for payload in (started, message, complete))


def _task(turn_id: str, window: int | None, at: TurnTime) -> tuple[Json, Json]:
    seconds = at.ms // 1000
    started: Json = {
        "type": "task_started",
        "turn_id": turn_id,
        "started_at": seconds,
        "model_context_window": window,
    }
    complete: Json = {
        "type": "task_complete",
        "turn_id": turn_id,
        "last_agent_message": None,
        "started_at": seconds,
        "completed_at": seconds,
        "duration_ms": 0,
    }
    return started, complete


ReplacementForm = tuple[RecordLine, ...]
"""Lines in the form in which they are appended to a session."""


def effective(
    outline: FirstPass, forms: Sequence[ReplacementForm], items: Sequence[Json]
) -> ReplacementForm | None:
    """Return the first form of lines that gives the session this history, or None.

    `outline` is the survey of the session.
    """
    return next((form for form in forms if _history(outline, form) == tuple(items)), None)


def _history(outline: FirstPass, form: ReplacementForm) -> tuple[Item, ...] | None:
    """Return the history that lines install after a session, None if they install none."""
    data = b"".join(map(_written, form))
    survey = HistoryScan()
    survey.reader.feed(data)
    added = survey.outline().marks
    outline = evolve(outline, marks=(*outline.marks, *added))
    choice = choose(outline)
    if choice.base is None or all(choice.base is not mark for mark in added):
        return None
    rebuild = Rebuild(choice, outline)
    rebuild.reader.feed(data[choice.base.place.offset :])
    return tuple(each.item for each in rebuild.result())


def _written(line: RecordLine) -> bytes:
    """Return a line as a store writes it, without the additions of a store.

    The reader ignores values that Codex cannot read as JSON, such as a number beyond 64 bits.
    """
    whole = {"timestamp": "", "type": line.type, "payload": dict(line.payload)}
    return json.dumps(whole, separators=(",", ":")).encode("ascii") + b"\n"
