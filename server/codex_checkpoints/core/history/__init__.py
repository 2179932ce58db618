"""What a model would be sent: the history that Codex rebuilds when it resumes a session.

Two passes over the bytes.  `survey` reads all of them and keeps a few words a turn: where windows
were opened, which turns were taken back, what the last call used.  `choice` decides on that where
the history begins, and `rebuild` reads from there on and keeps the items.  So memory is what the
newest window holds, however long the file is, and a rollback past a compaction still finds the
window before it (WIN-8).

`items` knows which items Codex can read and what it makes of them, `speakers` which of them begin a
turn, `tokens` counts and cuts, `windows` follows the chain of windows.  Everything here was held
against the real program, whose answers to damaged and old files are part of the tests.
"""
