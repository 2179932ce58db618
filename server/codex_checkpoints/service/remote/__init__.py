"""Pushes sessions to a store that several machines share, and pulls them as branches.

`outgoing` selects and shows the data to send, `push` sends it, `pull` makes a branch from it.
Nothing else in the service opens a remote.
"""
