"""What a compaction loses, and what it costs: for every one in a session's file, Codex's own too.

A compaction puts a replacement in the place of a history.  `account` reads a session once, from
its first byte to its last, and stops in thought at each compaction: what was asked, planned,
changed and failing there, and is it in the replacement?  Then it goes on and watches what is read
again.  What is kept on the way is bounded, however long the session is.

`replacements` knows what each replacement is, whatever version of Codex wrote it; `held` looks a
text, a file or a command up in one.  `outcomes` tells how a command ended, `watched` what each
call met; `files` and `commands` keep both from window to window, and say what is a re-read of an
unchanged file and what is a loop.

    account = Account(updates)      # all bytes of the session, its bases first
    losses = account.losses()
"""
