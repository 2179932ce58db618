"""The newest messages of a session, read from near its end, to tell whether a bundle stands.

A window begins with the newest compaction, so nothing before that need be read.  And a bundle can
only stand where its very bytes do, for Codex writes JSON in one way.  So whoever looks for one goes
back from the end of a file until either is met (`last_trace`), and reads on from that line.
Where that does not tell, it says so (`certain`), and the whole history has to (`core.history`).
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from codex_checkpoints.core.compaction.injection import last_bundle
from codex_checkpoints.core.history.items import Item, counts, read_item, replacement_of
from codex_checkpoints.core.history.window_ids import window_id_of
from codex_checkpoints.core.rollout.reader import NOTED, WHOLE, Line, Place, Reader

COMPACTION = b'"type":"compacted","payload":{'
"""How the line of a compaction begins; inside a text the quotes would be escaped."""

BEGINNINGS = (b'"payload":{"type":"task_started"', b'"payload":{"type":"turn_started"')
ROLLBACK = b'"payload":{"type":"thread_rolled_back"'
"""A rollback takes back what follows it, too, until the next task begins."""


def trace_of(text: str) -> bytes:
    """Return the bytes of a text as they stand in a rollout."""
    return orjson.dumps(text)[1:-1]


def last_trace(data: bytes, traces: Sequence[bytes]) -> int:
    """Return where the last of some traces begins, -1 where there is none."""
    return max(data.rfind(trace) for trace in traces)


class Recent:
    """The fold over the lines of a session from one near its end on."""

    def __init__(self, start: Place) -> None:
        """Begin at a line."""
        self.reader = Reader(self, start=start)
        self._at_head = start.offset == 0
        self.items: list[Item] = []
        self.window_id: str | None = None
        """The window that the newest compaction opened, where there was one and it says so."""
        self.compacted = False
        """Whether the items begin with a compaction."""
        self._clear = True

    def certain(self, text: str) -> bool:
        """Return whether the items tell which bundle stands, when it is asked of this text.

        They do when they begin with a compaction, or with that very bundle.  A rollback may bring
        an earlier window back, and an old compaction says only in part what is left.  Of a
        compaction one has to ask besides whether a rollback stands before it in the same task.
        """
        return self._clear and (self.compacted or last_bundle(self.items) == text)

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:
        """Want of the items only what may be a bundle."""
        match kind:
            case None:
                wanted = True
            case "response_item":
                wanted = tag in {"message", None} and inner not in {"assistant", "system"}
            case "event_msg":
                wanted = tag in {"thread_rolled_back", None}
            case _:
                wanted = kind in {"compacted", "session_meta"}
        return WHOLE if wanted else NOTED

    def take(self, line: Line) -> None:
        """Take the next line."""
        if not counts(line):
            return
        at_head, self._at_head = self._at_head, False
        match line.kind:
            case "response_item" if self.wants(line.kind, line.tag, line.inner) == WHOLE:
                item = read_item(line.payload)
                self.items += [] if item is None else [item]
            case "compacted":
                self._compacted(line)
            case "session_meta":
                # Codex reads no further back than to a head, wherever it stands.
                self._clear = self._clear and at_head
            case "event_msg" if line.tag == "thread_rolled_back":
                self._clear = False
            case _:
                pass

    def _compacted(self, line: Line) -> None:
        replacement = replacement_of(line.payload)
        if replacement is None:
            self._clear = False
            return
        self.items, self.compacted = list(replacement), True
        self.window_id = window_id_of(line.payload.get("window_id"))
