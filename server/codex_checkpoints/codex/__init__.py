"""Codex's own program and configuration: what of ours stands in it, and how to ask.

`entries` says what Codex is to call, `config_file` and `hooks_file` put that into the text of its
two files and take it out again, `file_edit` writes a file so that nothing is lost, `program` asks
Codex what it makes of it.  Session files are the business of `threads`.
"""
