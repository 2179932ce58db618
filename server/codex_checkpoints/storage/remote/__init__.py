"""Stores pushed sessions, which several machines share: `contract` defines a store.

`folder` keeps them on a synced or mounted disk, `memory` in this process, `postgres` on a server.
All of them pass the same tests (tests/remote/test_history_store.py).
"""
