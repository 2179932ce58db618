"""Compactions at a terminal: what one did or would do, what took it back, the way past one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codex_checkpoints.presentation.next_commands import NOTHING_NAMED, Named
from codex_checkpoints.presentation.terminal import plain

if TYPE_CHECKING:
    from codex_checkpoints import protocol

_BY_CODEX = {
    "model": ("summary: Codex's own, by its model; it is not the same twice",),
    "provider": ("summary: by the service of Codex's provider; nobody else can read it",),
}


def compaction_lines(done: protocol.Compacted, named: Named = NOTHING_NAMED) -> list[str]:
    """Return what a compaction did, or would do: sizes, what stays and goes, where it goes on."""
    dropped = ", ".join(f"{count} {kind}" for kind, count in _gone(done).items())
    before = f"{done.tokens_before:,} tokens in use ({done.tokens_before_source})"
    after = f"{done.tokens_after:,} ({done.tokens_after_source}), at most {done.bound:,}"
    told = [
        f"{before} → a replacement of {after}; base instructions come on top",
        f"kept {len(done.kept)}, cut {len(done.truncated)}, dropped {len(done.dropped)}"
        + (f" ({dropped})" if dropped else ""),
        f"standing context: {done.standing_context}",
        *_BY_CODEX.get(done.determinism, ()),
        *(f"hook {each.number}: {each.outcome}" for each in done.hooks),
    ]
    if done.compaction_id is None:
        where = "a new session" if done.into == "new" else "the same session"
        return [f"It would go on in {where}; nothing was written.", *map(plain, told)]
    lines = [
        f"Compaction {done.compaction_id} is installed.",
        *told,
        f"go on:     {named.codex(done.resume or '')}",
        f"take back: {named.ours(f'uncompact {done.compaction_id}')}",
    ]
    return [*map(plain, lines)]


def _gone(done: protocol.Compacted) -> dict[str, int]:
    counts: dict[str, int] = {}
    for piece in done.dropped:
        counts[piece.kind] = counts.get(piece.kind, 0) + 1
    return dict(sorted(counts.items()))


def resume_notices(resumed: protocol.Resumed, named: Named = NOTHING_NAMED) -> list[str]:
    """Return what a person is told before going on, one line, with the command that helps."""
    if resumed.notice is None:
        return []
    done = resumed.compacted
    if done is not None and done.compaction_id is not None:
        command = f"uncompact {done.compaction_id}"
    elif done is not None:
        command = f"resume {resumed.source_session_id}"
    elif resumed.continued_by is not None:
        command = f"resume {resumed.continued_by}"
    elif resumed.not_compacted is not None:
        return [plain(resumed.notice)]
    else:
        command = f"compact {resumed.source_session_id}"
    return [plain(f"{resumed.notice} → {named.ours(command)}")]


def uncompacted_lines(done: protocol.Uncompacted, named: Named = NOTHING_NAMED) -> list[str]:
    """Return where the work goes on again."""
    return [
        f"Compaction {plain(done.compaction_id)} is taken back.",
        f"go on: {plain(named.codex(done.resume))}",
    ]
