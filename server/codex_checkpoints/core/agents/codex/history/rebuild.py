"""The second pass: choose the window that a history begins with, and read the items from there on.

    survey = Survey()                        # reads all bytes of the session, its bases first
    choice = choose(survey.outline())
    rebuild = Rebuild(choice, outline)       # reads the bytes from `rebuild.start` on
    history = history_of(outline, rebuild)

Rules, as Codex follows them:

1. A replacement is taken unchanged: no item is cut or reordered (WIN-14).
2. Later outputs of calls are cut to the limit recorded with them.
3. A record without a replacement keeps the user's messages, up to a limit, and its own (CKP-26).
4. A rollback cuts before the turn it undoes and before the context written with that turn; items
before the first turn stay.
5. A call without an output gets the output "aborted"; an output without its call is dropped.

Codex reads a session from its end, in stretches that each begin with a task.  A rollback removes
the stretches before it that contain a user's turn.  The items that a compaction in them had
replaced count again, so an earlier window comes back with its ids (WIN-7, WIN-8).  The newest
window with a replacement is the base: nothing before it is needed (CKP-25).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from attrs import Factory, define, evolve, frozen

from codex_checkpoints.core.agents.codex.history import tokens
from codex_checkpoints.core.agents.codex.history.authorship import (
    begins_turn,
    is_prompt,
    states_context,
)
from codex_checkpoints.core.agents.codex.history.item_kinds import Past
from codex_checkpoints.core.agents.codex.history.items import (
    OTHER,
    Item,
    counts,
    is_forgotten,
    is_instruction,
    is_legacy,
    payloads_of,
    read_item,
    replacement_of,
    texts,
    user_message,
)
from codex_checkpoints.core.agents.codex.history.scan import (
    Compaction,
    FirstPass,
    ItemsAdded,
    Mark,
    TurnSettings,
    WorldState,
    first_said,
)
from codex_checkpoints.core.agents.codex.history.windows import Chain, begun
from codex_checkpoints.core.agents.codex.reader import NOTED, WHOLE, Line, Reader
from codex_checkpoints.core.events import RolledBack, TaskEnded, TaskStarted, Tokens
from codex_checkpoints.core.fields import NOTHING, Json, object_of, text_of, whole_of
from codex_checkpoints.core.windows import HistoryWindow


@frozen
class Choice:
    """The record that the history begins with (`base`; None: the file), and the windows that count.

    `windows` has the oldest first.  `baseline` is the `seq` of the settings with which the next
    turn is compared, None if Codex injects the whole context again (CKP-4, WIN-15).
    """

    base: Compaction | None
    windows: tuple[Compaction, ...]
    baseline: int | None
    chain: Chain


_CLEARED = -1


@define
class _Stretch:
    """The records of a task, collected from its end to its start."""

    turn_id: str | None = None
    turn: bool = False
    compactions: list[Compaction] = Factory(list[Compaction])
    base: Compaction | None = None
    baseline: int | None = None
    whole_context: bool = False

    def add(self, mark: ItemsAdded | TurnSettings | WorldState | Compaction | TaskEnded) -> None:
        """Add the mark that precedes those already added."""
        match mark:
            case ItemsAdded(turn=turn):
                self.turn = self.turn or turn
            case WorldState(full=full):
                self.whole_context = self.whole_context or (full and not self.compactions)
            case TaskEnded(turn_id=turn_id):
                self.turn_id = self.turn_id or turn_id
            case TurnSettings(turn_id=turn_id, seq=seq):
                self.turn_id = self.turn_id or turn_id
                if turn_id in {None, self.turn_id} and self.baseline is None:
                    self.baseline = seq
            case Compaction():
                self.compactions.append(mark)
                self.baseline = _CLEARED if self.baseline is None else self.baseline
                if self.base is None and mark.replacement:
                    self.base = mark


def choose(outline: FirstPass) -> Choice:
    """Return the parts of a scanned session that count."""
    kept = list(_surviving(outline.marks))
    base = next((stretch.base for stretch in kept if stretch.base is not None), None)
    windows = tuple(
        compaction for stretch in reversed(kept) for compaction in reversed(stretch.compactions)
    )
    baseline = next(
        (
            stretch.baseline
            for stretch in kept
            if stretch.baseline
            and (stretch.turn or stretch.whole_context or stretch.baseline == _CLEARED)
        ),
        None,
    )
    made_up = any(
        not compaction.replacement and (base is None or compaction.index > base.index)
        for compaction in windows
    )
    known = None if made_up or baseline == _CLEARED else baseline
    return Choice(base, windows, known, _chain(outline, windows))


def _surviving(marks: Sequence[Mark]) -> Iterator[_Stretch]:
    """Yield the stretches that no rollback removes, the newest first."""
    rolled_back = 0
    for stretch in _stretches(marks):
        if isinstance(stretch, int):
            rolled_back += stretch
        elif rolled_back == 0:
            yield stretch
        else:
            rolled_back -= stretch.turn


def _stretches(marks: Sequence[Mark]) -> Iterator[_Stretch | int]:
    """Yield the stretches, the newest first; a number is a rollback of that many turns."""
    stretch: _Stretch | None = None
    for mark in reversed(marks):
        match mark:
            case RolledBack(turns=turns):
                yield turns
            case TaskStarted():
                if stretch is not None:
                    yield stretch
                    stretch = None
            case TaskEnded(turn_id=None, aborted=True):
                pass
            case _:
                stretch = _Stretch() if stretch is None else stretch
                stretch.add(mark)
    if stretch is not None:
        yield stretch


def _chain(outline: FirstPass, windows: Sequence[Compaction]) -> Chain:
    """Return the chain of windows; a record without an id takes it from earlier ones (WIN-7).

    The id of the previous window stays unknown if the numbers show windows in between (WIN-9).
    """
    chain = begun(outline.window_id) if outline.window_id is not None else Chain(number=0)
    for compaction in windows:
        following = (chain.number or 0) + 1
        number = following if compaction.number is None else compaction.number
        chain = Chain(
            first=compaction.first_id or chain.first,
            previous=compaction.previous_id or (chain.current if number == following else None),
            current=compaction.window_id,
            number=number,
        )
    return chain


_OUTPUT_OF = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}
"""The type of the output of each type of call."""

_OUTPUTS = frozenset(_OUTPUT_OF.values())


def is_output(item: Item) -> bool:
    """Return whether an item answers a call."""
    return item["type"] in _OUTPUTS


def paired(past: Sequence[Past]) -> tuple[Past, ...]:
    """Return a history in which every call has an output and every output has a call.

    An added output has neither a time nor a line.
    """
    items = [each.item for each in past]
    called = {(_OUTPUT_OF[kind], call_id) for kind, call_id in _ids(items) if kind in _OUTPUT_OF}
    answered = {(kind, call_id) for kind, call_id in _ids(items) if kind in _OUTPUTS}
    whole: list[Past] = []
    for each in past:
        item = each.item
        by_service = item["type"] == "tool_search_output" and item.get("execution") == "server"
        known = item.get("call_id") is None or (str(item["type"]), item["call_id"]) in called
        if is_output(item) and not by_service and not known:
            continue
        whole.append(each)
        output, call_id = _OUTPUT_OF.get(str(item["type"])), item.get("call_id")
        if output is not None and call_id is not None and (output, call_id) not in answered:
            whole.append(Past(_aborted(output, call_id)))
    return tuple(whole)


def _ids(items: Iterable[Item]) -> Iterator[tuple[str, object]]:
    return ((str(item["type"]), item.get("call_id")) for item in items)


def _aborted(kind: str, call_id: object) -> Item:
    if kind == "tool_search_output":
        found: Item = {"status": "completed", "execution": "client", "tools": []}
        return {"type": kind, "call_id": call_id, **found}
    return {"type": kind, "call_id": call_id, "output": "aborted"}


_SEARCH = "web_search_call"

KEPT_TOKENS = 20_000
"""Budget in tokens for the user's messages that a compaction without a replacement keeps."""

