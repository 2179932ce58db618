"""Words a refusal for people: one sentence, the same on the terminal and in the editor.

The service's own message, with ids, is for programs and logs.  A person has just named or clicked
the session, so this sentence says "this session".  `doors/cli/output` and `doors/lsp` show it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from codex_checkpoints.core.restore.records import counted
from codex_checkpoints.service.refusal import Refusal

_SENTENCES: Mapping[str, str] = {
    "turn_not_complete": "The last turn has not ended yet.",
    "session_live": "Codex or another program has this session open. Close it there first.",
    "evidence_unknown": "The session no longer has what was chosen as evidence.",
    "depends_on_missing": "Codex never opened this file in this session.",
    "stale_read": "The file has changed since Codex read it, so it cannot be evidence now.",
    "not_smaller": "The context would not become smaller.",
    "item_too_large": "Your newest message alone does not fit into the context window.",
    "codex_failed": "Codex did not write a summary.",
    "secret_text": "This looks like a password or a key, and such texts are never kept.",
    "policy_text": "This reads like an instruction, and notes hold only facts and decisions.",
}
"""By the code."""

_NOT_UNDONE = "The session has gone on since, so this compaction cannot be undone."
_REASONS: Mapping[str, str] = {
    "archived": "This session is archived.",
    "refused": "Codex cannot resume this session: its file is damaged.",
    "compacted": "This session was compacted in the meantime.",
    "imported": "This pack was imported already.",
    "undone": "This compaction was undone already.",
    "later_compaction": "The session was compacted again since.",
    "later_window": _NOT_UNDONE,
    "other_bytes": _NOT_UNDONE,
    "without_effect": "Codex would ignore lines that are added to this session.",
    "no_id": "The session's file does not hold a valid ID.",
    "not_ours": "Only sessions that were made here can be deleted.",
    "standing": "The compaction that made this session is in force.",
    "referred_to": "Other sessions were made from this one, so it is not deleted.",
    "gone": "The session of this marker is no longer there.",
    "settings": "The file config.toml cannot be read, and it may name hooks.",
}
"""By the `reason` of a `conflict`, or of `blocked_by_hook`."""

_BY_REASON = frozenset({"conflict", "blocked_by_hook"})
_GONE: Mapping[str, tuple[str, str]] = {
    "unknown_session": ("session", "session"),
    "unknown_turn": ("turnId", "turn"),
    "unknown_checkpoint": ("checkpointId", "marker"),
    "unknown_operation": ("operationId", "restore"),
    "unknown_compaction": ("compactionId", "compaction"),
    "unknown_note": ("id", "note"),
}
"""The fact that names the missing thing, and the noun for it."""

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|turn-\d+")


def sentence_of(refusal: Refusal) -> str:
    """Return the sentence; the service's own words where no other sentence is better."""
    code, facts = refusal.code, refusal.facts
    where = facts.get("path")
    if code == "storage_error" and where is not None:
        return f"{where} cannot be read or written: {facts.get('reason')}."
    if code == "unreadable_source" and "file" not in facts and "sessionId" in facts:
        return f"The file of this session cannot be read: {facts.get('reason')}."
    if code in _BY_REASON:
        known = _REASONS.get(str(facts.get("reason")))
        return _sentence(refusal.message) if known is None else known
    if code == "invalid_payload" and facts.get("reason") != "not_a_pack":
        return f"This is not valid: {refusal.message.removesuffix('.')}."
    if code == "has_own_turns":
        own = counted(int(str(facts["ownTurns"])), "turn")
        return f"You continued this session: {own} of your own would be deleted with it."
    if code == "secret_text" and "kinds" in facts:
        return _sentence(refusal.message)  # of a session that is pushed, not of a note
    if code in _GONE:
        key, noun = _GONE[code]
        # Ids are not typed: it came from a list, and the item has disappeared since.
        if _ID.fullmatch(str(facts.get(key))):
            return f"This {noun} is no longer there."
    return _SENTENCES.get(code) or _sentence(refusal.message)


def _sentence(message: str) -> str:
    """Return words of the service as a sentence; a name at the beginning stays as it is."""
    first = message.partition(" ")[0]
    text = message[:1].upper() + message[1:] if first.isalpha() else message
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
