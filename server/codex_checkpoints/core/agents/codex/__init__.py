"""The format of Codex's session files: the only code that knows its records.

`reader` cuts bytes into lines.  `parsing` makes a typed item of a line, and `derive` the events of
a session from the items (`core.events`).  `tools` finds the effects of a tool call, with the
readers of `core.shell`.  `injected_text` separates typed text from injected text.  `history`
rebuilds the history that Codex sends to a model.
"""
