"""The use cases, for every door.

`reading` reads session files; `sessions` lists, changes and follows them; `history` and `search`
answer questions about their content.  `compaction`, `restore`, `packs` and `remote` make sessions,
each as one `operation`; `connect` connects Codex.  A request that cannot be met raises a `Refusal`.
"""
