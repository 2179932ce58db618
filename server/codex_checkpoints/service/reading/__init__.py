"""Reading and following session files."""
