"""Text for people at a terminal, a module a subject: wire records in, lines out.

`terminal` has what they share.  Which command shows what, and where it is written, is known to
`cli`; what a client shows is its own affair.

Whatever comes from a rollout or a folder is untrusted here as everywhere: nothing of it reaches a
terminal as a control character.
"""
