"""Refuses a compaction: nothing new, another process was faster, a hook stopped it (CKP-11)."""

from __future__ import annotations

from collections.abc import Sequence

from codex_checkpoints.codex import resume
from codex_checkpoints.core.compaction.records import (
    Record,
    current_compaction,
)
from codex_checkpoints.service.compaction.install import Events
from codex_checkpoints.service.compaction.request import (
    HookEvent,
    HookOutcome,
    without_reasons,
)
from codex_checkpoints.service.compaction.source import (
    CompactionSource,
)
from codex_checkpoints.service.refusal import Refusal


def refuse_repeated(records: Sequence[Record], source: CompactionSource) -> None:
    """Refuse `conflict` if nothing was added since the newest compaction; name that one."""
    newest = current_compaction(records, source.session_id)
    if newest is None:
        return
    added = len(source.traced.history.items) - len(newest.items)
    if added > 0 if newest.into == "in-place" else source.end != newest.source.bytes_before:
        return
    message = f"session {source.session_id} has nothing new since it was compacted"
    facts = {
        "sessionId": source.session_id,
        "reason": "nothing_new",
        "compactionId": newest.compaction_id,
        "into": newest.session_id,
        "resume": resume(newest.session_id),
        "canForce": True,
    }
    raise Refusal("conflict", message, facts)


def refuse_second(records: Sequence[Record], source: CompactionSource) -> None:
    """Refuse `conflict` if another process compacted a session since it was read."""
    newest = current_compaction(records, source.session_id)
    if newest is not None and newest.compaction_id not in source.known:
        message = f"session {source.session_id} was compacted meanwhile: {newest.session_id}"
        facts = {"sessionId": source.session_id, "reason": "compacted", "into": newest.session_id}
        raise Refusal("conflict", message, facts)


def blocked_by_hook(
    source: CompactionSource,
    before: HookEvent,
    results: Sequence[HookOutcome],
    stopped: HookOutcome,
    events: Events,
) -> Refusal:
    """Write the event of a compaction that a hook stopped, and return its refusal (CKP-11).

    Unreadable settings, which may name a hook, count as a hook without words.
    """
    facts: dict[str, object] = {
        "sessionId": source.session_id,
        "hook": stopped.number,
        "outcome": stopped.outcome,
        "reason": stopped.reason,
    }
    if before.hooks[stopped.number - 1].command:
        events.note("CompactionBlocked", {"hooks": without_reasons(results)})
        message = f"preCompact hook {stopped.number} stopped it: {stopped.outcome}"
        message += f", {stopped.reason}" if stopped.reason else ""
    else:
        events.note("CompactionBlocked", {"hooks": [], "reason": "settings"})
        message = "the settings cannot be read, and they may name hooks that would stop it"
        hint = "`codex-checkpoints doctor` names the error in config.toml."
        facts |= {"reason": "settings", "hook": None, "hint": hint}
    return Refusal("blocked_by_hook", message, facts)
