"""Checks a session before a person resumes it (JUN-16).

We can act only while Codex does not have it loaded (JUN-36).  Nothing is compacted in place
automatically, and no text of a session affects the decision (JUN-22).
"""

from __future__ import annotations

import logging

from attrs import frozen

from codex_checkpoints.codex import resume
from codex_checkpoints.core.compaction.token_budget import Offer
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.request import Compacted, CompactionRequest
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.sessions.summaries import SessionSummary
from codex_checkpoints.service.settings import ignored_variable

logger = logging.getLogger(__name__)


@frozen
class NotCompacted:
    """Why a compaction that the settings ask for was refused."""

    code: str
    message: str


@frozen
class Resumed:
    """How to resume a session: the command `resume`, to be run in `cwd`.

    `cwdGone`: the folder is not on this machine, so Codex starts where it is called.  `compacted`
    is a compaction that the setting `automatic` required, `notCompacted` why it was refused,
    `offer` one to propose.  `live`: Codex has the session loaded.  `continuedBy`: the session in
    which its work went on.  `notice` is a sentence for a notification.
    """

    session_id: str
    source_session_id: str
    cwd: str | None
    cwd_gone: bool
    live: bool
    continued_by: str | None
    offer: Offer | None
    compacted: Compacted | None
    not_compacted: NotCompacted | None
    notice: str | None
    resume: str


@frozen
class Ready:
    """A session that can be resumed, and the compaction to make first, if any."""

    source: SessionSummary
    offer: Offer | None
    cwd_gone: bool
    wanted: CompactionRequest | None = None

    def resumed(
        self, compacted: Compacted | None = None, declined: Refusal | None = None
    ) -> Resumed:
        """Return how to resume, after the compaction that was wanted or refused."""
        session_id = self.source.session_id
        offer = self.offer
        if compacted is not None and compacted.compaction_id is not None:
            session_id, offer = compacted.session_id or session_id, None
        refused = None if declined is None else NotCompacted(declined.code, declined.message)
        return Resumed(
            cwd=self.source.cwd,
            cwd_gone=self.cwd_gone,
            live=self.source.live,
            continued_by=self.source.continued_by,
            session_id=session_id,
            source_session_id=self.source.session_id,
            offer=offer,
            compacted=compacted,
            not_compacted=refused,
            notice=self._notice(compacted, refused),
            resume=resume(session_id),
        )

    def _notice(self, compacted: Compacted | None, refused: NotCompacted | None) -> str | None:
        """Return a sentence for the person, or None (CKP-13)."""
        if compacted is not None and compacted.compaction_id is not None:
            sizes = f"{compacted.tokens_before:,} → {compacted.tokens_after:,} tokens"
            return f"Compacted before going on: {sizes}. The original session is unchanged."
        if self.source.continued_by is not None:
            return f"The work of this session went on in {self.source.continued_by}."
        offer = self.offer
        if offer is None:
            return None
        about = "about " if offer.tokens_source == "estimated" else ""
        full = f"{about}{offer.tokens:,} of {offer.window:,} tokens are in use"
        if refused is not None:
            return f"{full}, and nothing was compacted: {refused.message}."
        if compacted is not None:
            after = compacted.tokens_after
            return f"{full}; it would be compacted to {after:,} before going on."
        open_there = " (it is open in Codex)" if self.source.live else ""
        return f"{full}; from {offer.trigger:,} on a compaction is worth it{open_there}."


def preview(sessions: Sessions, compacting: Compacting, session: str) -> Resumed:
    """Return the steps before a session is resumed; write nothing, ask no hook.

    Refuses as `check`.
    """
    ready = check(sessions, session)
    if ready.wanted is None:
        return ready.resumed()
    try:
        return ready.resumed(compacting.preview(ready.wanted))
    except Refusal as refusal:
        return ready.resumed(declined=refusal)


def check(sessions: Sessions, session: str) -> Ready:
    """Check whether a session is to be compacted before it is resumed; write nothing.

    Refuses as `Sessions.find`, and `conflict` for a session that Codex would not resume.
    """
    sessions.catalogue.refresh_paths([sessions.own(session).path])
    sessions.open(session)
    source = sessions.summaries.of(sessions.own(session))
    for name in sessions.ignored_variables():
        logger.warning("%s", ignored_variable(name))
    if sessions.records.session_dir(source.session_id) is None:
        # The command that resumes it contains the id, which must be neither an option nor a
        # command.
        message = "the session file has no valid id: Codex cannot resume it"
        raise Refusal("conflict", message, {"path": source.path, "reason": "no_id"})
    if source.archived:
        message = f"session {source.session_id} is archived: Codex does not resume it"
        hint = f"Put it back with `codex-checkpoints unarchive {source.session_id}`."
        facts = {"sessionId": source.session_id, "reason": "archived", "hint": hint}
        raise Refusal("conflict", message, facts)
    if source.refused is not None:
        message = f"session {source.session_id} is not resumed: {source.refused}"
        hint = f"`codex-checkpoints compact {source.session_id}` makes a session that it resumes."
        facts = {"sessionId": source.session_id, "reason": "refused", "hint": hint}
        raise Refusal("conflict", message, facts)
    gone = source.cwd is not None and not sessions.workspace.is_here(source.cwd)
    offer = source.offer
    automatic = sessions.settings.compaction_offer == "automatic"
    if offer is None or source.live or not automatic:
        return Ready(source, offer, gone)
    why = f"{offer.tokens} tokens in use, the trigger is {offer.trigger}"
    wanted = CompactionRequest(
        source.session_id, placement="pre_turn", requested_by="automatic", why=why
    )
    return Ready(source, offer, gone, wanted)
