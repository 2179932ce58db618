"""Reads the format of Codex's session files.

`reader` cuts bytes into lines and gives them to folds.  `parsing` makes a typed item of a line, and
`derive` the events that count, which know no format.
`tools` finds the effects of a tool call, with the readers of `core.shell`.  `turns` decides where a
turn begins, its request and its end, with the texts of `requests`.  `injected_text` separates typed
text from injected text.
"""
