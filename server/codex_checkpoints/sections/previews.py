"""The words of previews that terminal and editor share: of a compaction, a restore and a push.

The editor gets the tables as `client/words.ts`.
"""

from __future__ import annotations

from codex_checkpoints.core.restore.pack_items import Part
from codex_checkpoints.sections.terminal import plain

MODES = {"soft": "Continue with context", "hard": "Reset context for performance"}
MODE_EFFECTS = {
    "soft": ("The whole conversation up to the marker. The context is as full as it was then."),
    "hard": (
        "An empty context with a short summary of what was recorded. The conversation stays in the "
        "original session."
    ),
}
HARD_LIMIT = (
    "The model gets only what the new session starts with. Add a note for what else it must know."
)
_TICKED = "Only the ticked files are written, and Undo puts them back."
SCOPES = {"conversation": "Conversation", "files": "Files", "both": "Both"}
SCOPE_EFFECTS = {
    "conversation": (
        "Your files are not changed. Restore starts a new session, and this one stays as it is."
    ),
    "files": f"{_TICKED} The session stays as it is.",
    "both": f"{_TICKED} Restore starts a new session, and this one stays as it is.",
}
PACK_PARTS = {
    "notice": "Notice and lineage",
    "mode": "Mode and reason",
    "notes": "Notes",
    "files": "Files",
    "pinned": "Pinned",
    "commands": "Commands",
    "window": "Last messages",
    "digest": "Digest",
}
PACK_ITEMS = {
    "notes/step": "Step",
    "notes/decision": "Decision",
    "notes/fact": "Fact",
    "files/reread": "Lines to read again of",
    "pinned/message": "Pinned message",
    "pinned/note": "Pinned note",
    "pinned/text": "Pinned text",
    "commands/command": "Command",
    "window/message": "Message",
}
"""The kind of an item by its part and the beginning of its id."""

FILE_NOTES = {
    "drift": "changed since",
    "missing_files": "no longer there",
    "not_compared": "not known whether it changed",
}
"""The state of a file since the marker's turn, by the code of the warning about it."""

TOO_LONG = "Too long to quote in full."
NOT_AS_THEN = "Not as they were at the end of the marker's turn:"

DIGEST_SECTIONS = {
    "STATUS": ("Status", "line", "lines"),
    "REQUESTS": ("Requests", "request", "requests"),
    "OUTCOMES": ("Answers", "answer", "answers"),
    "CHANGES": ("Changed files", "changed file", "changed files"),
    "CHECKS": ("Commands", "command", "commands"),
    "PINNED": ("Pins", "pin", "pins"),
    "EARLIER_SUMMARY": (
        *("Summary by Codex", "line of Codex's summary", "lines of Codex's summary"),
    ),
    "KEY_LINES": ("Key lines", "key line", "key lines"),
}
"""The title of each section of a digest, and the nouns for one and for several of its lines."""

REPLACEMENT = "What Codex sees instead of the history, from your next message on."

NEVER_PUSHED = (
    "Your files: only their names and the texts in the conversation leave.",
    "Hashes as proof, so that nothing is taken as verified elsewhere.",
    "Images, audio, other binary data, and texts that are encrypted for your account.",
    "A session with a private key, or in a folder that the setting neverPush names.",
)
LEFT_OUT = {
    "images": ("image", "images"),
    "audio": ("audio recording", "audio recordings"),
    "binary": ("block of binary data", "blocks of binary data"),
    "encrypted": ("encrypted text", "encrypted texts"),
    "unreadable": ("unreadable line", "unreadable lines"),
}
"""The nouns for one and for several parts that a push leaves out."""

NOTHING_REDACTED = "Nothing was redacted, and nothing was left out."
NOTHING_NEW = "This session is there already, and nothing new leaves."


def item_name(part: Part, item_id: str) -> str:
    """Return the name of an item for people; a file and a pinned file go by their id."""
    if part == "notes" and item_id.partition(":")[0] == "task":
        return "The task"
    kind, colon, own = item_id.partition(":")
    name = PACK_ITEMS.get(f"{part}/{kind}") if colon else None
    return plain(item_id if name is None else f"{name} {own}")
