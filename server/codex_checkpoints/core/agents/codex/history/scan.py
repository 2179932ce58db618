"""The first pass over a session: a few marks a turn, which decide everything else.

`HistoryScan` notes where tasks begin and end, which of them a user began, rollbacks, and where and
how windows were opened (WIN-12).  Of a compaction it notes the place, not the content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from attrs import Factory, define, frozen

from codex_checkpoints.core.agents.codex.history import tokens
from codex_checkpoints.core.agents.codex.history.authorship import begins_turn, is_prompt
from codex_checkpoints.core.agents.codex.history.items import (
    Item,
    counts,
    is_legacy,
    read_item,
    replacement_of,
    texts,
)
from codex_checkpoints.core.agents.codex.injected_text import has_summary_prefix
from codex_checkpoints.core.agents.codex.own_messages import is_ours, opener_of
from codex_checkpoints.core.agents.codex.reader import NOTED, WHOLE, Line, LinePlace, Reader
from codex_checkpoints.core.events import Opener, RolledBack, TaskEnded, TaskStarted, Tokens
from codex_checkpoints.core.fields import (
    Json,
    first_window,
    list_of,
    names,
    object_of,
    text_of,
    window_id_of,
)
from codex_checkpoints.core.windows import Strategy, Trigger

ANSWER_END = 512
"""Number of characters of the end of a message that are compared."""


@frozen
class Compaction:
    """A record that opened a window, without its history.

    `index` counts the records of a session from 0.  Without a `replacement` the history consists of
    user messages and the record's message (CKP-26); `size` is our estimate of the replacement.
    """

    place: LinePlace
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
    opener: Opener


def read_compaction(line: Line, index: int) -> Compaction | None:
    """Read a record; None if Codex ignores it."""
    payload = line.payload
    replacement = replacement_of(payload)
    if replacement is None and not is_legacy(payload):
        return None
    message = text_of(payload.get("message")) or ""
    # For a week Codex wrote the number of a window into `window_id` (WIN-9).
    numbers = (payload.get("window_number"), payload.get("window_id"))
    return Compaction(
        place=line.place,
        index=index,
        seq=line.seq,
        stamp=line.stamp or None,
        number=next((each for each in numbers if type(each) is int), None),
        window_id=window_id_of(payload.get("window_id")),
        first_id=window_id_of(payload.get("first_window_id")),
        previous_id=window_id_of(payload.get("previous_window_id")),
        replacement=replacement is not None,
        size=None if replacement is None else tokens.of_items(replacement),
        strategy=_strategy(replacement, message),
        opener=opener_of(line.tag, message),
    )


def _strategy(replacement: Sequence[Item] | None, message: str) -> Strategy | None:
    """Return who made a replacement, as its items show."""
    if replacement is None:
        return "local" if message else None
    last = texts(replacement[-1])[:1] if replacement else ()
    if any(is_ours(text) for text in last):
        return "checkpoint"
    if any(item["type"] in {"compaction", "context_compaction"} for item in replacement):
        return "remote"
    if any(has_summary_prefix(text) for item in replacement for text in texts(item)[:1]):
        return "local"
    return None if message or any(map(is_prompt, replacement)) else "fresh"


_NO_ANSWER = (0, "")


def _end_of(text: str) -> tuple[int, str]:
    """Return the length of the end of a message, and its digest, which may be stored."""
    end = text[-ANSWER_END:]
    digest = sha256(end.encode(errors="surrogatepass")).hexdigest()
    return (len(end), digest) if end else _NO_ANSWER


@define
class WindowStart:
    """How a window was opened; None if no record has the value."""

    trigger: Trigger | None = None
    before: int | None = None
    after: int | None = None


@define
class WindowStarts:
    """Follow the tasks of a session, and keep how each window was opened."""

    all: list[WindowStart] = Factory(list[WindowStart])
    _in_task: bool = False
    _prompted: bool = False
    _items: int = 0
    _answer: tuple[int, str] = _NO_ANSWER
    _waits: bool = False
    """Whether the trigger of the newest window is not known yet."""
    _fresh: bool = False
    """Whether the newest window has no item yet."""
    _used: int | None = None
    _used_before_item: int | None = None
    _reported: bool = False

    def began(self) -> None:
        """Note that a task began."""
        self.ended()
        self._in_task, self._prompted, self._items, self._answer = True, False, 0, _NO_ANSWER

    def ended(self) -> None:
        """Note that a task ended; without a prompt its compaction was manual."""
        self._settle("manual")
        self._in_task = False

    def prompted(self) -> None:
        """Note that a person typed a message."""
        self._settle("pre_turn")
        self._prompted = True

    def item(self, answer: str, *, by_model: bool) -> None:
        """Note an item of the history; `answer` is a message of the model, else empty."""
        self._items += by_model
        self._answer = _end_of(answer)
        self._fresh = self._reported = False
        self._used_before_item = self._used

    def reported(self, usage: Tokens) -> None:
        """Note a report of tokens; only the first after an item is one of use.

        A report above the window is credible only if it is an estimate (ROL-9, DSC-55).
        """
        if not self._reported:
            believed = usage.is_estimate or not usage.is_impossible
            self._used, self._reported = usage.total if believed else None, True
        if self._fresh and usage.is_estimate and self.all[-1].after is None:
            self.all[-1].after = usage.total

    def compacted(self, compaction: Compaction, message: str) -> None:
        """Note a record that opens a window, with its message."""
        # The summary that the model wrote for it counts neither as work nor as use of the window.
        size = self._answer[0]
        summed_up = size > 0 and self._answer == _end_of(message[-size:])
        opening = WindowStart(before=self._used_before_item if summed_up else self._used)
        if compaction.strategy == "checkpoint":
            opening.trigger = "manual"
        elif self._in_task and self._items > summed_up:
            opening.trigger = "mid_turn"
        elif self._in_task and self._prompted:
            opening.trigger = "pre_turn"
        self.all.append(opening)
        # The old usage is void (CKP-28); the next report counts, even an estimate.
        self._used = self._used_before_item = None
        self._reported, self._answer = False, _NO_ANSWER
        self._fresh, self._waits = True, self._in_task and opening.trigger is None

    def _settle(self, trigger: Trigger) -> None:
        if self._waits:
            self.all[-1].trigger, self._waits = trigger, False


@frozen
class ItemsAdded:
    """Items of the history; with `turn` one of them is a user's prompt or an agent's message."""

    turn: bool


@frozen
class TurnSettings:
    """The settings of a turn; later turns are compared with them."""

    turn_id: str | None
    seq: int


@frozen
class WorldState:
    """The injected context, whole (`full`) or as a change."""

    full: bool


@frozen
class FirstSaid:
    """Where and when a message of the user first occurred in a session (JUN-43).

    `key` is its id, or the digest of its text if Codex gave it no id.
    """

    key: str
    place: LinePlace
    stamp: str | None
    seq: int


def keys_of(item: Item, payload: object) -> Sequence[str]:
    """Return the possible keys of a user message, from the item and from its payload."""
    text = sha256("\0".join(texts(item)).encode(errors="replace")).hexdigest()
    name = text_of(object_of(payload).get("id"))
    return (text,) if name is None else (name, text)


def first_said(
    items: Sequence[Item], payloads: Sequence[object], said: Sequence[FirstSaid], before: LinePlace
) -> Mapping[int, FirstSaid]:
    """Return the earlier places of the user's messages in a replacement, by their number.

    The newest message is matched first; each match of equal texts precedes the one before.
    """
    at = sum(each.place < before for each in said)
    numbers: dict[str, list[int]] = {}
    for number, each in enumerate(said[:at]):
        numbers.setdefault(each.key, []).append(number)
    found: dict[int, FirstSaid] = {}
    for number in reversed(range(len(items))):
        if not is_prompt(items[number]):
            continue
        payload = payloads[number] if payloads else None
        for key in keys_of(items[number], payload):
            known = numbers.get(key, [])
            while known and known[-1] >= at:
                known.pop()
            if known:
                at = known.pop()
                found[number] = said[at]
                break
    return found


Mark = TaskStarted | TaskEnded | ItemsAdded | TurnSettings | WorldState | RolledBack | Compaction


@frozen
class FirstPass:
    """The result of the first pass; nothing before `start` counts any more.

    `window_id`, `opened_seq` and `opened_at` belong to the first window; `usage` is the newest
    report, `stale` when a window was opened after it; `instructions` counts the base instructions
    in tokens; `said` are the messages of the user, also those before `start`.  `seed` and `shift`
    are as in `Scale`.
    """

    marks: tuple[Mark, ...]
    openings: tuple[WindowStart, ...]
    start: LinePlace
    window_id: str | None
    opened_seq: int
    opened_at: str | None
    instructions: int
    usage: Tokens | None
    stale: bool
    seq: int
    said: tuple[FirstSaid, ...] = ()
    seed: int | None = None
    shift: int = 0


@define
class ScanState:
    """The state of a survey after some lines, without the payloads that it keeps for others."""

    marks: list[Mark] = Factory(list[Mark])
    said: list[FirstSaid] = Factory(list[FirstSaid])
    openings: WindowStarts = Factory(WindowStarts)
    start: LinePlace = Factory(lambda: LinePlace(0, 0))
    opened: tuple[int, str | None] | None = None
    window_id: str | None = None
    instructions: int = 0
    usage: Tokens | None = None
    stale: bool = False
    file: int = -1


class HistoryScan:
    """The fold over a session's lines, its bases first, that collects the `FirstPass`."""

    def __init__(
        self,
        reader: Reader | None = None,
        cut: LinePlace | None = None,
        state: ScanState | None = None,
    ) -> None:
        """Use a reader of its own or join one; `in_front` stops at the `cut`.

        With a `state` it continues from there, without the earlier payloads.
        """
        self.reader = Reader() if reader is None else reader
        self.reader.folds.append(self)
        self.head: Json = {}
        """The payload of the session's own `session_meta`, empty if there is none."""
        self.last_report: Json | None = None
        """The payload of the newest `token_count`."""
        self.last_settings: Json | None = None
        """The payload of the newest `turn_context`: model, effort, approvals."""
        self.thread_settings: Json | None = None
        """The payload of the newest `thread_settings_applied`."""
        self.state = ScanState() if state is None else state
        self._cut = cut
        self._in_front: FirstPass | None = None

    @property
    def in_front(self) -> FirstPass:
        """Return the outline at the cut, or so far; its `seq` may be a later one."""
        return self._in_front or self.outline()

    @property
    def newest(self) -> Mark | None:
        """Return the newest mark."""
        return self.state.marks[-1] if self.state.marks else None

    def outline(self) -> FirstPass:
        """Return the outline so far."""
        seq, stamp = self.state.opened or (self.reader.scale.seq, None)
        return FirstPass(
            marks=tuple(self.state.marks),
            openings=tuple(self.state.openings.all),
            start=self.state.start,
            window_id=self.state.window_id,
            opened_seq=seq,
            opened_at=stamp or None,
            instructions=self.state.instructions,
            usage=self.state.usage,
            stale=self.state.stale,
            seq=self.reader.scale.seq,
            said=tuple(self.state.said),
            seed=self.reader.scale.seed,
            shift=self.reader.scale.shift,
        )

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:
        """Ask for the long lines whose content matters."""
        match kind:
            case "response_item":
                wanted = tag is None or _is_message(tag, inner)
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
        first, self.state.file = line.place.file != self.state.file, line.place.file
        if self.state.opened is None and (line.kind in _KINDS or line.tag in _EVENTS):
            self.state.opened = line.seq, line.stamp
        match line.kind:
            case "response_item":
                self._response_item(line)
            case "event_msg":
                self._event(line)
            case "session_meta":
                self._session_meta(line, first=first)
            case "compacted":
                self._compacted(line)
            case "turn_context":
                self.last_settings = line.payload
                self.state.marks.append(
                    TurnSettings(text_of(line.payload.get("turn_id")), line.seq)
                )
            case "world_state":
                self.state.marks.append(WorldState(full=line.payload.get("full") is True))
            case "inter_agent_communication":
                self._added(turn=True)
            case _:
                pass

    def _session_meta(self, line: Line, *, first: bool) -> None:
        if first:
            self.head = line.payload  # the head of the file, not of its base
            text = text_of(object_of(self.head.get("base_instructions")).get("text")) or ""
            self.state.instructions = tokens.approximate_tokens(text)
            self.state.window_id = first_window(self.head)
        elif line.payload.get("history_mode") == "paginated" and self.state.marks:
            # Codex reads such a file from its end back to the nearest head.
            self.state.marks.clear()
            self.state.start = line.place

    def _response_item(self, line: Line) -> None:
        if line.tag is None or _is_message(line.tag, line.inner):
            item = read_item(line.payload)
            if item is None:
                return
            self._added(turn=begins_turn(item))
            if is_prompt(item):
                key = keys_of(item, line.payload)[0]
                self.state.said.append(FirstSaid(key, line.place, line.stamp or None, line.seq))
        else:
            self._added(turn=line.tag == "agent_message")
        by_model = line.tag not in _NOT_THE_MODELS and line.inner in {"assistant", None}
        answer = ""
        if by_model and line.tag == "message":
            parts = list_of(line.payload.get("content"))
            found = (text_of(object_of(part).get("text")) for part in parts)
            answer = "".join(text for text in found if text is not None)
        self.state.openings.item(answer, by_model=by_model)

    def _added(self, *, turn: bool) -> None:
        last = self.state.marks[-1] if self.state.marks else None
        if not isinstance(last, ItemsAdded):
            self.state.marks.append(ItemsAdded(turn))
        elif turn and not last.turn:
            self.state.marks[-1] = ItemsAdded(turn=True)

    def _event(self, line: Line) -> None:
        if line.tag == "user_message":
            self.state.openings.prompted()
            self._added(turn=True)
        elif line.tag == "item_completed":
            if line.inner == "UserMessage":
                self.state.openings.prompted()
        elif line.tag == "thread_settings_applied" and not line.passed_over:
            self.thread_settings = line.payload
        elif line.tag in _EVENTS:
            self._report(line)

    def _report(self, line: Line) -> None:
        item = line.item
        match item:
            case TaskStarted():
                self.state.openings.began()
                self.state.marks.append(item)
            case TaskEnded():
                self.state.openings.ended()
                self.state.marks.append(item)
            case RolledBack():
                self.state.marks.append(item)
            case Tokens():
                self.state.usage, self.state.stale, self.last_report = item, False, line.payload
                self.state.openings.reported(item)
            case _:
                pass

    def _compacted(self, line: Line) -> None:
        compaction = read_compaction(line, len(self.state.openings.all))
        if compaction is not None:
            self.state.marks.append(compaction)
            self.state.openings.compacted(compaction, text_of(line.payload.get("message")) or "")
            self.state.stale = True


def _is_message(tag: str, inner: str | None) -> bool:
    return tag == "message" and inner in {"user", "assistant", None}


_KINDS = names(
    "response_item session_meta compacted turn_context world_state inter_agent_communication"
)
_EVENTS = names(
    "task_started turn_started task_complete turn_complete turn_aborted"
    " thread_rolled_back user_message item_completed token_count"
)
_NOT_THE_MODELS = names(
    "function_call_output custom_tool_call_output tool_search_output additional_tools agent_message"
)
"""Items of a history that the model did not write."""
