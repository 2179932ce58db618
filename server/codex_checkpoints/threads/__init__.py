"""The storage boundary: the only rooms that touch Codex's session files.

`tree` finds the files, `rollout_file` reads the bytes of one and notices when it was replaced,
`session_file` follows a session through its chain of files, `index` remembers in SQLite what was
found, `locks` asks whether Codex has a session loaded.  Nothing here knows what a checkpoint is
for; nothing here writes a session file.
"""
