"""The lines that make Codex send a replacement from now on (CKP-18, CKP-27, DSC-54).

Two targets: appended to a session that is there, or as a session of its own.  A line is its type
and its payload; time stamps, ordinals and the file are the store's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from codex_checkpoints.core.history.windows import Chain, begun
from codex_checkpoints.core.rollout.fields import Json, object_of, text_of, texts_of, whole_of
from codex_checkpoints.values import frozen

ORIGINATOR = "codex-checkpoints"
"""Who wrote a session, in its head."""

_CARRIED = ("base_instructions", "dynamic_tools", "memory_mode")
_NO_VERSION = "0.0.0"
_NO_NAME = "Compacted session"

_USAGE = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)


@frozen
class Line:
    """One line of a rollout without its envelope."""

    type: str
    payload: Json


@frozen
class Moment:
    """A time in its three forms: UTC text with milliseconds and `Z`, and ms since 1970."""

    text: str
    ms: int


@frozen
class Naming:
    """The task that only names a new session in lists: its text, and ids for it (JUN-46)."""

    text: str
    turn_id: str
    item_id: str


@frozen
class NewSession:
    """A session to be made: the payload of its head, the lines behind it, and its windows."""

    meta: Json
    lines: tuple[Line, ...]
    chain: Chain


@frozen
class Source:
    """The session that a new one continues: what of its head goes on, and what its window holds.

    `carried` are further fields of the head that decide what the model is sent, or that the user
    chose.
    """

    session_id: str
    cwd: str
    cli_version: str
    listed_as: str
    history_mode: Literal["paginated", "legacy"]
    model_provider: str | None
    window: int | None
    carried: Json


def source_of(session_id: str, cwd: str, head: Json, window: int | None) -> Source:
    """Read the source from the payload of its `session_meta`; empty for files that have none.

    A session that Codex would hide from its lists is listed as one of the command line; a head
    without `source` means the editor to Codex.
    """
    return Source(
        session_id,
        cwd,
        text_of(head.get("cli_version")) or _NO_VERSION,
        "vscode" if head.get("source", "vscode") == "vscode" else "cli",
        "paginated" if head.get("history_mode") == "paginated" else "legacy",
        text_of(head.get("model_provider")),
        window,
        {key: head[key] for key in _CARRIED if head.get(key) is not None},
    )


def in_place(
    items: Sequence[Json], chain: Chain, after: int, last_token_count: Json | None
) -> tuple[Line, Line]:
    """Return what is appended to a session: the replacement, then what it weighs.

    `chain` is the one that the replacement opens; `after` what the next request holds by our
    estimate, base instructions included; `last_token_count` the payload of the newest
    `token_count` of the file, if there is one.
    """
    return compacted(items, chain), token_count(after, last_token_count)


def in_task(
    lines: tuple[Line, ...], turn_id: str, window: int | None, at: Moment
) -> tuple[Line, ...]:
    """Return lines as a task of their own, as Codex has one where it compacts by hand.

    `turn_id` is a new one.  Nobody says anything in it, so it is no turn, and no rollback counts
    it.  It names no mode either: that of the turn before stays.
    """
    started, complete = _task(turn_id, window, at)
    return (Line("event_msg", started), *lines, Line("event_msg", complete))


def compacted(items: Sequence[Json], chain: Chain) -> Line:
    """Return the line that holds the complete replacement, and in `message` what old versions read.

    Ids of windows that nobody knows are left out (WIN-6, WIN-9).
    """
    windows: dict[str, object] = {
        "window_number": chain.number,
        "first_window_id": chain.first,
        "previous_window_id": chain.previous,
        "window_id": chain.current,
    }
    known = {key: value for key, value in windows.items() if value is not None}
    message = "".join(texts_of(items[-1].get("content"))) if items else ""
    return Line("compacted", {"message": message, "replacement_history": list(items), **known})


def token_count(after: int, last: Json | None) -> Line:
    """Return the line by which Codex knows how full the new window is.

    Without it Codex goes by the last call before, and compacts once more by a model.  The estimate
    stands as the total alone: so Codex writes its own, and so readers know it from a reported one
    (CKP-28).  Sums over the session go on as they were.
    """
    info = object_of(object_of(last).get("info"))
    known = object_of(info.get("total_token_usage"))
    total = {key: whole_of(known.get(key)) or 0 for key in _USAGE}
    newest = dict.fromkeys(_USAGE, 0) | {"total_tokens": after}
    told: dict[str, object] = {
        "total_token_usage": total,
        "last_token_usage": newest,
        "model_context_window": whole_of(info.get("model_context_window")),
    }
    return Line("event_msg", {"type": "token_count", "info": told, "rate_limits": None})


def new_session(
    items: Sequence[Json],
    source: Source,
    naming: Naming,
    at: Moment,
    ids: tuple[str, str, str],
) -> NewSession:
    """Return a session that begins with this replacement and that Codex lists.

    `ids` are three new ones: of the session, of its first window and of the one that the
    replacement opens (WIN-13).
    """
    session_id, first, second = ids
    chain = begun(first).opened(second)
    lines = (compacted(items, chain), *_named(session_id, source, naming, at))
    return NewSession(session_meta(session_id, first, source, at), lines, chain)


def session_meta(session_id: str, window_id: str, source: Source, at: Moment) -> Json:
    """Return the payload of the head of a session that we make ("Sessions that we make")."""
    meta: dict[str, object] = {
        "session_id": session_id,
        "id": session_id,
        "forked_from_id": source.session_id,
        "timestamp": at.text,
        "cwd": source.cwd,
        "originator": ORIGINATOR,
        "cli_version": source.cli_version,
        "source": source.listed_as,
        "model_provider": source.model_provider,
        "history_mode": source.history_mode,
        "context_window": {"window_id": window_id},
    }
    return {key: value for key, value in meta.items() if value is not None} | dict(source.carried)


def _named(session_id: str, source: Source, naming: Naming, at: Moment) -> tuple[Line, ...]:
    """Return a task without any item of the history: lists take a session's name from it."""
    begun_so, complete = _task(naming.turn_id, source.window, at)
    started: Json = {**begun_so, "collaboration_mode_kind": "default"}
    text = naming.text.strip() or _NO_NAME  # Codex lists no session without a text
    paginated = source.history_mode == "paginated"
    told = _item(session_id, naming, text, at) if paginated else _event(text)
    return tuple(Line("event_msg", payload) for payload in (started, told, complete))


def _task(turn_id: str, window: int | None, at: Moment) -> tuple[Json, Json]:
    """Return how a task begins and how it ends, at one moment."""
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


def _item(session_id: str, naming: Naming, text: str, at: Moment) -> Json:
    no_elements: list[object] = []
    part: Json = {"type": "text", "text": text, "text_elements": no_elements}
    message: Json = {"type": "UserMessage", "id": naming.item_id, "content": [part]}
    return {
        "type": "item_completed",
        "thread_id": session_id,
        "turn_id": naming.turn_id,
        "item": message,
        "started_at_ms": at.ms,
        "completed_at_ms": at.ms,
    }


def _event(text: str) -> Json:
    return {
        "type": "user_message",
        "message": text,
        "images": [],
        "local_images": [],
        "text_elements": [],
    }
