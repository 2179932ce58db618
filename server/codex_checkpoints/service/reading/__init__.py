"""Reads and follows session files."""
