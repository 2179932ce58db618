"""The first pass over a session: a few words a turn, from which all else is decided.

`Survey` keeps what the look back of `choice` needs: where tasks begin and end, which of them were a
user's, what was taken back, where windows were opened and how (WIN-12).  Of a compaction it notes
where its record stands, not what is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from codex_checkpoints.core.history import tokens
from codex_checkpoints.core.history.items import (
    Item,
    counts,
    is_legacy,
    read_item,
    replacement_of,
    texts,
)
from codex_checkpoints.core.history.speakers import begins_turn, is_prompt, is_summary
from codex_checkpoints.core.history.tokens import Usage
from codex_checkpoints.core.history.window_ids import first_window, window_id_of
from codex_checkpoints.core.rollout.fields import Json, list_of, object_of, text_of, whole_of
from codex_checkpoints.core.rollout.ours import is_ours
from codex_checkpoints.core.rollout.reader import NOTED, WHOLE, Line, Place, Reader
from codex_checkpoints.values import define, frozen

Strategy = Literal["checkpoint", "codex", "local", "remote", "fresh"]

ANSWER_END = 512
"""How many characters of a message are kept, to know it again by its end."""


@frozen
class Compaction:
    """Where a window was opened, without its history.

    `place` is where the record stands, `index` counts the records of a session from 0.  Without a
    `replacement` the history is to be made of user messages and the record's message (CKP-26);
    `size` is our estimate of the replacement in tokens.
    """

    place: Place
    index: int
    seq: int
    stamp: str | None
    number: int | None
    window_id: str | None
    first_id: str | None
    previous_id: str | None
    replacement: bool
    size: int | None
    strategy: Strategy | None
    message_end: str


def read_compaction(line: Line, index: int) -> Compaction | None:
    """Read a record, None where Codex passes over it."""
    payload = line.payload
    replacement = replacement_of(payload)
    if replacement is None and not is_legacy(payload):
        return None
    ids = [window_id_of(payload.get(name)) for name in ("window_id", "first_window_id")]
    message = text_of(payload.get("message")) or ""
    return Compaction(
        place=line.place,
        index=index,
        seq=line.seq,
        stamp=line.stamp or None,
        number=_number(payload),
        window_id=ids[0],
        first_id=ids[1],
        previous_id=window_id_of(payload.get("previous_window_id")),
        replacement=replacement is not None,
        size=None if replacement is None else tokens.of_items(replacement),
        strategy=_strategy(replacement, message),
        message_end=message[-ANSWER_END:],
    )


def _number(payload: Json) -> int | None:
    """Return the window's number; for a week it stood in `window_id` (WIN-9)."""
    for name in ("window_number", "window_id"):
        value = payload.get(name)
        if type(value) is int:
            return value
    return None


def _strategy(replacement: Sequence[Item] | None, message: str) -> Strategy | None:
    """Tell who made a replacement by what it ends with."""
    if replacement is None:
        return "local" if message else None
    last = texts(replacement[-1])[:1] if replacement else ()
    if any(is_ours(text) for text in last):
        return "checkpoint"
    if any(item["type"] in {"compaction", "context_compaction"} for item in replacement):
        return "remote"
    if any(is_summary(text) for item in replacement for text in texts(item)[:1]):
        return "local"
    return None if message or any(map(is_prompt, replacement)) else "fresh"


Trigger = Literal["manual", "pre_turn", "mid_turn"]


@define
class Opening:
    """What is known of one window's opening; what no record tells stays None."""

    trigger: Trigger | None = None
    before: int | None = None
    after: int | None = None


class Openings:
    """Follow a session from task to task, and remember how its windows were opened."""

    def __init__(self) -> None:
        """Begin before the first task."""
        self.all: list[Opening] = []
        self._in_task = False
        self._prompted = False
        self._items = 0
        self._answer = ""
        self._waits = False  # what set off the newest one is not known yet
        self._fresh = False  # nothing but bookkeeping stands behind the newest one
        self._used: int | None = None
        self._used_before_item: int | None = None
        self._reported = False

    def began(self) -> None:
        """Take the beginning of a task."""
        self.ended()
        self._in_task, self._prompted, self._items, self._answer = True, False, 0, ""

    def ended(self) -> None:
        """Take the end of a task: one in which nobody said anything was asked for."""
        self._settle("manual")
        self._in_task = False

    def prompted(self) -> None:
        """Take what a person typed."""
        self._settle("pre_turn")
        self._prompted = True

    def item(self, answer: str | None, *, by_model: bool) -> None:
        """Take an item of the history; `answer` is the end of what the model said, if it did."""
        self._items += by_model
        self._answer = answer or ""
        self._fresh = self._reported = False
        self._used_before_item = self._used

    def reported(self, usage: Usage) -> None:
        """Take a report; the later ones behind an item are those of a compaction itself.

        More than the window holds is no report, though it may be an estimate (ROL-9, DSC-55).
        """
        if not self._reported:
            believed = usage.is_estimate or not usage.is_impossible
            self._used, self._reported = usage.total if believed else None, True
        if self._fresh and usage.is_estimate and self.all[-1].after is None:
            self.all[-1].after = usage.total

    def compacted(self, compaction: Compaction) -> None:
        """Take a record that opens a window."""
        # A summary that the model wrote for this is no work on the task, and no use of the window.
        summed_up = bool(self._answer) and compaction.message_end.endswith(self._answer)
        used = self._used_before_item if summed_up else self._used
        opening = Opening(before=used)
        if compaction.strategy == "checkpoint":
            opening.trigger = "manual"
        elif self._in_task and self._items > summed_up:
            opening.trigger = "mid_turn"
        elif self._in_task and self._prompted:
            opening.trigger = "pre_turn"
        self.all.append(opening)
        # What was in use is so no more (CKP-28); the next report counts, be it an estimate.
        self._used = self._used_before_item = None
        self._reported, self._answer = False, ""
        self._fresh, self._waits = True, self._in_task and opening.trigger is None

    def _settle(self, trigger: Trigger) -> None:
        if self._waits:
            self.all[-1].trigger, self._waits = trigger, False


@frozen
class Began:
    """Codex began to work on a submission."""


@frozen
class Ended:
    """It stopped working on it."""

    turn_id: str | None
    aborted: bool


@frozen
class Said:
    """Lines of the history; with `turn` one of them was a user's prompt or an agent's message."""

    turn: bool


@frozen
class Settings:
    """The settings of a turn were written down, which later turns are compared with."""

    turn_id: str | None
    seq: int


@frozen
class World:
    """The injected context was written down, whole (`full`) or as a change."""

    full: bool


@frozen
class TakenBack:
    """The newest user turns no longer count."""

    turns: int


Mark = Began | Ended | Said | Settings | World | TakenBack | Compaction


@frozen
class Outline:
    """What the first pass found.

    Nothing before `start` counts any more.  `window_id` is that of the first window, `opened_seq`
    and `opened_at` say when it was opened; `usage` is the newest report, `stale` when a window was
    opened after it; `instructions` are the tokens of the base instructions.
    """

    marks: tuple[Mark, ...]
    openings: tuple[Opening, ...]
    start: Place
    session_id: str | None
    window_id: str | None
    opened_seq: int
    opened_at: str | None
    instructions: int
    usage: Usage | None
    stale: bool
    seq: int


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
