"""The check before a person resumes a session (JUN-16).

We can act only while Codex does not have it loaded (JUN-36).  Nothing is compacted in place by
itself, and no text of a session has an influence (JUN-22).
"""

from __future__ import annotations

from codex_checkpoints import logs
from codex_checkpoints.core.compaction import offering
from codex_checkpoints.core.compaction.offering import Between, Offer
from codex_checkpoints.core.history.tokens import Source
from codex_checkpoints.service.compaction.compacting import Compacting
from codex_checkpoints.service.compaction.request import Compacted, Request
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.settings import left_aside
from codex_checkpoints.service.summaries import SessionSummary
from codex_checkpoints.values import evolve, frozen


@frozen
class Ready:
    """How to resume a session; `wanted` is the compaction to make first.

    `session_id` is the session to resume; `compacted` has no id in a preview; `declined` is the
    refusal of a compaction that was wanted.
    """

    source: SessionSummary
    session_id: str
    offer: Offer | None
    wanted: Request | None = None
    compacted: Compacted | None = None
    declined: Refusal | None = None

    def after(self, compacted: Compacted) -> Ready:
        """Return the state after the compaction."""
        session_id = compacted.session_id or self.session_id
        return evolve(self, session_id=session_id, offer=None, wanted=None, compacted=compacted)

    def without(self, refusal: Refusal) -> Ready:
        """Return the state after a refused compaction."""
        return evolve(self, wanted=None, declined=refusal)

    @property
    def notice(self) -> str | None:
        """Return a sentence for the person, or None."""
        if self.compacted is not None and self.compacted.compaction_id is not None:
            return _sentence(self.compacted)
        if self.source.continued_by is not None:
            return f"The work of this session went on in {self.source.continued_by}."
        if self.offer is None:
            return None
        tokens, offer = self.offer.tokens, self.offer
        about = "about " if offer.tokens_source == "estimated" else ""
        full = f"{about}{tokens:,} of {offer.window:,} tokens are in use"
        if self.declined is not None:
            return f"{full}, and nothing was compacted: {self.declined.message}."
        if self.compacted is not None:
            after = self.compacted.built.report.after
            return f"{full}; it would be compacted to {after:,} before going on."
        open_there = " (it is open in Codex)" if self.source.live else ""
        return f"{full}; from {offer.trigger:,} on a compaction is worth it{open_there}."


def preview(sessions: Sessions, compacting: Compacting, session: str) -> Ready:
    """Say what would be done before a session is resumed; nothing is written, no hook is asked.

    Refuses as `check`.
    """
    ready = check(sessions, session)
    if ready.wanted is None:
        return ready
    try:
        return evolve(ready, wanted=None, compacted=compacting.preview(ready.wanted))
    except Refusal as refusal:
        return ready.without(refusal)


def check(sessions: Sessions, session: str) -> Ready:
    """Look whether a session is to be compacted before it is resumed; nothing is written.

    Refuses as `Sessions.find`, and `conflict` for a session that Codex would not resume.
    """
    sessions.catalogue.look([sessions.own(session).path])
    sessions.open(session)
    source = sessions.summaries.of(sessions.own(session))
    for name in sessions.ignored_variables():
        logs.warn(__name__, "%s", left_aside(name))
    if sessions.records.session_dir(source.session_id) is None:
        # The command that resumes it names it, and must hold no option and no other command.
        message = "the session file has no valid id: Codex cannot resume it"
        raise Refusal("conflict", message, {"path": source.path, "reason": "no_id"})
    if source.archived:
        message = f"session {source.session_id} is archived: Codex does not resume it"
        hint = f"Put it back with `codex-checkpoints unarchive {source.session_id}`."
        facts = {"sessionId": source.session_id, "reason": "archived", "hint": hint}
        raise Refusal("conflict", message, facts)
    offer = source.offer or _counted(sessions, source)
    ready = Ready(source, source.session_id, offer)
    automatic = sessions.settings.compaction_offer == "automatic"
    if offer is None or source.live or not automatic:
        return ready
    why = f"{offer.tokens} tokens in use, the trigger is {offer.trigger}"
    wanted = Request(source.session_id, placement="pre_turn", requested_by="automatic", why=why)
    return evolve(ready, wanted=wanted)


def _counted(sessions: Sessions, source: SessionSummary) -> Offer | None:
    """Return the offer by our own count, for a session that reports an impossible figure."""
    row = sessions.own(source.session_id)
    reported: Source = "reported" if row.context_source == "reported" else "estimated"
    state = Between(not row.turn_open, row.context_tokens, reported, row.context_window)
    if source.continued_by is not None or not state.is_impossible:
        return None
    used = Histories(sessions).history(source.session_id).context.usable
    counted = evolve(state, tokens=used.tokens, source=used.source)
    return offering.offer(sessions.settings.compaction_offer, counted, sessions.named)


def _sentence(done: Compacted) -> str:
    """Return the sentence about an automatic compaction (CKP-13)."""
    report = done.built.report
    sizes = f"{report.before.tokens:,} → {report.after:,} tokens"
    return f"Compacted before going on: {sizes}. The original session is unchanged."
