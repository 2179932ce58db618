"""Sessions at a terminal: the list, their notes, and the connection with Codex."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from codex_checkpoints.core.checkpoint.records import IMPORTED
from codex_checkpoints.presentation.terminal import (
    AMBER,
    DIM,
    GREEN,
    PLAIN,
    RED,
    Screen,
    columns,
    fit,
    moment,
    plain,
)
from codex_checkpoints.storage.contract import folder_name

if TYPE_CHECKING:
    from codex_checkpoints.core.checkpoint.anchors import Note
    from codex_checkpoints.operations import memory
    from codex_checkpoints.service import digests, doctor, notes, searching, summaries
    from codex_checkpoints.service.connect import status


def session_lines(page: summaries.SessionList, screen: Screen, now: float) -> list[str]:
    """Return one line a session: when, how full, in which folder, what about; people's first."""
    lines: list[str] = []
    for item in sorted(page.items, key=lambda item: item.background):
        folder = fit(plain(folder_name(item.cwd or "-")), 18) + "  "
        age = _age(item.updated_at, now)
        head = f"{age:>5}  {_meter(item):>5}  {folder}{plain(item.session_id)[:13]}  "
        marks = " ●" if item.live else ""
        marks += f" !{item.suspect_facts}" if item.suspect_facts else ""
        marks += _source(item)
        marks += _origin(item)
        label = plain(item.title or item.task or "(no message yet)")
        label = screen.behind(head + marks, label)
        lines.append(f"{screen.tinted(DIM, head)}{label}{marks}")
    return lines


_OF_PEOPLE = frozenset({None, "cli", "vscode"})


def _source(item: summaries.SessionSummary) -> str:
    """Return who began a session, unless it is a person at a terminal or in an editor."""
    if item.source == "unknown":
        return " (unknown source)"
    return "" if item.source in _OF_PEOPLE else f" ({plain(item.source or '')})"


def _origin(item: summaries.SessionSummary) -> str:
    """Return that a session is a copy, since it has the first request of its source."""
    if item.undone:
        return " (compaction undone)"
    if item.made_by is None:
        forked = item.forked_from is not None and item.parent_session is None
        return " (fork)" if forked else ""
    return {"compaction": " (compacted)", "restore": " (branch)"}.get(item.made_by, " (imported)")


def no_digest(budget: int) -> str:
    """Return why there is nothing to print."""
    return f"A digest needs a budget of 50 tokens or more; this one is {budget}."


def recalled_lines(found: digests.Recalled) -> list[str]:
    """Return where a record stands, and its text."""
    turn = "" if found.turn is None else f"t{found.turn}"
    names = dict.fromkeys(each for each in (found.session_id, turn, found.ref) if each)
    head = f"{' '.join(names)}  {found.heading}"
    return [plain(head), "", *map(plain, found.text.split("\n"))]


def hit_lines(hits: Sequence[digests.Hit], screen: Screen) -> list[str]:
    """Return one line a hit: its anchor, what it is, and the line."""
    lines: list[str] = []
    for hit in hits:
        turn = "" if hit.turn is None else f"t{hit.turn} "
        head = plain(f"{turn}{hit.ref}  {hit.kind}  ")
        lines.append(f"{screen.tinted(DIM, head)}{plain(hit.line)}")
    return lines


def nothing_found(text: str) -> str:
    """Return that no line holds a text, and why that may be."""
    exactly = " The text has a capital, so case counts." if text != text.lower() else ""
    return f"Nothing found.{exactly}"


def more_hits(count: int) -> str:
    """Return that the limit left hits out."""
    return f"The first {count} hits; raise --limit, or leave it out, for more."


def found_lines(hits: Sequence[searching.SearchHit], screen: Screen) -> list[str]:
    """Return the hits of one session below its name: turn, anchor, what it is, and the line."""
    lines: list[str] = []
    for hit in hits[:1]:
        folder = folder_name(hit.cwd or "-")
        head = f"{moment(hit.updated_at, screen)}  {folder}  {hit.session_id[:13]}  "
        title = hit.title or "(no message yet)"
        lines.append(screen.tinted(DIM, plain(head)) + screen.behind(plain(head), plain(title)))
    for hit in hits:
        turn = "" if hit.turn is None else f"t{hit.turn} "
        head = plain(f"  {turn}#{hit.seq}  {hit.kind}  ")
        lines.append(f"{screen.tinted(DIM, head)}{plain(hit.line)}")
    return lines


def no_sessions(codex_home: str, *, filtered: bool, archived: int) -> str:
    """Return why the list is empty, and what to do; `archived` sessions are in the home."""
    if archived and not filtered:
        one = archived == 1
        what = "The only session here is" if one else f"All {archived} sessions here are"
        return f"{what} archived; `sessions --archived` lists {'it' if one else 'them'}."
    if filtered:
        return "No session matches; leave out --search, --cwd or --archived to see more."
    return plain(
        f"No session under {codex_home}. Start one with Codex, or name another folder with "
        "--codex-home; `codex-checkpoints doctor` says what was found."
    )


