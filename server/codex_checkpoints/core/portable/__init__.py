"""A portable pack: what one session knows, as one file that opens on another machine.

`pack` has the nouns and the canonical bytes.  `places` takes the places of a machine out of texts,
`naming` says what everything is called then, and `leaving` makes a pack of a session.  `reading`
takes foreign bytes apart and trusts nothing, `judging` says what they may not say, and `arriving`
makes of a pack what a new session here goes on from: every hash is this machine's own.  `records`
is how that is kept.

Which file is read or written, and what session file is made of it, belongs to the service.
"""
