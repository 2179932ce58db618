"""Connects Codex to us, reports the connection, and answers its hooks."""
