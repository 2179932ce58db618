"""Session files followed and read: what each says, and which builds on which.

What is done with it, and the one object behind every door, lie beside this package.
"""
