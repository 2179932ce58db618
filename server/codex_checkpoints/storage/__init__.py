"""Storage: everything that reads or writes session files and our own files.

`store` is the interface of a store of threads, with the rules, `contract` its inputs and results;
only `assembly` knows the kind of store (STO-1, STO-13).  `local` keeps threads in files, `memory`
in this process.  `session_files` finds session files, `rollout_file` reads one and makes its lines,
`writer` writes one under Codex's `locks`, `index` keeps the readers' results in SQLite.  None of
these knows about checkpoints (STO-14).  `records` keeps our own files, `atomic_files` writes all
files, `workspace` hashes observed files and `watch` reports changes.
"""
