"""Bring files back to their bytes at the end of a turn."""
