"""The use cases, for every door.

`reading` reads session files, `sessions` answers questions about them, `threads` changes them and
`following` keeps checkpoints current.  `compaction`, `restore` and `portable` make sessions, each
as an `undertaking`; `connect` connects Codex.  A request that cannot be met raises a `Refusal`.
"""
