"""Reports the losses and costs of each compaction in a session's file, including Codex's own."""
