"""Restores files to their bytes at the end of a turn."""
