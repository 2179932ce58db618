"""Connect Codex to us, report the connection, and answer its hooks."""
