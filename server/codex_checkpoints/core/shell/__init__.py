"""Reads scripts and commands: the files that they read and write, and the kind of each command."""
