"""What the service answers, as wire records: the one place where the two meet."""

from __future__ import annotations

from codex_checkpoints import protocol
from codex_checkpoints.core.checkpoint.caps import Caps
from codex_checkpoints.service.diagnosis import Diagnosis
from codex_checkpoints.service.listing import Page
from codex_checkpoints.service.sessions import Detail
from codex_checkpoints.wire import filled


def session_list(page: Page) -> protocol.SessionList:
    """Return a page of sessions."""
    items = tuple(filled(protocol.SessionSummary, summary) for summary in page.items)
    return protocol.SessionList(items, page.next_cursor)


def session_detail(detail: Detail) -> protocol.SessionDetail:
    """Return one session with its turns."""
    return protocol.SessionDetail(
        filled(protocol.SessionSummary, detail.summary),
        tuple(filled(protocol.TurnEntry, turn) for turn in detail.turns),
        caps(detail.caps),
        detail.problems,
        dict(detail.skipped),
    )


def caps(effective: Caps) -> protocol.EffectiveCaps:
    """Return the caps in force."""
    return filled(protocol.EffectiveCaps, effective)


def doctor_report(diagnosis: Diagnosis) -> protocol.DoctorReport:
    """Return a diagnosis."""
    return protocol.DoctorReport(
        diagnosis.codex_home,
        diagnosis.state_dir,
        diagnosis.sessions,
        tuple(filled(protocol.DoctorFinding, finding) for finding in diagnosis.findings),
        diagnosis.skipped,
    )
