"""Push sessions to a store that several machines share, and pull them as branches.

`outgoing` decides and shows what leaves, `pushing` sends it, `pulling` makes a branch of it.
Nothing else in the service opens a remote.
"""