NO_SUMMARY = "(no summary available)"


class Rebuild:
    """Collects the items of a history and their places, from a given place on."""

    def __init__(self, choice: Choice, outline: FirstPass) -> None:
        self.choice = choice
        self._base = choice.base
        self._outline = outline
        self.start = outline.start if choice.base is None else choice.base.place
        self.reader = Reader(self, start=self.start)
        if choice.base is not None:
            # Without ordinals all lines count, including earlier ones that are not read again.
            self.reader.scale.lines = max(0, choice.base.seq - outline.shift - 1)
        self._past: list[Past] = []
        self._reports: list[tuple[int, Tokens]] = []
        """The credible reports of tokens, each with the number of items before it."""
        self.reconstructed = False
        """Whether part of the history was reconstructed (CKP-26)."""
        self.found = choice.base is None
        """Whether the reader has passed the record with which the history begins."""

    def result(self) -> tuple[Past, ...]:
        """Return the history so far as Codex would send it, with calls and outputs paired."""
        return paired(self._past)

    def calibration(self) -> tokens.Calibration:
        """Return the ratio of reported tokens to estimates for these items."""
        sizes = [0, *accumulate(tokens.of_item(each.item) for each in self._past)]
        reports, seen, has_pages = list[tokens.TokenReport](), 0, False
        for count, usage in self._reports:
            if count > seen:  # otherwise it repeats the last report
                has_pages = any(each.item["type"] == _SEARCH for each in self._past[seen:count])
                seen = count
            report = tokens.TokenReport(sizes[count], usage.total, usage.is_estimate, has_pages)
            reports.append(report)
        return tokens.calibrated(reports)

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:
        """Request items, reports and rollbacks in full."""
        items = kind in {None, "response_item", "compacted", "inter_agent_communication"}
        unseen = kind == "response_item" and inner == "system"
        events = kind == "event_msg" and tag in {"thread_rolled_back", "token_count", None}
        return WHOLE if (items and not unseen) or events else NOTED

    def take(self, line: Line) -> None:
        """Take the next line."""
        if line.passed_over or not counts(line):
            return
        match line.kind:
            case "response_item":
                beside = NOTHING if line.bare else object_of(line.envelope.get("metadata"))
                self._response_item(line, beside)
            case "compacted":
                self._compacted(line)
            case "inter_agent_communication":
                self._past += [self._from(line, item) for item in _letter(line.payload)]
            case "event_msg" if isinstance(line.item, RolledBack):
                items = [each.item for each in self._past]
                del self._past[before_last_turns(items, line.item.turns) :]
                left = len(self._past)
                self._reports = [each for each in self._reports if each[0] <= left]
            case "event_msg" if line.tag == "token_count":
                usage = line.item
                if isinstance(usage, Tokens) and usage.total > 0 and not usage.is_impossible:
                    self._reports.append((len(self._past), usage))
            case _:
                pass

    def _from(self, line: Line, item: Item) -> Past:
        return Past(item, line.stamp or None, f"seq:{line.seq + self._outline.shift}")

    def _response_item(self, line: Line, beside: Json) -> None:
        payload = line.payload
        item = read_item(payload)
        if item is None or item is OTHER or is_forgotten(item) or is_instruction(payload):
            return
        if item["type"] == "compaction_trigger" or item.get("role") == "system":
            return
        limit = beside.get("fallback_token_limit_override")
        if beside.get("delivered_assistant_message") is not None:
            return  # it was sent to another agent
        if limit is not None and whole_of(limit) is None:
            return
        cuttable = is_output(item) and item["type"] != "tool_search_output"
        most = tokens.OUTPUT_TOKENS if limit is None else whole_of(limit) or 0
        self._past.append(self._from(line, tokens.cut_output(item, most) if cuttable else item))

    def _compacted(self, line: Line) -> None:
        replacement = replacement_of(line.payload)
        if self._base is not None and line.place == self._base.place:
            self._replace(line, replacement or ())
            self.found = replacement is not None
        elif replacement is None and is_legacy(line.payload):
            message = text_of(line.payload.get("message")) or NO_SUMMARY
            kept = kept_prompts(each.item for each in self._past)
            self._replace(line, (*kept, user_message([message])))
            self._past[-1] = evolve(self._past[-1], is_summary=True)
            self.reconstructed = True

    def _replace(self, line: Line, items: Sequence[Item]) -> None:
        """Restart with the history of a record; its user messages are older (JUN-43)."""
        said = first_said(items, payloads_of(line.payload), self._outline.said, line.place)
        self._past = [self._from(line, item) for item in items]
        self._reports.clear()
        for number, first in said.items():
            its = self._past[number]
            self._past[number] = evolve(its, at=first.stamp or None, ref=f"seq:{first.seq}")


