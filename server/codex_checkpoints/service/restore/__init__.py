"""Restore a marker into a branch, and list restores."""
