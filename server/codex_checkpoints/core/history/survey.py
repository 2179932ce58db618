"""The first pass over a session: a few words a turn, from which all else is decided.

`Survey` takes every line and keeps what the look back of `choice` needs: where tasks begin and end,
which of them were a user's, what was taken back, where windows were opened.  Of a compaction it
notes where its record stands, not what is in it.  Beside that it keeps what the newest model call
used (JUN-28), and has `openings` follow how windows came about.
"""

from __future__ import annotations

from collections.abc import Mapping

from codex_checkpoints.core.history import tokens
from codex_checkpoints.core.history.compacted import ANSWER_END, read_compaction
from codex_checkpoints.core.history.items import counts, read_item
from codex_checkpoints.core.history.marks import (
    Began,
    Ended,
    Mark,
    Outline,
    Said,
    Settings,
    TakenBack,
    World,
)
from codex_checkpoints.core.history.openings import Openings
from codex_checkpoints.core.history.speakers import begins_turn
from codex_checkpoints.core.history.tokens import Usage
from codex_checkpoints.core.history.window_ids import first_window
from codex_checkpoints.core.rollout.fields import Json, list_of, object_of, text_of, whole_of
from codex_checkpoints.core.rollout.reader import NOTED, WHOLE, Line, Place, Reader


class Survey:
    """The fold over a session's lines, its bases first, that keeps what decides its history."""

    def __init__(self, reader: Reader | None = None, cut: Place | None = None) -> None:
        """Begin before the first byte, with a reader of its own or beside other folds.

        `in_front` is to be what stands in front of the `cut`.
        """
        self.reader = Reader() if reader is None else reader
        self.reader.folds.append(self)
        self.head: Json = {}
        """The payload of the session's own `session_meta`, empty where there is none."""
        self.last_report: Json | None = None
        """The newest `token_count`."""
        self._marks: list[Mark] = []
        self._openings = Openings()
        self._start = Place(0, 0)
        self._opened: tuple[int, str | None] | None = None
        self._usage: Usage | None = None
        self._stale = False
        self._file = -1
        self._cut = cut
        self._in_front: Outline | None = None

    @property
    def in_front(self) -> Outline:
        """Return what was found in front of the cut, or up to now; its `seq` may be a later one."""
        return self._in_front or self.outline()

    @property
    def newest(self) -> Mark | None:
        """Return what was noted last."""
        return self._marks[-1] if self._marks else None

    def outline(self) -> Outline:
        """Return what was found up to now."""
        text = text_of(object_of(self.head.get("base_instructions")).get("text")) or ""
        seq, stamp = self._opened or (self.reader.scale.seq, None)
        return Outline(
            marks=tuple(self._marks),
            openings=tuple(self._openings.all),
            start=self._start,
            session_id=text_of(self.head.get("id")),
            window_id=first_window(self.head),
            opened_seq=seq,
            opened_at=stamp or None,
            instructions=tokens.of_text(text),
            usage=self._usage,
            stale=self._stale,
            seq=self.reader.scale.seq,
        )

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:
        """Want long lines that are more than their tags."""
        match kind:
            case "response_item":
                wanted = tag is None or _is_spoken(tag, inner)
            case "event_msg" if tag == "item_completed":
                wanted = inner in {"UserMessage", None}
            case "event_msg":
                wanted = tag is None or tag in _EVENTS
            case _:
                wanted = kind in {None, "compacted", "session_meta", "turn_context", "world_state"}
        return WHOLE if wanted else NOTED

    def take(self, line: Line) -> None:
        """Take the next line."""
        if self._cut is not None and line.place >= self._cut:
            self._in_front, self._cut = self.outline(), None
        if not counts(line):
            return
        first, self._file = line.place.file != self._file, line.place.file
        if self._opened is None and (line.kind in _KINDS or line.tag in _EVENTS):
            self._opened = line.seq, line.stamp
        match line.kind:
            case "response_item":
                self._response_item(line)
            case "event_msg":
                self._event(line.payload)
            case "session_meta":
                self._session_meta(line, first=first)
            case "compacted":
                self._compacted(line)
            case "turn_context":
                self._marks.append(Settings(text_of(line.payload.get("turn_id")), line.seq))
            case "world_state":
                self._marks.append(World(full=line.payload.get("full") is True))
            case "inter_agent_communication":
                self._said(turn=True)
            case _:
                pass

    def _session_meta(self, line: Line, *, first: bool) -> None:
        if first:
            self.head = line.payload  # a file goes by its own head, not by that of its base
        elif line.payload.get("history_mode") == "paginated" and self._marks:
            # Codex reads such a file from its end, and no further than to a head.
            self._marks.clear()
            self._start = line.place

    def _response_item(self, line: Line) -> None:
        if line.tag is None or _is_spoken(line.tag, line.inner):
            item = read_item(line.payload)
            if item is None:
                return
            self._said(turn=begins_turn(item))
        else:
            self._said(turn=line.tag == "agent_message")
        by_model = line.tag not in _NOT_THE_MODELS and line.inner in {"assistant", None}
        answer = _end_of(line.payload) if by_model and line.tag == "message" else None
        self._openings.item(answer, by_model=by_model)

    def _said(self, *, turn: bool) -> None:
        last = self._marks[-1] if self._marks else None
        if not isinstance(last, Said):
            self._marks.append(Said(turn))
        elif turn and not last.turn:
            self._marks[-1] = Said(turn=True)

    def _event(self, payload: Json) -> None:
        turn_id = text_of(payload.get("turn_id"))
        match payload.get("type"):
            case "task_started" | "turn_started":
                self._openings.began()
                self._marks.append(Began())
            case "task_complete" | "turn_complete" | "turn_aborted" as how:
                self._openings.ended()
                self._marks.append(Ended(turn_id, aborted=how == "turn_aborted"))
            case "thread_rolled_back":
                self._marks.append(TakenBack(whole_of(payload.get("num_turns")) or 0))
            case "user_message":
                self._openings.prompted()
                self._said(turn=True)
            case "item_completed":
                if object_of(payload.get("item")).get("type") == "UserMessage":
                    self._openings.prompted()
            case "token_count":
                usage = tokens.usage_of(payload)
                if usage is not None:
                    self._usage, self._stale, self.last_report = usage, False, payload
                    self._openings.reported(usage)
            case _:
                pass

    def _compacted(self, line: Line) -> None:
        compaction = read_compaction(line, len(self._openings.all))
        if compaction is not None:
            self._marks.append(compaction)
            self._openings.compacted(compaction)
            self._stale = True


def _is_spoken(tag: str, inner: str | None) -> bool:
    return tag == "message" and inner in {"user", "assistant", None}


_KINDS = frozenset(
    {
        "response_item",
        "session_meta",
        "compacted",
        "turn_context",
        "world_state",
        "inter_agent_communication",
    }
)
_EVENTS = frozenset(
    {
        "task_started",
        "turn_started",
        "task_complete",
        "turn_complete",
        "turn_aborted",
        "thread_rolled_back",
        "user_message",
        "item_completed",
        "token_count",
    }
)
_NOT_THE_MODELS = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "tool_search_output",
        "additional_tools",
        "agent_message",
    }
)
"""Items of a history that the model did not write."""


def _end_of(payload: Mapping[str, object]) -> str:
    parts = (text_of(object_of(part).get("text")) for part in list_of(payload.get("content")))
    return "".join(part for part in parts if part is not None)[-ANSWER_END:]
