"""Text for people at a terminal, a module a subject: wire records in, lines out.

Whatever comes from a rollout or a folder is untrusted: nothing of it reaches a terminal as a
control character.
"""
