"""Finds records of a session by anchor, id or text (RCL-1, RCL-2)."""
