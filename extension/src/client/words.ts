// Written by `python -m codex_checkpoints.doors.typescript` from sections/connect.py
// and sections/previews.py.

/** The ways in which Codex calls this extension. */
export const DOORS = {
  hook: "Hooks",
  mcp: "Memory tools",
} as const;

/** The problems of such a way. */
export const DOOR_PROBLEMS = {
  not_configured: "not connected",
  unreadable: "not known whether it is connected",
  program_missing: "the program that it calls is gone",
  outdated: "not as it would be connected now",
  failed: "the last call failed",
  no_hooks: "this Codex has no hooks that fit; update it",
  disabled: "switched off in Codex",
  untrusted: "waiting for you to trust it",
} as const;

/** The problems of Codex itself. */
export const CODEX_PROBLEMS = {
  codex_not_found: "not found on the PATH",
  timed_out: "gave no answer in time",
  codex_failed: "gave no answer",
  hooks_unknown: "has no hooks yet; update it",
} as const;

/** The trust of a user in a hook. */
export const TRUST = {
  trusted: "trusted",
  managed: "trusted by your organisation",
  untrusted: "not trusted yet",
  modified: "changed since you trusted it",
} as const;

export const NEVER_RAN = "never ran";
export const LAST_RAN = "last ran";

/** The modes of a restore. */
export const MODES = {
  soft: "Continue with context",
  hard: "Reset context for performance"
} as const;

/** What a restore in a mode gives the model. */
export const MODE_EFFECTS = {
  soft: "The whole conversation up to the marker. The context is as full as it was then.",
  hard: "An empty context with a short summary of what was recorded. The conversation stays in the original session."
} as const;

/** What a restore with an empty context cannot give. */
export const HARD_LIMIT = "The model gets only what the new session starts with. Add a note for what else it must know." as const;

/** The parts that a restore can bring back. */
export const SCOPES = {
  conversation: "Conversation",
  files: "Files",
  both: "Both"
} as const;

/** What a restore of these parts writes. */
export const SCOPE_EFFECTS = {
  conversation: "Your files are not changed. Restore starts a new session, and this one stays as it is.",
  files: "Only the ticked files are written, and Undo puts them back. The session stays as it is.",
  both: "Only the ticked files are written, and Undo puts them back. Restore starts a new session, and this one stays as it is."
} as const;

/** The parts of a state pack. */
export const PACK_PARTS = {
  notice: "Notice and lineage",
  mode: "Mode and reason",
  notes: "Notes",
  files: "Files",
  pinned: "Pinned",
  commands: "Commands",
  window: "Last messages",
  digest: "Digest"
} as const;

/** The kinds of items in a pack, by part and kind. */
export const PACK_ITEMS = {
  "notes/step": "Step",
  "notes/decision": "Decision",
  "notes/fact": "Fact",
  "files/reread": "Lines to read again of",
  "pinned/message": "Pinned message",
  "pinned/note": "Pinned note",
  "pinned/text": "Pinned text",
  "commands/command": "Command",
  "window/message": "Message"
} as const;

/** The state of a file since the marker, by the code of a warning. */
export const FILE_NOTES = {
  drift: "changed since",
  missing_files: "no longer there",
  not_compared: "not known whether it changed"
} as const;

/** What the list of shortened items says. */
export const TOO_LONG = "Too long to quote in full." as const;

/** The heading of the files that differ. */
export const NOT_AS_THEN = "Not as they were at the end of the marker's turn:" as const;

/** The title of a digest's section, and the nouns for one line and several. */
export const DIGEST_SECTIONS = {
  STATUS: [
    "Status",
    "line",
    "lines"
  ],
  REQUESTS: [
    "Requests",
    "request",
    "requests"
  ],
  OUTCOMES: [
    "Answers",
    "answer",
    "answers"
  ],
  CHANGES: [
    "Changed files",
    "changed file",
    "changed files"
  ],
  CHECKS: [
    "Commands",
    "command",
    "commands"
  ],
  PINNED: [
    "Pins",
    "pin",
    "pins"
  ],
  EARLIER_SUMMARY: [
    "Summary by Codex",
    "line of Codex's summary",
    "lines of Codex's summary"
  ],
  KEY_LINES: [
    "Key lines",
    "key line",
    "key lines"
  ]
} as const;

/** What the preview of a compaction shows. */
export const REPLACEMENT = "What Codex sees instead of the history, from your next message on." as const;

/** The data that no push sends. */
export const NEVER_PUSHED = [
  "Your files: only their names and the texts in the conversation leave.",
  "Hashes as proof, so that nothing is taken as verified elsewhere.",
  "Images, audio, other binary data, and texts that are encrypted for your account.",
  "A session with a private key, or in a folder that the setting neverPush names."
] as const;

/** The nouns for one and several parts that a push leaves out. */
export const LEFT_OUT = {
  images: [
    "image",
    "images"
  ],
  audio: [
    "audio recording",
    "audio recordings"
  ],
  binary: [
    "block of binary data",
    "blocks of binary data"
  ],
  encrypted: [
    "encrypted text",
    "encrypted texts"
  ],
  unreadable: [
    "unreadable line",
    "unreadable lines"
  ]
} as const;

/** What a push without redactions says. */
export const NOTHING_REDACTED = "Nothing was redacted, and nothing was left out." as const;

/** What a push says that has nothing to send. */
export const NOTHING_NEW = "This session is there already, and nothing new leaves." as const;
