"""The doors by which Codex calls us: configured, looked at, answered.

Codex's own files are edited in `codex/`; the doors themselves are `hook` and `mcp`.
"""
