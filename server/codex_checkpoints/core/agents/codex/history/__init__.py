"""Rebuilds the history that Codex makes when it resumes a session, and sends to a model.

Two passes read the bytes.  `scan` reads all of them and keeps a few words a turn.  `rebuild`
decides from those where the history begins, reads from there on and keeps the items, so memory
holds the newest window only, and a rollback past a compaction still finds the window before it
(WIN-8).
"""
