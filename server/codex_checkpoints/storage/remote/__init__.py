"""Stores pushed sessions, which several machines share: `contract` defines a store.

`folder` keeps them on a synced or mounted disk, `memory` in this process, `postgres` on a server.
All of them pass the same tests: those of every store (tests/storage/test_every_store.py), and those
of pushed sessions (tests/remote/test_history_store.py).
"""
