"""The storage boundary: the only rooms that touch Codex's session files.

`contract` says what a store of threads can be asked; everybody outside knows it alone, but for
`assembly`, which chooses the store (STO-1, STO-13).  `local_store` keeps threads in files and
`memory_store` in this process.  What a store of files needs: `tree` finds them, `rollout_file`
reads the bytes of one and notices when it was replaced, `writer` writes them under the `locks` of
Codex, `index` remembers in SQLite what readers found, `names` knows what people called a thread.
What every store may share: `query` and `lines`.  Nothing here knows what a checkpoint is (STO-14).
"""
