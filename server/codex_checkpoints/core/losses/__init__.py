"""What each compaction in a session's file loses and costs, those of Codex included."""
