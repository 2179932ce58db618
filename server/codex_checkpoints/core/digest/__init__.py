"""Builds the digest of a session: quoted requests, answers, changes, commands and results."""
