"""A portable pack: the knowledge of one session, as one file that opens on another machine."""
