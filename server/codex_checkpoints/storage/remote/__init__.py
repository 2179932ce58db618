"""Stores of pushed sessions, which several machines share: `contract` defines one.

`folder` keeps them on a synced or mounted disk, `memory` in this process.  All of them pass the
same tests (tests/remote/test_history_store.py).
"""
