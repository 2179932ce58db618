"""Export a session as one file, and import it into another home."""
