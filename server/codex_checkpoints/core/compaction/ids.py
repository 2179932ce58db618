"""Ids of version 7, made from arguments: for windows, sessions and compactions (WIN-1, WIN-13).

How windows are chained is the business of `core/history/windows.py`.
"""

RANDOM_BYTES = 8
"""What one id needs of a random source."""


def uuid7(at_ms: int, random: bytes, place: int = 0) -> str:
    """Return a UUID of version 7 for a time in ms since 1970 and eight random bytes.

    Several of one millisecond are in the order of their `place`, 0 to 4095.
    """
    if len(random) != RANDOM_BYTES:
        message = f"a UUID takes {RANDOM_BYTES} random bytes"
        raise ValueError(message)
    low = int.from_bytes(random) & (1 << 62) - 1
    number = (at_ms & (1 << 48) - 1) << 80 | 7 << 76 | (place & 0xFFF) << 64 | 2 << 62 | low
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
