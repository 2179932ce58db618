"""A portable pack: what one session knows, as one file that opens on another machine.

`pack` has the records, the bytes and the places to hide.  `leaving` makes a pack of a session.
`reading` checks foreign bytes and holds the record of an import.  `arriving` makes the initial
state of a new session from a pack; every hash in it is this machine's own.
"""