def before_last_turns(items: Sequence[Item], turns: int) -> int:
    """Return the number of items before the last turns and the context written with them."""
    begins = [place for place, item in enumerate(items) if begins_turn(item)]
    if turns == 0 or not begins:
        return len(items)
    cut = begins[max(0, len(begins) - turns)]
    while cut > begins[0] and states_context(items[cut - 1]):
        cut -= 1
    return cut


def kept_prompts(items: Iterable[Item], most: int = KEPT_TOKENS) -> list[Item]:
    """Return the user's newest messages within `most` tokens; the oldest of these may be cut."""
    kept: list[Item] = []
    left = most
    for item in reversed([item for item in items if is_prompt(item)]):
        if left == 0:
            break
        parts = texts(item)
        cost = tokens.approximate_tokens("".join(parts))
        kept.append(user_message(parts if cost <= left else _cut_parts(parts, left)))
        left = max(0, left - cost)
    return kept[::-1]


def _cut_parts(parts: Sequence[str], most: int) -> list[str]:
    """Cut the middle out of a text in several parts; the cut mark becomes a part."""
    ends = tokens.ends_of("".join(parts), most)
    if ends is None:
        return list(parts)
    before, mark, after = ends
    size = sum(map(len, parts))
    return [*_pieces(parts, 0, len(before)), mark, *_pieces(parts, size - len(after), size)]


