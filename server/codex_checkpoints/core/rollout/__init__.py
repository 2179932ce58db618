"""What a session file says.

`reader` cuts bytes into lines and hands them to folds, `parsing` turns a line into a typed item
of `items`, `tools` says what a tool call did (with `shell`, `patch`, `javascript` and `paths`),
`turns` keeps the turns and which were rolled back, `contextual` tells people from machinery.
"""
