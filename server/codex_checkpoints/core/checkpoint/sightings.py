"""What one observation saw, from the lines that tell it, and under which name that is kept.

Which observations are read at all is decided by `observations`.
"""

from __future__ import annotations

from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.place import Place
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.rollout import tools
from codex_checkpoints.core.rollout.items import (
    CommandRun,
    FilesChanged,
    FileViewed,
    ItemCompleted,
    ToolCall,
    ToolOutput,
    ToolRan,
)
from codex_checkpoints.core.rollout.parsing import item_of
from codex_checkpoints.core.rollout.paths import encoded, uri_of
from codex_checkpoints.core.rollout.tools import Seen

_NO_TEXT = ToolOutput("", ())


def seen_in(line: bytes, answer: bytes | None) -> tuple[Seen, ...]:
    """Read what the line of an item saw, or that of a call with the line of its answer."""
    item = item_of(line)
    if isinstance(item, ItemCompleted):
        item = item.item
    match item:
        case ToolCall():
            outcome = _NO_TEXT if answer is None else item_of(answer)
            return tools.called(item, outcome.texts) if isinstance(outcome, ToolOutput) else ()
        case CommandRun() | FilesChanged() | ToolRan() | FileViewed():
            return tools.seen_by(item)
        case _:
            return ()


def name_of(seen: Seen, place: Place) -> tuple[str | None, bool]:
    """Return the uri of what was seen, and whether its name was changed on the way."""
    if seen.kind == "command":
        return value(seen.name, MAX_VALUE_CHARS) or None, False
    if seen.kind == "tool_output":
        name = encoded(seen.name)
        return (name if len(name) <= MAX_URI_CHARS else None), False
    _, folder, base = place
    found = uri_of(seen.name, folder=seen.folder, turn_folder=folder, base=base)
    return (None, False) if found is None else (found.uri, found.encoded)
