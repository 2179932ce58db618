"""Markers, restores, branches, and the tree of sessions."""
