"""What has changed on the disk since a marker was made, and what had to be made do with.

A comparison of hashes that others computed (AGN-63, AGN-65, AGN-66).  It changes nothing in what
is carried: a restore shows the files as they are now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from codex_checkpoints.core.checkpoint.records import UNKNOWN_HASH
from codex_checkpoints.values import frozen

WEAK = "stat:"
"""How a hash begins that stands for size and time alone, not for the content."""


@frozen
class Drift:
    """A file whose content is another than when the marker was made."""

    uri: str
    then: str
    now: str


@frozen
class Missing:
    """A file that cannot be seen now; `then` is its hash when the marker was made.

    That is `unknown:` where it was not seen then either.
    """

    uri: str
    then: str


FallbackKind = Literal[
    "weak_hash",
    "file_only_store",
    "copied_legacy",
    "copied_compressed",
    "copied_windows",
    "copied_in_base",
    "copied_damaged",
    "earlier_unknown",
]
"""What was made do with; `copied_…`: a soft branch that was to name its source's lines has them.

`earlier_unknown`: nothing here tells what was read and changed before the source began.
"""


@frozen
class Fallback:
    """Something weaker was used than one would wish; `uri` is the file that it is about."""

    fallback: FallbackKind
    uri: str | None = None


def drift_of(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[Drift, ...]:
    """Return the files with another hash, by uri; hashes of different kinds are never equal."""
    return tuple(
        Drift(uri, then[uri], now[uri])
        for uri in sorted(then)
        if uri in now and now[uri] != UNKNOWN_HASH and now[uri] != then[uri]
    )


def missing_of(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[Missing, ...]:
    """Return the files that have no hash now, by uri; `now` covers every file of `then`."""
    return tuple(
        Missing(uri, then[uri])
        for uri in sorted(then)
        if now.get(uri, UNKNOWN_HASH) == UNKNOWN_HASH
    )


def also_missing(told: Iterable[Missing], uris: Iterable[str]) -> tuple[Missing, ...]:
    """Add files that are not there to those that are missing since the marker, by uri."""
    found = {uri: Missing(uri, UNKNOWN_HASH) for uri in uris} | {each.uri: each for each in told}
    return tuple(found[uri] for uri in sorted(found))


def weak_hashes(*known: Mapping[str, str | None]) -> tuple[Fallback, ...]:
    """Return the files of which only size and time are known, each once, by uri (DSC-71)."""
    weak = {
        uri
        for hashes in known
        for uri, found in hashes.items()
        if found is not None and found.startswith(WEAK)
    }
    return tuple(Fallback("weak_hash", uri) for uri in sorted(weak))
