"""Pushes sessions to a store that several machines share, and pulls them as branches.

`outgoing` selects and shows the data to send, and `push` sends it.  `fetch` copies a session here,
to be read, and `pull` makes a branch from it.  `search` finds texts.
Nothing else in the service opens a remote.
"""
