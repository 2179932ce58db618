"""Finds, lists, names, moves and deletes sessions, and follows their files."""
