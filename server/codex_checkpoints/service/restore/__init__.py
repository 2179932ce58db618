"""A restore makes a branch: found, planned, made, settled, verified.

What was done is kept by `restore_records`; markers are those of `marking`.
"""
