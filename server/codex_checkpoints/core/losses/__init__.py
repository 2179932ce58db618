"""What each compaction in a session's file loses and costs, those of Codex included.

`account` reads a session once.  At each compaction it compares the task, the plan, the changed
files and the failing commands with the replacement.  `watched` then notes what is read again.  Both
keep a bounded amount.

    account = Account(updates)
    account.replay.feed(...)        # all bytes of the session, its bases first
    losses = account.losses()
"""
