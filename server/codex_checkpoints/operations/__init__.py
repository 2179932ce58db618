"""The operations that language server, command line and MCP server share: params in, record out.

A record of the service or the core that is the whole answer goes out as it is.  An operation takes
the `Services` of its caller, who brings the index up to date before and is notified of changes.
"""
