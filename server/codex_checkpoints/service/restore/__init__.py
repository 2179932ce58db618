"""Restores markers into branches, and lists restores."""
