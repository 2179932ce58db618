"""The storage boundary: the only rooms that touch Codex's session files.

`tree` finds the files, `rollout_file` reads the bytes of one and notices when it was replaced,
`names` knows what people called a thread, `index` remembers in SQLite what was found, `locks` asks
whether Codex has a session loaded.  Nothing here knows what a checkpoint is (STO-14); nothing here
writes a session file.
"""
