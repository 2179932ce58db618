"""Says "look again at this path", and knows what that takes on each system.

It follows trees (the session folders, which may not exist yet, vanish and come back) and
single folders (those of the observed files). It tells neither what happened nor how much:
the same news may come twice, and where the system loses events it comes late or never. What
a path means, and looking at everything now and then regardless, is the caller's.

Two kinds of threads: watchdog's tell `look_again`; one of our own, the keeper, mends what is
watched when a folder came, went or was exchanged. Watchdog holds a lock of its own while it
tells, and takes it again to change what is watched, so only the keeper and the caller change
that, never the thread that tells.

`watcher` is what the others see, `wishes` says which folders ought to be watched, `silence` where
no event would come; `watches` alone knows watchdog.

Paths are text here: watchdog gives and takes text, and the caller compares it with its own.
"""
