"""Compact a session: plan, ask the hooks, install, and take back."""
