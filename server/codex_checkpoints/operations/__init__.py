"""The operations that language server, command line and MCP server share: params in, record out.

If a record of the service or the core is the whole answer, it is returned unchanged.  An operation
takes the `Services` of its caller, who brings the index up to date before and is notified of
changes.
"""
