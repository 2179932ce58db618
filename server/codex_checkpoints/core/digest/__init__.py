"""The digest of a session: what was asked, answered, changed, run and found, in quotes."""
