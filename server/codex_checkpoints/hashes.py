"""SHA-256 of a few bytes, without OpenSSL: to load that takes as long as to load ten modules."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_FEW = 1 << 18
"""Bytes; for more of them OpenSSL is quicker with the time that it takes to load."""


class _Hashing:
    def __init__(self) -> None:
        self._left = _FEW
        self._sha256: Callable[[bytes], Any] = _of_python()

    def __call__(self, data: bytes) -> str:
        """Return the SHA-256 of some bytes as 64 hex digits."""
        if self._left >= 0:
            self._left -= len(data)
            if self._left < 0:
                self._sha256 = import_module("hashlib").sha256
        return self._sha256(data).hexdigest()


def _of_python() -> Callable[[bytes], Any]:
    for name in ("_sha2", "_sha256"):  # since Python 3.12, and before
        try:
            return import_module(name).sha256
        except ImportError:
            continue
    return import_module("hashlib").sha256


sha256 = _Hashing()
