"""Restores the files of a session, and copies them before Codex changes them."""
