"""Codex's own program and configuration: what of ours stands in it, and how to ask.

`entries` says what Codex is to call, `config_file` and `hooks_file` put that into the text of its
two files and take it out again, `amending` says what becomes of what stands there, `file_edit`
writes a file so that nothing is lost, `program` asks Codex what it makes of it, `scratch` has it
make a summary; both talk to it by `app_server`.
`commands` are those of Codex's that a person types.
Session files are the business of `threads`.
"""

SCRATCH = "codex-checkpoints-scratch"
"""The source that we name to Codex for a scratch fork, which it writes into the fork's head."""

IN_SCRATCH = "CODEX_CHECKPOINTS_SCRATCH"
"""The variable by which our own hook knows that Codex works for us, on a fork put away at once."""
