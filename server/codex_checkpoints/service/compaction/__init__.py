"""Compaction as a protocol: planned, allowed, installed, taken back.

What was done is kept by `compaction_records`; what Codex's own ones lost is told by `losing`.
"""
