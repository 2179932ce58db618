"""Keeps the last preview of a push, so that the push need not redact its sessions again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

if TYPE_CHECKING:  # every command makes one, and few use it
    from codex_checkpoints.service.remote.outgoing import Outgoing
    from codex_checkpoints.storage.remote.spool import Spool

MOST_BYTES = 1 << 29
"""The size of the largest file of a preview that is kept."""


@define
class KeptPreview:
    """The sessions of the last preview, in the file that they were redacted into.

    The file has no name, and ends with this process at the latest.
    """

    _spool: Spool | None = None
    _going: tuple[Outgoing, ...] = ()
    _place: str = ""
    _allow_redacted: bool = False

    def keep(
        self, spool: Spool, going: tuple[Outgoing, ...], place: str, *, allow_redacted: bool
    ) -> None:
        """Keep a preview instead of the earlier one, and close its file later."""
        self.close()
        if not going or spool.size > MOST_BYTES:
            spool.close()
            return
        self._spool, self._going = spool, going
        self._place, self._allow_redacted = place, allow_redacted

    def take(self) -> KeptPreview:
        """Return the preview, which the caller closes; nothing is kept any longer."""
        taken = KeptPreview(self._spool, self._going, self._place, self._allow_redacted)
        self._spool, self._going = None, ()
        return taken

    def session(self, session_id: str, place: str, *, allow_redacted: bool) -> Outgoing | None:
        """Return a session that was read for this remote and this consent.

        It may have changed since.
        """
        if (place, allow_redacted) != (self._place, self._allow_redacted):
            return None
        return next((each for each in self._going if each.session_id == session_id), None)

    def close(self) -> None:
        """Remove the file."""
        spool, self._spool, self._going = self._spool, None, ()
        if spool is not None:
            spool.close()
