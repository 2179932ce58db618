"""What Codex was given of a session, as the receipts tell."""

from __future__ import annotations

from codex_checkpoints.values import frozen


@frozen
class Receipt:
    """Something that Codex was given; of the text only digest and size are kept.

    `door` is `hook` or `memory.read`; `event` and `source` are what a hook was called for;
    `isCurrent` says whether it would be given the very same text now.
    """

    at: str
    door: str
    event: str | None
    source: str | None
    window_id: str | None
    seq: int | None
    digest: str
    size: int
    is_current: bool
