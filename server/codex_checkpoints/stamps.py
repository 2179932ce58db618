"""When something is written, and by what name it can be found again.

The one place that asks the clock and draws at random for what goes into our records.  The doors
hand these in; nothing below them asks for the time.
"""

from __future__ import annotations

import os
import time
import uuid
from datetime import UTC, datetime

from codex_checkpoints.core.compaction.ids import RANDOM_BYTES, uuid7


def now() -> str:
    """Return the time in UTC, ISO 8601 with milliseconds and `Z`."""
    return in_text(datetime.now(UTC))


def in_text(at: datetime) -> str:
    """Return a time in UTC, ISO 8601 with milliseconds and `Z`."""
    at = at.astimezone(UTC)
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def moment() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


def new_ids(at: datetime, count: int) -> tuple[str, ...]:
    """Return so many UUIDs of version 7 for one moment, each later in order than the one before."""
    at_ms = int(at.timestamp() * 1000)
    return tuple(uuid7(at_ms, os.urandom(RANDOM_BYTES), place) for place in range(count))


def new_id() -> str:
    """Return a UUID of version 7: later ones sort behind earlier ones, to the millisecond."""
    moment = time.time_ns() // 1_000_000 & (1 << 48) - 1
    drawn = int.from_bytes(os.urandom(10)) >> 6
    high = moment << 16 | 0x7000 | drawn >> 62
    low = 1 << 63 | drawn & (1 << 62) - 1
    return str(uuid.UUID(int=high << 64 | low))
