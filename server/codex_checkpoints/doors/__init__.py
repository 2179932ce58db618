"""The language server, the command line, the MCP server and the hook.

Each translates a request into a call of an operation, and its result into an answer; none decides.
"""