def _pieces(parts: Iterable[str], start: int, stop: int) -> Iterable[str]:
    """Yield the parts of the joined text between two positions."""
    at = 0
    for part in parts:
        piece = part[max(0, start - at) : max(0, stop - at)]
        at += len(part)
        if piece:
            yield piece


def _letter(payload: Json) -> Iterable[Item]:
    """Return the item of an agent's message in the format of older versions."""
    names = {name: text_of(payload.get(name)) for name in ("author", "recipient")}
    content, sealed = payload.get("content"), payload.get("encrypted_content")
    parts: list[Json] = [{"type": "input_text", "text": content}]
    if sealed is not None:
        kind = "NEW_TASK" if payload.get("trigger_turn") is True else "MESSAGE"
        who = f"Task name: {names['recipient']}\nSender: {names['author']}\n"
        head = f"Message Type: {kind}\n{who}Payload:\n"
        parts = [{"type": "input_text", "text": head}]
        parts.append({"type": "encrypted_content", "encrypted_content": sealed})
    item = read_item({"type": "agent_message", **names, "content": parts})
    return () if item is None else (item,)


@frozen
class RebuiltHistory:
    """The history of a session; `Choice` explains `baseline`.

    `past` are the items as Codex would send them, without base instructions and without fresh
    context, each with its time and line.
    """

    past: tuple[Past, ...]
    reconstructed: bool
    chain: Chain
    context: tokens.Context
    baseline: int | None

    @property
    def items(self) -> tuple[Item, ...]:
        """Return the items without time and line."""
        return tuple(each.item for each in self.past)


def history_of(outline: FirstPass, rebuild: Rebuild) -> RebuiltHistory:
    """Combine the results of both passes."""
    past, choice = rebuild.result(), rebuild.choice
    size = tokens.of_items(each.item for each in past)
    return RebuiltHistory(
        past=past,
        reconstructed=rebuild.reconstructed,
        chain=choice.chain,
        context=tokens.context(outline.usage, size, rebuild.calibration(), stale=outline.stale),
        baseline=choice.baseline,
    )


def windows_of(outline: FirstPass, choice: Choice) -> tuple[HistoryWindow, ...]:
    """Return the windows of a session that count, oldest first (WIN-12)."""
    first = outline.window_id or next((w.first_id for w in choice.windows if w.first_id), None)
    windows = [HistoryWindow(0, first, None, outline.opened_seq, outline.opened_at)]
    for compaction in choice.windows:
        before, opening = windows[-1], outline.openings[compaction.index]
        following = before.number + 1
        number = following if compaction.number is None else compaction.number
        after = opening.after
        if after is None and opening.before is None and compaction.size is not None:
            after = compaction.size
        windows.append(
            HistoryWindow(
                number=number,
                window_id=compaction.window_id,
                previous_id=compaction.previous_id
                or (before.window_id if number == following else None),
                opened_seq=compaction.seq,
                opened_at=compaction.stamp,
                trigger=opening.trigger,
                strategy=compaction.strategy,
                tokens_before=opening.before,
                tokens_after=after,
                opener=compaction.opener,
            )
        )
    return tuple(windows)
