"""The format of session files.

`reader` cuts bytes into lines and gives them to folds.  `parsing` makes a typed item of a line.
`tools` finds what a tool call did, with `shell`, `patch`, `javascript` and `paths`.  `turns` says
what opens a turn, what it was asked and how it ended, with the texts of `asked`, and `contextual`
separates what people typed from injected text.
"""
