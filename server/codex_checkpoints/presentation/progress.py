"""A progress bar, for who waits until the sessions are read."""

from __future__ import annotations

from typing import TextIO

from codex_checkpoints.presentation.terminal import NARROW
from codex_checkpoints.service.reading.catalogue import Progress


class Bar:
    """A progress bar on one line of a terminal, drawn only when there is something to wait for."""

    def __init__(self, stream: TextIO, width: int | None) -> None:
        """Draw on this terminal; a line that is wider than it could not be drawn over."""
        self._stream = stream
        self._is_narrow = width is not None and width < NARROW
        self._drawn = False

    def show(self, progress: Progress) -> None:
        """Draw how far an index is."""
        if progress.of_files <= 1 or (progress.files >= progress.of_files and not self._drawn):
            return
        share = 1.0 if progress.of_bytes == 0 else progress.bytes / progress.of_bytes
        full = round(share * 24)
        bar = "█" * full + "░" * (24 - full)
        count = f"{progress.files}/{progress.of_files}"
        text = f"reading sessions {count if self._is_narrow else f'{bar} {count}'}"
        self._stream.write(f"\r{text}")
        self._stream.flush()
        self._drawn = True

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
