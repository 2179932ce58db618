"""A digest in each line of a file that only grows, by which it can be checked later.

The digest of a record is that of its own content: several processes append to these files, so a
chain over lines would break where nothing is wrong.  That a whole line was taken away shows in
the events, which are numbered within their operation (`events.gaps`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

DIGEST = "digest"


def digest_of(data: bytes) -> str:
    """Return the hash of some bytes, named as everywhere."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def sealed(record: Mapping[str, object]) -> dict[str, Any]:
    """Return a JSON object with its digest as the last key."""
    content = {key: value for key, value in record.items() if key != DIGEST}
    return content | {DIGEST: _digest(content)}


def is_intact(record: Mapping[str, object]) -> bool:
    """Return whether a JSON object still has the content that its digest was made of."""
    content = {key: value for key, value in record.items() if key != DIGEST}
    return record.get(DIGEST) == _digest(content)


def _digest(content: Mapping[str, object]) -> str:
    # The order of keys is no part of what a JSON object says.
    return digest_of(orjson.dumps(dict(content), option=orjson.OPT_SORT_KEYS))
