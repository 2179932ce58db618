"""Builds the history that Codex sends after a compaction, from checkpoint and history (JUN-34)."""
