"""What a session file says.

`lines` cuts bytes into lines and drops those nobody needs, `items` turns a line into a typed
item, `tools` tells what a tool call did (with `shell`, `patch`, `javascript` and `paths`),
`turns` keeps the turns and who rolled them back, `contextual` tells people from machinery.
"""
