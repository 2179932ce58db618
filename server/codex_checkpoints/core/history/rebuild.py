"""The second pass: the items of a history, from the chosen window on.

Rules, as Codex follows them:

1. A replacement is taken as it stands; nothing in it is cut or reordered (WIN-14).
2. Outputs of calls that come later are cut to the limit that stands beside them.
3. A record without a replacement keeps what people said, up to a limit, and its message (CKP-26).
4. A rollback cuts before the turn it takes back, and before the context that came with it; what
   stood before the first turn stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codex_checkpoints.core.history.choice import Choice
from codex_checkpoints.core.history.forms import OTHER, Item
from codex_checkpoints.core.history.items import (
    counts,
    is_forgotten,
    is_instruction,
    read_item,
    texts,
    user_message,
)
from codex_checkpoints.core.history.pairing import is_output, paired
from codex_checkpoints.core.history.replacement import is_legacy, replacement_of
from codex_checkpoints.core.history.speakers import begins_turn, is_prompt, states_context
from codex_checkpoints.core.history.truncation import (
    OUTPUT_TOKENS,
    approximate_tokens,
    cut_output,
    ends_of,
)
from codex_checkpoints.core.rollout.fields import NOTHING, Json, object_of, text_of, whole_of
from codex_checkpoints.core.rollout.reader import NOTED, WHOLE, Line, Place, Reader
from codex_checkpoints.values import frozen

KEPT_TOKENS = 20_000
"""How much of what people said outlives a compaction that has no replacement of its own."""

NO_SUMMARY = "(no summary available)"


@frozen
class Rebuilt:
    """A history as it would be sent; `reconstructed` when part of it had to be made up (CKP-26)."""

    items: tuple[Item, ...]
    reconstructed: bool


class Rebuild:
    """The fold over the lines from the chosen place on that keeps the items of a history."""

    def __init__(self, choice: Choice, start: Place) -> None:
        """Begin at the record that the history begins with, else at `start`."""
        self._base = choice.base
        self.start = start if choice.base is None else choice.base.place
        self.reader = Reader(self, start=self.start)
        self.items: list[Item] = []
        """The items up to now, not paired yet."""
        self._reconstructed = False
        self.found = choice.base is None
        """Whether the record was met with which the history begins."""

    def result(self) -> Rebuilt:
        """Return the history up to now."""
        return Rebuilt(paired(self.items), self._reconstructed)

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:
        """Want items whole, and what changes which of them count."""
        items = kind in {None, "response_item", "compacted", "inter_agent_communication"}
        unseen = kind == "response_item" and inner == "system"
        rolled_back = kind == "event_msg" and tag in {"thread_rolled_back", None}
        return WHOLE if (items and not unseen) or rolled_back else NOTED

    def take(self, line: Line) -> None:
        """Take the next line."""
        if line.passed_over or not counts(line):
            return
        match line.kind:
            case "response_item":
                beside = NOTHING if line.bare else object_of(line.envelope.get("metadata"))
                self._response_item(line.payload, beside)
            case "compacted":
                self._compacted(line)
            case "inter_agent_communication":
                self.items.extend(_letter(line.payload))
            case "event_msg" if line.tag == "thread_rolled_back":
                turns = whole_of(line.payload.get("num_turns")) or 0
                self.items = without_last_turns(self.items, turns)
            case _:
                pass

    def _response_item(self, payload: Json, beside: Json) -> None:
        item = read_item(payload)
        if item is None or item is OTHER or is_forgotten(item) or is_instruction(payload):
            return
        if item["type"] == "compaction_trigger" or item.get("role") == "system":
            return
        limit = beside.get("fallback_token_limit_override")
        if beside.get("delivered_assistant_message") is not None:
            return  # said to somebody else
        if limit is not None and whole_of(limit) is None:
            return
        cuttable = is_output(item) and item["type"] != "tool_search_output"
        whole = whole_of(limit)
        tokens = OUTPUT_TOKENS if whole is None else whole
        self.items.append(cut_output(item, tokens) if cuttable else item)

    def _compacted(self, line: Line) -> None:
        replacement = replacement_of(line.payload)
        if self._base is not None and line.place == self._base.place:
            self.items = list(replacement or ())
            self.found = replacement is not None
        elif replacement is None and is_legacy(line.payload):
            message = text_of(line.payload.get("message")) or NO_SUMMARY
            self.items = [*kept_prompts(self.items), user_message([message])]
            self._reconstructed = True


def without_last_turns(items: Sequence[Item], turns: int) -> list[Item]:
    """Return a history without its last turns, and without the context that led to them."""
    begins = [place for place, item in enumerate(items) if begins_turn(item)]
    if turns == 0 or not begins:
        return list(items)
    cut = begins[max(0, len(begins) - turns)]
    while cut > begins[0] and states_context(items[cut - 1]):
        cut -= 1
    return list(items[:cut])


def kept_prompts(items: Iterable[Item], tokens: int = KEPT_TOKENS) -> list[Item]:
    """Return what people said, the newest first to count, the first that does not fit cut."""
    kept: list[Item] = []
    left = tokens
    for item in reversed([item for item in items if is_prompt(item)]):
        if left == 0:
            break
        parts = texts(item)
        cost = approximate_tokens("".join(parts))
        kept.append(user_message(parts if cost <= left else _cut_parts(parts, left)))
        left = max(0, left - cost)
    return kept[::-1]


def _cut_parts(parts: Sequence[str], tokens: int) -> list[str]:
    """Cut the middle out of a text in several parts; the mark is a part of its own."""
    ends = ends_of("".join(parts), tokens)
    if ends is None:
        return list(parts)
    before, mark, after = ends
    size = sum(map(len, parts))
    return [*_pieces(parts, 0, len(before)), mark, *_pieces(parts, size - len(after), size)]


def _pieces(parts: Iterable[str], start: int, stop: int) -> Iterable[str]:
    """Yield what lies between two places of the joined text, still in parts."""
    at = 0
    for part in parts:
        piece = part[max(0, start - at) : max(0, stop - at)]
        at += len(part)
        if piece:
            yield piece


def _letter(payload: Json) -> Iterable[Item]:
    """Make the item of an agent's message as older versions wrote it down."""
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
