"""The lines that make Codex send a replacement from now on (CKP-18, CKP-27, DSC-54).

Two targets: appended to a session that is there, or as a session of its own.  A line is its type
and its payload; time stamps, ordinals and the file are the store's business.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from attrs import evolve

from codex_checkpoints.core.compaction.kinds import Past
from codex_checkpoints.core.history.choice import Choice, choose
from codex_checkpoints.core.history.items import Item
from codex_checkpoints.core.history.rebuild import Rebuild, is_output
from codex_checkpoints.core.history.survey import Outline, Survey
from codex_checkpoints.core.history.windows import Chain, begun
from codex_checkpoints.core.rollout.fields import Json, object_of, text_of, texts_of, whole_of
from codex_checkpoints.core.rollout.reader import NOTED, Line, Place
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
class RecordLine:
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
    lines: tuple[RecordLine, ...]
    chain: Chain


@frozen
class SourceSession:
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


def source_of(session_id: str, cwd: str, head: Json, window: int | None) -> SourceSession:
    """Read the source from the payload of its `session_meta`; empty for files that have none.

    A session that Codex would hide from its lists is listed as one of the command line; a head
    without `source` means the editor to Codex.
    """
    return SourceSession(
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
) -> tuple[RecordLine, RecordLine]:
    """Return what is appended to a session: the replacement, then what it weighs.

    `chain` is the one that the replacement opens; `after` what the next request holds by our
    estimate, base instructions included; `last_token_count` the payload of the newest
    `token_count` of the file, if there is one.
    """
    return compacted(items, chain), token_count(after, last_token_count)


def in_task(
    lines: tuple[RecordLine, ...], turn_id: str, window: int | None, at: Moment
) -> tuple[RecordLine, ...]:
    """Return lines as a task of their own, as Codex has one where it compacts by hand.

    `turn_id` is a new one.  Nobody says anything in it, so it is no turn, and no rollback counts
    it.  It names no mode either: that of the turn before stays.
    """
    started, complete = _task(turn_id, window, at)
    return (RecordLine("event_msg", started), *lines, RecordLine("event_msg", complete))


def compacted(items: Sequence[Json], chain: Chain) -> RecordLine:
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
    return RecordLine(
        "compacted", {"message": message, "replacement_history": list(items), **known}
    )


def token_count(after: int, last: Json | None) -> RecordLine:
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
    return RecordLine("event_msg", {"type": "token_count", "info": told, "rate_limits": None})


def new_session(
    items: Sequence[Json],
    source: SourceSession,
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


def session_meta(session_id: str, window_id: str, source: SourceSession, at: Moment) -> Json:
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


def _named(
    session_id: str, source: SourceSession, naming: Naming, at: Moment
) -> tuple[RecordLine, ...]:
    """Return a task without any item of the history: lists take a session's name from it."""
    begun_so, complete = _task(naming.turn_id, source.window, at)
    started: Json = {**begun_so, "collaboration_mode_kind": "default"}
    text = naming.text.strip() or _NO_NAME  # Codex lists no session without a text
    paginated = source.history_mode == "paginated"
    told = _item(session_id, naming, text, at) if paginated else _event(text)
    return tuple(RecordLine("event_msg", payload) for payload in (started, told, complete))


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


Form = tuple[RecordLine, ...]
"""Lines as they would be appended to a session."""


def effective(outline: Outline, forms: Sequence[Form], items: Sequence[Json]) -> Form | None:
    """Return the first form by which the history of a session becomes these items, if one does.

    `outline` is what the first pass found of the session.
    """
    return next((form for form in forms if _history(outline, form) == tuple(items)), None)


def _history(outline: Outline, form: Form) -> tuple[Item, ...] | None:
    """Return the history that lines install behind a session, None where they install none."""
    data = b"".join(map(_written, form))
    survey = Survey()
    survey.reader.feed(data)
    added = survey.outline().marks
    choice = choose(evolve(outline, marks=(*outline.marks, *added)))
    if choice.base is None or all(choice.base is not mark for mark in added):
        return None
    rebuild = Rebuild(choice, choice.base.place)
    rebuild.reader.feed(data[choice.base.place.offset :])
    return rebuild.result().items


def _written(line: RecordLine) -> bytes:
    """Return a line as a store writes it, but for what a store adds.

    What is no JSON to Codex, as a number beyond 64 bits, is left for the reader to pass over.
    """
    whole = {"timestamp": "", "type": line.type, "payload": dict(line.payload)}
    return json.dumps(whole, separators=(",", ":")).encode("ascii") + b"\n"


class Retracing:
    """The second pass, which also keeps in which line each item stood, and when (JUN-43)."""

    def __init__(self, choice: Choice, start: Place, shift: int) -> None:
        """Begin as `Rebuild` does; `shift` is added to the `seq` of lines, behind a seed."""
        self.rebuild = Rebuild(choice, start)
        self.reader = self.rebuild.reader
        self.reader.folds.append(self)
        if choice.base is not None:
            # Without ordinals lines are counted, also those in front that are not read again.
            self.reader.scale.lines = max(0, choice.base.seq - 1)
        self._shift = shift
        self._before = self.rebuild.items
        self._met: list[tuple[Item, str | None, int]] = []

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Want no more than the items themselves."""
        return NOTED

    def take(self, line: Line) -> None:
        """Note the line of the items that came with it."""
        items, same = self.rebuild.items, len(self._met)
        if items is not self._before:
            both = enumerate(zip(self._met, items, strict=False))
            least = min(same, len(items))
            same = next((at for at, (met, item) in both if met[0] is not item), least)
        self._before = items
        # What counts no longer must not be held on to.
        del self._met[same:]
        self._met += [(item, line.stamp, line.seq + self._shift) for item in items[same:]]

    def past(self) -> tuple[Past, ...]:
        """Return the items of the history with their time and place.

        An output that was put in for a call without one has neither.
        """
        return tuple(self._placed(self.rebuild.result().items))

    def _placed(self, items: Iterable[Item]) -> Iterator[Past]:
        """Pair items with where they were met: only outputs were put in, or left out."""
        at = 0
        for item in items:
            ahead = at
            while ahead < len(self._met) and self._met[ahead][0] is not item:
                # Behind anything else that was met there is nothing to be found.
                ahead = ahead + 1 if is_output(self._met[ahead][0]) else len(self._met)
            if ahead >= len(self._met):
                yield Past(item)
                continue
            _, stamp, seq = self._met[ahead]
            yield Past(item, stamp or None, f"seq:{seq}")
            at = ahead + 1
