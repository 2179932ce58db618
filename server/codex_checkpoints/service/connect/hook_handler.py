"""Answers a hook of Codex: the view for a new window, a marker, a receipt.

`core.compaction.handoff` decides whether Codex gets a view.  Nothing here starts a compaction or a
restore (JUN-22, AGN-23).  Codex waits for a hook, so only the calls that make a digest or a marker,
or read the whole history, import the modules for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from codex_checkpoints.core.agents.codex.history.items import texts
from codex_checkpoints.core.compaction.handoff import bundle, is_due
from codex_checkpoints.core.digest.status import status_of, with_status
from codex_checkpoints.core.fields import digest_of
from codex_checkpoints.service.connect.hook_calls import DOOR, UNSET_FIELDS, Call
from codex_checkpoints.service.history.current_window import CurrentWindow, window_near_the_end
from codex_checkpoints.service.reading.checkpoints import View
from codex_checkpoints.service.reading.derived_cache import DIGEST_RULES, CachedKind
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.sessions import Sessions, session_of
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.contract import Row, UnreadableSource
from codex_checkpoints.storage.records import MARKERS, UPDATES

LABEL = "before compaction"
COMPACTED = "CodexCompacted"
"""The type of the audit event for a compaction by Codex."""


@frozen
class HookAnswer:
    """The text for Codex, if any, and its receipt."""

    session_id: str
    text: str | None
    receipt: Mapping[str, object]


@frozen
class HookHandler:
    """Answers the hooks of one home."""

    _sessions: Sessions
    _now: Callable[[], str] = stamps.now
    _new_id: Callable[[], str] = stamps.new_id

    def answer(self, call: Call) -> HookAnswer:
        """Handle a call; refuses as `Sessions`, and a file of another session or home."""
        row = self._row(call)
        match call.event:
            case "SessionStart":
                return self._bundle(call, row)
            case "PreCompact":
                return self._before(call, row)
            case "PostCompact":
                return self._after(call, row)

    def confirm(self, given: HookAnswer) -> None:
        """Write the receipt; raises `StorageError`."""
        self._sessions.records.add_receipt(given.session_id, given.receipt)

    def _bundle(self, call: Call, row: Row) -> HookAnswer:
        source = call.source
        shown = self._sessions.view(row.session_id)
        row = self._sessions.catalogue.now(row)
        view, checkpoint = shown.text, shown.of.checkpoint
        if not is_due(source, checkpoint, view, ()):
            return self._receipt(call, row, None, None, checkpoint.seq)
        window = self._window(row, view)
        text = None
        if is_due(source, checkpoint, view, window.items):
            text = bundle(view, self._digest(row, source, shown, window))
        return self._receipt(call, row, text, window.window_id, checkpoint.seq, view)

    def _digest(self, row: Row, source: str, shown: View, window: CurrentWindow) -> str:
        """Return the digest to give with a view: on a resume, of all that the history has lost."""
        setting, whole = self._sessions.settings.hook_digest_tokens, source == "compact"
        if not setting or not (whole or (row.windows or 1) > 1):
            self._sessions.catalogue.cache.may_quote(self._sessions.settings)
            return ""
        said = ["\n".join(texts(item)) for item in window.items if item.get("role") == "user"]
        if not whole:
            return _lost_digest(self._sessions, row, shown, setting, said)
        from codex_checkpoints.service.history.digests import Digests

        return Digests(self._sessions).injected(row, setting, said)

    def _before(self, call: Call, row: Row) -> HookAnswer:
        """Store the checkpoint, and mark the last turn that has ended."""
        _, opened = self._sessions.open(row.session_id)
        kept = self._sessions.projections.keep(row, opened)
        if kept.storage_problem is not None:
            message = f"the checkpoint of {row.session_id} cannot be stored"
            raise Refusal("storage_error", message, {"reason": kept.storage_problem})
        if self._sessions.settings.mark_before_compaction:
            state = opened.now().state
            ended = [turn.turn_id for turn in state.turns.counting() if state.has_ended(turn)]
            if ended:
                from codex_checkpoints.service.markers import Markers

                markers = Markers(self._sessions, self._now, self._new_id)
                markers.mark_once(row.session_id, LABEL, ended[-1], "compaction")
        return self._receipt(call, row, None, None, kept.checkpoint.seq)

    def _after(self, call: Call, row: Row) -> HookAnswer:
        """Store the checkpoint after the compaction; return no text."""
        shown = self._sessions.view(row.session_id)
        window = self._window(row, shown.text)
        event = {
            "type": COMPACTED,
            "at": self._now(),
            **UNSET_FIELDS,
            "sessionId": row.session_id,
            "sourceSessionId": row.session_id,
            "userId": self._sessions.settings.user_id,
            "orgId": self._sessions.settings.org_id,
            "door": DOOR,
            "trigger": call.source,
            "windowId": window.window_id,
        }
        self._sessions.records.audit.add(event)
        return self._receipt(call, row, None, window.window_id, shown.of.checkpoint.seq)

    def _row(self, call: Call) -> Row:
        session = session_of(self._sessions.catalogue, call.session)
        rows = self._sessions.catalogue.rows().values()
        own = (row.path for row in rows if row.session_id == session)
        # Codex may have made links above the file; the file itself must not be a link.
        if _settled(call.transcript) not in {_settled(path) for path in own}:
            message = "the file that Codex names is none of this session in this home"
            raise Refusal("unknown_session", message, {"sessionId": session})
        return self._sessions.find(session)

    def _window(self, row: Row, view: str) -> CurrentWindow:
        try:
            return window_of(self._sessions, row, view)
        except UnreadableSource as error:
            message = f"{row.session_id} cannot be read: {error}"
            raise Refusal("unreadable_source", message, {"reason": str(error)}) from error

    def _receipt(  # noqa: PLR0913, PLR0917 - the fields of a receipt
        self,
        call: Call,
        row: Row,
        text: str | None,
        window_id: str | None,
        seq: int,
        view: str = "",
    ) -> HookAnswer:
        data = b"" if text is None else text.encode()
        receipt = {
            "at": self._now(),
            "door": DOOR,
            "event": call.event,
            "source": call.source,
            "sessionId": row.session_id,
            "windowId": window_id,
            "seq": seq,
            "digest": None if text is None else digest_of(data),
            "size": len(data),
        }
        if text is not None:
            receipt["view"] = digest_of(view.encode())
        return HookAnswer(row.session_id, text, receipt)


def window_of(sessions: Sessions, row: Row, view: str) -> CurrentWindow:
    """Return the window to search this view in; refuses as `Histories.history`."""
    near = window_near_the_end(sessions, row, view)
    if near is not None:
        return near
    from codex_checkpoints.service.history.resumed_history import Histories

    history = Histories(sessions).history(row.session_id)
    return CurrentWindow(tuple(history.items), history.chain.current)


def _settled(path: str) -> str:
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


# --- the digest of a resume ----------------------------------------------------------------------
# Making it takes many times as long as the rest of a call.  It covers the records before the newest
# compaction, which do not change while a session goes on.  So it is cached in the index with a hash
# of its other inputs, and only the end of the last turn is made again for each call.


@frozen
class _ResumeDigest:
    """A digest, the `seq` of its compaction, and the files and commands that it names."""

    text: str
    seq: int
    files: tuple[str, ...]
    commands: tuple[str, ...]


RESUME_DIGEST = CachedKind("digest", DIGEST_RULES, _ResumeDigest, most=32 << 10)
"""The digest for a resume of 4,000 tokens, up to the line where the compaction begins."""


def _lost_digest(
    sessions: Sessions, row: Row, shown: View, setting: int, beside: Sequence[str]
) -> str:
    """Return the digest of everything the history has lost, empty if that is nothing.

    `beside` are the user's messages in the history.
    """
    opened = sessions.catalogue.open(row)
    state = opened.now().state
    cache = sessions.catalogue.cache

    def inputs(digest: _ResumeDigest) -> object:
        return _inputs(sessions, row, shown, beside, digest)

    found = cache.get(opened, RESUME_DIGEST, inputs)
    if found is not None:
        return with_status(found.text, status_of(state))
    from codex_checkpoints.service.history.digests import Digests

    lost = Digests(sessions).lost(row, setting, beside)
    reads_others = row.base_rollout is not None or state.seed is not None
    if lost.text and lost.place is not None and not reads_others:
        mark = opened.reader.mark_at(row.path, lost.place, opened.mark.source)
        made = _ResumeDigest(lost.text, lost.seq, lost.files, lost.commands)
        cache.put(opened, RESUME_DIGEST, made, inputs(made), mark)
    return with_status(lost.text, status_of(state))


def _inputs(
    sessions: Sessions, row: Row, shown: View, beside: Sequence[str], digest: _ResumeDigest
) -> object:
    """Return the inputs of a digest other than the records before the compaction."""
    state = sessions.catalogue.open(row).now().state
    artifacts = shown.of.checkpoint.artifacts
    edited, ran = state.observations.since(digest.seq)
    ends, counted = dict(state.ends()), state.turns.counting()
    return (
        state.compacted_at,
        beside,
        [
            uri
            for uri in digest.files
            if (each := artifacts.get(uri)) is not None and each.is_changed
        ],
        edited,
        [command for command in digest.commands if command in ran],
        [(turn.turn_id, ends[turn.turn_id]) for turn in counted if turn.opened_seq <= digest.seq],
        state.typed,
        row.context_window,
        sessions.settings.hook_digest_tokens,
        sessions.settings.digest_ignore,
        [sessions.records.stamp(row.session_id, name) for name in (MARKERS, UPDATES)],
    )
