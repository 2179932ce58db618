"""A portable pack: what one session knows, as one file that opens on another machine.

`pack` has the nouns, the bytes and the record of an import.  `leaving` makes a pack of a session,
without its `places`.  `reading` takes foreign bytes apart and trusts nothing.  `arriving` makes of
a pack what a new session goes on from: every hash is this machine's own.
"""
