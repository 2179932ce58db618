"""The use cases: what can be asked of the product, whoever asks.

`session_file` follows a session through its chain of rollouts, `catalogue` reads them and tells the
store what was found, `thread_manager` and `live_thread` change threads, `sessions` answers
questions about one,
`following` keeps checkpoints current, `diagnosis` says what was found, skipped and why.  Settings,
folders and time come in as arguments; a request that cannot be met raises a `Refusal`.  How
answers travel is left to the doors.
"""
