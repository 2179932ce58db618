"""Reads and writes the records of operations: compactions, restores, imports, pulls."""