def asks_to_delete(summary: summaries.SessionSummary) -> str:
    """Return the question before a session is deleted."""
    title = fit(plain(summary.title or "(no name)"), 60).rstrip()
    return plain(f"Delete “{title}” ({summary.session_id})? This cannot be undone.")


def moved_line(command: str, summary: summaries.SessionSummary) -> str:
    """Return what was done to a session."""
    done = {"delete": "deleted"}.get(command, f"{command}d")
    return plain(f"{done}: {summary.session_id}  {summary.title or '(no name)'}")


def renamed_lines(summary: summaries.SessionSummary, _screen: Screen) -> list[str]:
    """Return the name of a session; without one, what stands in its place in a list."""
    if summary.named:
        return [plain(f"renamed: {summary.session_id}  {summary.title}")]
    instead = "" if summary.title is None else f"; it is listed by its first words: {summary.title}"
    return [plain(f"name removed: {summary.session_id}{instead}")]


def named_here_alone() -> str:
    """Return that Codex does not see a name, and what helps."""
    return (
        "Codex keeps the names of sessions in this format in its own database, which is not"
        " written: rename it in Codex as well to see the name there."
    )


def change_line(session_id: str, words: str, reason: str, screen: Screen) -> str:
    """Return one change of a followed session."""
    head = f"{plain(session_id)[:13]}  {plain(reason):<9}"
    return f"{screen.tinted(DIM, head)}  {plain(words)}"


def _age(stamp: str | None, now: float) -> str:
    if stamp is None:
        return "-"
    try:
        seconds = max(0.0, now - datetime.fromisoformat(stamp).timestamp())
    except (ValueError, OverflowError):
        return "-"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def _meter(item: summaries.SessionSummary) -> str:
    if item.context_tokens is None or not item.context_window:
        return "-"
    if item.context_tokens > item.context_window:
        return ">100%"
    mark = "~" if item.context_tokens_source == "estimated" else ""
    return f"{mark}{item.context_tokens * 100 // item.context_window}%"


_NAMES = 32
_REFS = 40


def applied_lines(applied: notes.Applied, _screen: Screen) -> list[str]:
    """Return what came of an accepted payload, what of it is cut, and what had to make room."""
    name = "" if applied.id is None else f" {applied.id}"
    what = "would be accepted" if applied.dry_run else "accepted"
    lines = [f"{what}: {applied.kind}{name} (seq {applied.seq})"]
    lines += [f"    cut: {place}" for place in applied.shortened]
    lines += [f"    no longer kept: {gone.kind} {gone.id}" for gone in applied.evicted]
    return [*map(plain, lines)]


def revoked_lines(revoked: notes.Revoked, _screen: Screen) -> list[str]:
    """Return which note was taken back."""
    return [plain(f"revoked: {revoked.kind} {revoked.id} (seq {revoked.seq})")]


def note_lines(notes: memory.NoteList, screen: Screen) -> list[str]:
    """Return facts that stand, facts that do not with what failed them, and decisions."""
    kept = [note for note in notes.items if not note.evicted]
    facts = [note for note in kept if note.kind == "fact"]
    standing = [note for note in kept if note.kind == "decision" and not note.superseded_by]
    groups = (
        ("facts", PLAIN, [note for note in facts if note.status == "VALID"]),
        ("SUSPECT", AMBER, [note for note in facts if note.status != "VALID"]),
        ("decisions", PLAIN, standing),
        ("superseded", DIM, [note for note in kept if note.superseded_by is not None]),
        ("no longer kept", DIM, [note for note in notes.items if note.evicted]),
    )
    names = max((columns(plain(note.id)) for note in notes.items), default=0)
    lines: list[str] = []
    for title, tint, members in groups:
        if members:
            lines += [""] if lines else []
            lines.append(screen.tinted(tint, title))
        for note in members:
            lines += _note(note, min(names, _NAMES), screen)
    return lines or ["No facts and no decisions yet."]


def _note(note: Note, names: int, screen: Screen) -> list[str]:
    """Return a note and what there is to know about it, each on a line of its own."""
    text = note.value if note.kind == "fact" else f"{note.decision} — {note.rationale}"
    head = f"  {fit(plain(note.id), names)}  {plain(text or '')}"
    about = [plain(f"from {note.evidence.source} {note.evidence.ref}")]
    if note.why == IMPORTED:
        about = ["imported, and not accepted here yet", *about]
    elif note.why is not None:
        about = [f"because of {plain(note.why)}", *about]
    if note.superseded_by is not None:
        about = [f"replaced by {plain(note.superseded_by)}", *about]
    weak = [plain(each.uri) for each in note.depends_on if (each.hash or "").startswith("stat:")]
    if weak:
        about.append(f"by size and time only: {' '.join(weak)}")
    tail = f"  {' ' * names}  {', '.join(about)}"
    return [screen.cut(head), screen.cut(tail)]


