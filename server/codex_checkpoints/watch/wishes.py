"""Which folders ought to be watched, and how, so that trees and folders are followed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from codex_checkpoints.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator


@frozen
class Wish:
    """How a folder ought to be watched, and under which names it is followed."""

    deep: bool
    whole: bool
    names: frozenset[str]

    def joined(self, other: Wish | None) -> Wish:
        """Ask for what either asks for."""
        if other is None:
            return self
        return Wish(self.deep or other.deep, self.whole or other.whole, self.names | other.names)


def wishes(trees: set[str], folders: set[str]) -> dict[str, Wish]:
    """Say what to watch as things lie now, by the real path of each folder.

    A tree needs its parent watched too, which tells when the tree goes or comes back; where
    the parent is missing itself, the nearest folder above that is there.
    """
    found: dict[str, Wish] = {}
    followed = [(tree, True) for tree in trees] + [(folder, False) for folder in folders]
    for name, deep in followed:
        if (real := _real_folder(name)) is not None:
            wish = Wish(deep=deep, whole=True, names=frozenset((name,)))
            found[real] = wish.joined(found.get(real))
    deep_ones = [real for real, wish in found.items() if wish.deep]
    for tree in trees:
        name, real = _nearest_above(tree)
        # One watch a folder: the system merges two of them, and the narrow one would win.
        if real is not None and not any(is_at_or_below(deep, real) for deep in deep_ones):
            wish = Wish(deep=False, whole=False, names=frozenset((name,)))
            found[real] = wish.joined(found.get(real))
    return found


def with_parents(paths: set[str]) -> Iterator[str]:
    """Yield the paths with all folders above them."""
    for path in paths:
        yield path
        while (parent := os.path.dirname(path)) != path:
            yield parent
            path = parent  # noqa: PLW2901 - upwards


def is_at_or_below(folder: str, path: str) -> bool:
    """Tell whether a path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _nearest_above(path: str) -> tuple[str, str | None]:
    above = os.path.dirname(path)
    while (real := _real_folder(above)) is None and above != os.path.dirname(above):
        above = os.path.dirname(above)
    return above, real


def _real_folder(path: str) -> str | None:
    # A watch on a link would be told about the link alone.
    real = os.path.realpath(path)
    return real if os.path.isdir(real) else None
