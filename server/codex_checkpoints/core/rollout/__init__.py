"""The format of session files.

`reader` cuts bytes into lines and gives them to folds.  `parsing` makes a typed item of a line.
`tools` finds what a tool call did, with `shell`, `patch`, `javascript` and `paths`.  `turns` keeps
the turns, and `contextual` separates what people typed from injected text.
"""
