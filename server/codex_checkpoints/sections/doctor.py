"""Makes the page of a diagnosis: the folders, and each finding with its remedy."""

from __future__ import annotations

from codex_checkpoints.sections.model import Page, PageRow, Section, State, code, line, row, table
from codex_checkpoints.sections.words import advice
from codex_checkpoints.service.doctor import Diagnosis, Finding

_SEVERITIES: dict[str, tuple[str, State]] = {
    "error": ("Error", "error"),
    "warning": ("Warning", "warning"),
    "info": ("Note", "info"),
}


def doctor_page(report: Diagnosis) -> Page:
    """Return the page."""
    folders = (
        row("Codex home", code(report.codex_home)),
        row("State folder", code(report.state_dir)),
        row("Sessions", str(report.sessions)),
    )
    found = [_finding(number, each) for number, each in enumerate(report.findings, 1)]
    nothing = () if found else (line("Nothing to report: everything can be read."),)
    reasons = ((code(reason), f"{count:,}") for reason, count in report.skipped.items())
    skipped = table(("Reason", "Lines"), reasons)
    return Page(
        "Doctor",
        nothing,
        (
            Section("folders", "Folders", rows=folders),
            *found,
            *([Section("skipped", "Skipped lines", table=skipped)] if skipped else []),
        ),
    )


def _finding(number: int, finding: Finding) -> Section:
    word, state = _SEVERITIES.get(finding.severity, _SEVERITIES["info"])
    where = [] if finding.path is None else [row("Where", code(finding.path))]
    count = f", {finding.count:,} times" if finding.count > 1 else ""
    return Section(
        id=f"finding-{number}",
        title=f"{word}: {finding.message.removesuffix('.')}",
        state=state,
        rows=(
            PageRow("What to do", advice(finding.way_out)),
            *where,
            row("Code", code(finding.code), count),
        ),
    )
