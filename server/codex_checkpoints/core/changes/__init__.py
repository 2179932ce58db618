"""Collects the changes of a session to files, and the texts of the files in between."""
