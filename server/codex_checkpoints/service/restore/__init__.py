"""Restore a marker into a branch, list restores, and verify their files."""
