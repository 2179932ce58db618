"""Renders text for people at a terminal, a module a subject: wire records in, lines out.

All content of a rollout or a folder is untrusted: none of it reaches a terminal as a control
character.
"""
