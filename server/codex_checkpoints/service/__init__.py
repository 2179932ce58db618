"""The use cases: what can be asked of the product, whoever asks.

`reading` follows session files, `sessions` answers questions about one, `thread_manager` and
`live_thread` change threads, `following` keeps checkpoints current, `diagnosis` says what was
found, skipped and why.  `compaction`, `restore`, `portable` and `connect` each do one thing with
sessions; an `undertaking` makes the first three whole or undone, and `recovery` ends what killed
processes left.  Settings, folders and time come in as arguments; a request that cannot be met
raises a `Refusal`.  How answers travel is left to the doors.
"""
