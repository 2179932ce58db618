"""Finds the items that replace the history at each compaction.

They are the replacement of the record, else the newest prompts that Codex keeps and the record's
message (CKP-26).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from codex_checkpoints.core.agents.codex.history.authorship import is_prompt
from codex_checkpoints.core.agents.codex.history.items import (
    Item,
    counts,
    read_item,
    replacement_of,
    texts,
    user_message,
)
from codex_checkpoints.core.agents.codex.history.rebuild import (
    KEPT_TOKENS,
    before_last_turns,
    kept_prompts,
)
from codex_checkpoints.core.agents.codex.history.scan import Compaction, HistoryScan
from codex_checkpoints.core.agents.codex.history.tokens import approximate_tokens
from codex_checkpoints.core.agents.codex.reader import Fold, Line
from codex_checkpoints.core.events import RolledBack
from codex_checkpoints.core.fields import is_list, is_object, text_of

_REMEMBERED = 4 * KEPT_TOKENS
"""Tokens of remembered prompts: more than a compaction keeps, for rollbacks."""

_SEALED = frozenset({"compaction", "context_compaction"})
_NO_TEXT = frozenset({"type", "role", "id", "call_id", "encrypted_content", "image_url", "status"})

Taker = Callable[[Compaction, tuple[Item, ...]], None]


class Replacements(Fold):
    """The fold that gives each compaction with the items that replace the history."""

    def __init__(self, scan: HistoryScan, give: Taker) -> None:
        """Follow a scan of the same reader, which takes each line first."""
        self._scan = scan
        self._give = give
        self._prompts: list[Item] = []
        self._prompt_tokens = 0

    def take(self, line: Line) -> None:
        """Note prompts and rollbacks; give the items if the line replaced a history."""
        if line.passed_over or not counts(line):
            return
        match line.kind:
            case "compacted":
                self._replaced(line)
            case "response_item" if line.tag == "message" and line.inner == "user":
                self._prompted(line)
            case "event_msg" if isinstance(line.item, RolledBack):
                del self._prompts[before_last_turns(self._prompts, line.item.turns) :]
            case _:
                pass

    def _prompted(self, line: Line) -> None:
        item = read_item(line.payload)
        if item is None or not is_prompt(item):
            return
        self._prompts.append(item)
        self._prompt_tokens += _tokens([item])
        if self._prompt_tokens > 2 * _REMEMBERED:
            self._prompts = kept_prompts(self._prompts, _REMEMBERED)
            self._prompt_tokens = _tokens(self._prompts)

    def _replaced(self, line: Line) -> None:
        mark = self._scan.newest
        if not isinstance(mark, Compaction) or mark.place != line.place:
            return  # Codex ignores it
        items = replacement_of(line.payload)
        if items is None:
            message = text_of(line.payload.get("message")) or ""
            items = (*kept_prompts(self._prompts), user_message([message]))
        self._prompts = [item for item in items if is_prompt(item)]
        self._prompt_tokens = _tokens(self._prompts)
        self._give(mark, tuple(items))


def _tokens(prompts: Iterable[Item]) -> int:
    return sum(approximate_tokens("".join(texts(each))) for each in prompts)


def is_sealed(item: Item) -> bool:
    """Return whether the provider encrypted a part of the history into an item."""
    return item["type"] in _SEALED


def all_texts(item: Item) -> Iterator[str]:
    """Yield each text of an item, in order, but for names, ids and encrypted content."""
    # A loop, not recursion: a file may nest values to any depth.
    waiting: list[object] = [item]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif is_object(value):
            inside = [each for key, each in value.items() if key not in _NO_TEXT]
            waiting.extend(reversed(inside))
        elif is_list(value):
            waiting.extend(reversed(value))
