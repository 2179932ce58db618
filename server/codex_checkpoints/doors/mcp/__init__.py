"""The MCP server, through which Codex reads and writes a session's memory."""
