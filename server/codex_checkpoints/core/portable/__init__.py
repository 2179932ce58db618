"""A portable pack: what one session knows, as one file that opens on another machine."""
