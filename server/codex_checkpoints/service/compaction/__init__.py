"""Compacts a session: plans, runs the hooks, installs, and undoes."""
