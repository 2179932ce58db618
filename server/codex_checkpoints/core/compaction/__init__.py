"""Compaction: from a checkpoint and a history to what Codex sends instead (JUN-34)."""