def anchor_lines(anchors: memory.AnchorList, screen: Screen) -> list[str]:
    """Return what evidence may name: source, ref, first words."""
    names = min(max((columns(plain(each.ref)) for each in anchors.items), default=0), _REFS)
    lines: list[str] = []
    for each in anchors.items:
        ref = plain(each.ref)
        # A ref is there to be copied, so it is never cut.
        ref = ref if columns(ref) > names else fit(ref, names)
        head = plain(f"{each.source:<11}  {ref}  ")
        text = "" if each.source == "file" else plain(each.text)
        lines.append(f"{head}{screen.tinted(DIM, screen.behind(head, text))}".rstrip())
    return lines or ["Nothing to cite yet."]


_CODEX_PROBLEMS = {
    "codex_not_found": "not found on the PATH",
    "timed_out": "gave no answer in time",
    "codex_failed": "gave no answer",
    "hooks_unknown": "has no hooks yet; update it",
}
_DOOR_PROBLEMS = {
    "program_missing": "what it would call is gone",
    "outdated": "not as it would be written now",
    "failed": "failed the last time it was called",
    "no_hooks": "this version of Codex has no hooks that fit; update it",
    "disabled": "switched off in Codex",
    "untrusted": "not trusted by Codex yet",
}


def change_lines(report: status.Connection, screen: Screen) -> list[str]:
    """Return what is put into files of Codex's, or taken out."""
    lines: list[str] = []
    for change in report.changes:
        lines.append(plain(f"{change.action} {change.path}"))
        for line in change.diff.splitlines()[2:]:
            tint = {"+": GREEN, "-": RED}.get(line[:1], DIM)
            lines.append(screen.tinted(tint, plain(line)))
    return [*(lines or ["Nothing to change."]), ""]


def next_step(report: status.Connection) -> str | None:
    """Return what helps whoever asks how things stand."""
    # Where the last call failed, the report itself says all there is to say.
    steps = (door.way_out for door in report.doors if door.problem != "failed")
    return next((step for step in steps if step is not None), None)


def connect_lines(report: status.Connection, way_out: str | None, screen: Screen) -> list[str]:
    """Return whether something was written, how things stand, and what to do next."""
    kept = [plain(change.backup) for change in report.changes if change.backup is not None]
    lines = [f"The file as it was is kept as {backup}." for backup in kept]
    if report.written:
        lines += ["Written.", ""]
    elif report.changes:
        lines += ["Nothing was written: this is what a run without --dry-run would write.", ""]
    version = report.codex_version or _CODEX_PROBLEMS.get(report.codex_problem or "")
    lines.append(f"Codex home  {plain(report.codex_home)}")
    lines.append(f"Codex       {plain(version or report.codex_path or '-')}")
    for door in report.doors:
        words = [
            _connected(door),
            _DOOR_PROBLEMS.get(door.problem or ""),
            "connect again" if door.next == "repair" else None,
            _ran(door, screen) if door.configured or door.last_ran_at else None,
        ]
        lines.append(plain(f"{door.door:<12}{', '.join(word for word in words if word)}"))
        if door.door == "hook" and door.problem != "unreadable":
            lines += [_hook_line(hook, screen) for hook in report.hooks]
    lines += [f"! {plain(problem)}" for problem in report.problems]
    lines += [] if way_out is None else [f"→ {plain(way_out)}"]
    return lines


def _connected(door: status.Door) -> str:
    if door.problem == "unreadable":
        return "not known whether it is connected"
    return "connected" if door.configured else "not connected"


def _ran(what: status.Door | status.HookState, screen: Screen) -> str:
    return (
        f"last ran {moment(what.last_ran_at, screen)} for {what.last_session}"
        if what.last_ran_at
        else "never ran"
    )


def _failed(failure: status.Failure | None, screen: Screen) -> str | None:
    return None if failure is None else f"failed {moment(failure.at, screen)}: {failure.code}"


def _hook_line(hook: status.HookState, screen: Screen) -> str:
    words = [
        None if hook.configured else "not connected",
        hook.trust,
        "switched off" if hook.enabled is False else None,
        _ran(hook, screen) if hook.configured else None,
        _failed(hook.failure, screen),
    ]
    return plain(f"  {hook.event:<18}{', '.join(word for word in words if word)}")


def doctor_lines(report: doctor.Diagnosis, screen: Screen) -> list[str]:
    """Return a diagnosis: where we look, how much is there, each finding with its way out."""
    tints = {"error": RED, "warning": AMBER}
    lines = [
        f"Codex home    {plain(report.codex_home)}",
        f"state folder  {plain(report.state_dir)}",
        f"sessions      {report.sessions}",
    ]
    for each in report.findings:
        head = plain(f"{each.severity:<8}{each.code}")
        lines.append(f"\n{screen.tinted(tints.get(each.severity, DIM), head)}")
        lines.append(f"    {plain(each.message)}")
        lines += [] if each.path is None else [f"    {plain(each.path)}"]
        lines.append(f"    → {plain(screen.within(each.way_out))}")
    if not report.findings:
        lines.append("\nNothing to report: everything can be read.")
    return lines
