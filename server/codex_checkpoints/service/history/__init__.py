"""Answers about the history of a session: windows, turns, changes, losses, digests, lineage."""
