"""Reads the format of session files.

`reader` cuts bytes into lines and gives them to folds.  `parsing` makes a typed item of a line.
`tools` finds the effects of a tool call, with `shell`, `patch`, `javascript` and `paths`.  `turns`
decides where a turn begins, its request and its end, with the texts of `asked`.  `contextual`
separates typed text from injected text.
"""
