"""What a compaction loses, and what it costs: for every one in a session's file, Codex's own too.

A compaction puts a replacement in the place of a history.  `account` reads a session once and
compares at each compaction what was asked, planned, changed and failing with the replacement; then
`watched` notes what is read again.  What is kept on the way is bounded.

    account = Account(updates)
    account.replay.feed(...)        # all bytes of the session, its bases first
    losses = account.losses()
"""
