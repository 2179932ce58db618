"""Text for people at a terminal: lists, findings, changes, a progress bar.

Whatever comes from a rollout or a folder is untrusted here as everywhere: nothing of it reaches a
terminal as a control character.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TextIO

import orjson

from codex_checkpoints import protocol
from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.rollout.fields import texts_of
from codex_checkpoints.service.catalogue import Progress
from codex_checkpoints.service.listing import Page, Summary
from codex_checkpoints.threads.contract import Row

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_DIM, _BOLD, _AMBER, _RED, _GREEN, _PLAIN = (
    "\x1b[2m",
    "\x1b[1m",
    "\x1b[33m",
    "\x1b[31m",
    "\x1b[32m",
    "\x1b[0m",
)
_NARROW = 60
_NAMES = 32
_REFS = 40
_KINDS = 24
_WORDS = 100
_SEEN = 4096


def plain(text: str) -> str:
    """Return text without anything a terminal would obey."""
    return _CONTROLS.sub(" ", text).encode(errors="replace").decode()


def session_lines(page: Page, now: float, *, width: int | None, colour: bool) -> list[str]:
    """Return one line a session: when, how full, in which folder, what about."""
    lines: list[str] = []
    for item in page.items:
        age = f"{_age(item.updated_at, now):>5}"
        meter = f"{_meter(item):>5}"
        folder = _fit(plain(os.path.basename((item.cwd or "").rstrip("/\\")) or "-"), 18)
        label = plain(item.title or item.task or "(no message yet)")
        marks = "".join(
            mark
            for shown, mark in (
                (item.live, " ●"),
                (item.suspect_facts > 0, f" !{item.suspect_facts}"),
                (item.parent_session is not None, " (subagent)"),
            )
            if shown
        )
        head = f"{age}  {meter}  {folder}  {plain(item.session_id)[:13]}  "
        room = None if width is None else max(width - _columns(head + marks) - 1, 20)
        label = label if room is None else _fit(label, room).rstrip()
        lines.append(f"{_DIM}{head}{_PLAIN}{label}{marks}" if colour else f"{head}{label}{marks}")
    return lines


def no_sessions(codex_home: str, options: argparse.Namespace) -> str:
    """Say why a list is empty, and what to do."""
    if options.search or options.cwd or options.archived:
        return "No session fits; leave out --search, --cwd or --archived to see more."
    return (
        f"No session under {codex_home}. Start one with Codex, or name another folder with "
        "--codex-home; `codex-checkpoints doctor` says what was found."
    )


def doctor_lines(report: protocol.DoctorReport, *, colour: bool) -> list[str]:
    """Return a diagnosis: where we look, how much is there, each finding with its way out."""
    tints = {"error": _RED, "warning": _AMBER, "info": _DIM} if colour else {}
    lines = [
        f"Codex home    {plain(report.codex_home)}",
        f"state folder  {plain(report.state_dir)}",
        f"sessions      {report.sessions}",
    ]
    for finding in report.findings:
        tint, end = tints.get(finding.severity, ""), _PLAIN if colour else ""
        place = "" if finding.path is None else f"\n    {plain(finding.path)}"
        lines.append(
            f"\n{tint}{finding.severity:<8}{finding.code}{end}\n    {plain(finding.message)}"
            f"{place}\n    → {plain(finding.way_out)}"
        )
    if not report.findings:
        lines.append("\nNothing to report: everything that is there can be read.")
    return lines


def moved_line(command: str, summary: Summary) -> str:
    """Return what was done to a session."""
    done = {"rename": "renamed", "delete": "deleted"}.get(command, f"{command}d")
    return f"{done}: {plain(summary.session_id)}  {plain(summary.title or '(no name)')}"


def applied_lines(applied: protocol.Applied) -> list[str]:
    """Return what came of a payload that was accepted, and what of it is kept in part."""
    name = "" if applied.id is None else f" {plain(applied.id)}"
    what = "would be accepted" if applied.dry_run else "accepted"
    lines = [f"{what}: {applied.kind}{name} (seq {applied.seq})"]
    return [*lines, *(f"    cut: {plain(place)}" for place in applied.shortened)]


def revoked_lines(revoked: protocol.Revoked) -> list[str]:
    """Return which note was taken back."""
    return [f"revoked: {revoked.kind} {plain(revoked.id)} (seq {revoked.seq})"]


def note_lines(notes: protocol.NoteList, *, width: int | None, colour: bool) -> list[str]:
    """Return facts that stand, facts that do not with what failed them, and decisions."""
    facts = [note for note in notes.items if note.kind == "fact"]
    standing = [note for note in notes.items if note.kind == "decision" and not note.superseded_by]
    replaced = [note for note in notes.items if note.superseded_by is not None]
    groups = (
        ("facts", _PLAIN, [note for note in facts if note.status == "VALID"]),
        ("SUSPECT", _AMBER, [note for note in facts if note.status != "VALID"]),
        ("decisions", _PLAIN, standing),
        ("superseded", _DIM, replaced),
    )
    names = max((_columns(plain(note.id)) for note in notes.items), default=0)
    lines: list[str] = []
    for title, tint, members in groups:
        if members:
            lines += [""] if lines else []
            lines.append(f"{tint}{title}{_PLAIN}" if colour else title)
        for note in members:
            lines += _note(note, min(names, _NAMES), width)
    return lines or ["No facts and no decisions yet."]


def _note(note: protocol.Note, names: int, width: int | None) -> list[str]:
    """Return a note and what there is to know about it, each on a line of its own."""
    said = note.value if note.kind == "fact" else f"{note.decision} — {note.rationale}"
    head = f"  {_fit(plain(note.id), names)}  {plain(said or '')}"
    about = [f"from {note.evidence.source} {plain(note.evidence.ref)}"]
    if note.why is not None:
        about = [f"because of {plain(note.why)}", *about]
    if note.superseded_by is not None:
        about = [f"replaced by {plain(note.superseded_by)}", *about]
    weak = [plain(each.uri) for each in note.depends_on if (each.hash or "").startswith("stat:")]
    if weak:
        about.append(f"by size and time only: {' '.join(weak)}")
    tail = f"  {' ' * names}  {', '.join(about)}"
    if width is None:
        return [head, tail]
    return [_fit(line, max(width - 1, 20)).rstrip() for line in (head, tail)]


def anchor_lines(anchors: protocol.AnchorList, *, width: int | None, colour: bool) -> list[str]:
    """Return what evidence may name: source, ref, first words."""
    names = min(max((_columns(plain(each.ref)) for each in anchors.items), default=0), _REFS)
    lines: list[str] = []
    for each in anchors.items:
        ref = plain(each.ref)
        # A ref is there to be copied, so it is never cut.
        ref = ref if _columns(ref) > names else _fit(ref, names)
        head = f"{each.source:<11}  {ref}  "
        text = "" if each.source == "file" else plain(each.text)
        if width is not None:
            text = _fit(text, max(width - _columns(head) - 1, 20)).rstrip()
        lines.append(f"{head}{_DIM}{text}{_PLAIN}" if colour else f"{head}{text}".rstrip())
    return lines or ["Nothing to cite yet."]


def history_lines(history: protocol.History, *, width: int | None, colour: bool) -> list[str]:
    """Return one line an item: whose it is, how large, its first words; secrets are taken out."""
    lines: list[str] = []
    for item in history.items:
        who = plain(str(item.get("role") or item["type"]))
        head = f"{_fit(who, _KINDS)}  {len(orjson.dumps(item)):>8}  "
        words = plain(redact(_words(item)))
        room = _WORDS if width is None else max(width - _columns(head) - 1, 20)
        words = _fit(words, room).rstrip()
        lines.append(f"{_DIM}{head}{_PLAIN}{words}" if colour else f"{head}{words}".rstrip())
    return [*lines, "", *_standing(history)] if lines else _standing(history)


def _words(item: Mapping[str, object]) -> str:
    """Return how an item begins, with enough of it to recognise a secret."""
    parts = item.get("content") or item.get("output") or item.get("summary")
    texts = texts_of(parts) or tuple(
        str(item[key]) for key in ("name", "arguments", "input", "action") if item.get(key)
    )
    return " ".join(texts)[:_SEEN]


def _standing(history: protocol.History) -> list[str]:
    """Return how full the window is, and which one it is."""
    windows, tokens = history.windows, history.context_tokens
    mark = "~" if history.context_tokens_source == "estimated" else ""
    full = "-" if tokens is None else f"{mark}{tokens}"
    room = "" if history.context_window is None else f" of {history.context_window}"
    flag = ", more than the window holds" if history.context_tokens_flagged else ""
    current = "" if windows.current is None else f" ({plain(windows.current)})"
    number = "-" if windows.number is None else str(windows.number)
    made = ["part of it was made of user messages"] if history.reconstructed else []
    return [f"tokens  {full}{room}{flag}", f"window  {number}{current}", *made]


def window_lines(windows: protocol.WindowList) -> list[str]:
    """Return one line a window: number, when, what opened it, tokens before and after, id.

    Below it stand the compaction of ours that opened it, and what Codex was given in it, if any.
    """
    lines: list[str] = []
    for each in windows.items:
        how = f"{each.trigger or '-':<9} {each.strategy or '-':<10}"
        sizes = f"{_number(each.tokens_before):>8} → {_number(each.tokens_after):>7}"
        opened = plain(each.opened_at or "-")
        lines.append(
            f"{each.number:>3}  {opened:<24}  {how}  {sizes}  {plain(each.window_id or '-')}"
        )
        if each.compaction_id is not None:
            lines.append(f"     compaction {plain(each.compaction_id)}")
        if each.received is not None:
            given = each.received
            state = "as it is now" if given.is_current else "changed since"
            said = f"Codex was given {given.size} bytes, {state}, {given.digest[:15]}"
            lines.append(f"     {plain(given.at):<24}  {plain(said)}")
    return lines


def outline_lines(outline: protocol.Outline, *, width: int | None) -> list[str]:
    """Return one line a stretch of older turns, then one a turn: which, in which window, words."""
    heads = [
        (f"{each.first}-{each.last}", f"{each.first_window}-{each.last_window}", each.text)
        for each in outline.chunks
    ]
    heads += [(str(each.number), str(each.window), each.text) for each in outline.recent]
    lines: list[str] = []
    for turns, windows, text in heads:
        head = f"{turns:>11}  {windows:>7}  "
        room = _WORDS if width is None else max(width - _columns(head) - 1, 20)
        lines.append(f"{head}{_fit(plain(redact(text)), room)}".rstrip())
    return lines


def compaction_lines(done: protocol.Compacted) -> list[str]:
    """Return what a compaction did, or would do: sizes, what stays and goes, where it goes on."""
    dropped = ", ".join(f"{count} {kind}" for kind, count in _gone(done).items())
    before = f"{done.tokens_before} tokens ({done.tokens_before_source})"
    after = f"{done.tokens_after} ({done.tokens_after_source})"
    told = [
        f"{before} → {after}, at most {done.bound}",
        f"kept {len(done.kept)}, cut {len(done.truncated)}, dropped {len(done.dropped)}"
        + (f" ({dropped})" if dropped else ""),
        f"standing context: {done.standing_context}",
        *_BY_CODEX.get(done.determinism, ()),
        *(f"hook {each.number}: {each.outcome}" for each in done.hooks),
    ]
    if done.compaction_id is None:
        where = "a new session" if done.into == "new" else "the same session"
        return [f"It would go on in {where}; nothing was written.", *told]
    return [
        f"Compaction {plain(done.compaction_id)} is installed.",
        *told,
        f"go on:     {plain(done.resume or '')}",
        f"take back: codex-checkpoints uncompact {plain(done.compaction_id)}",
    ]


_BY_CODEX = {
    "model": ("summary: Codex's own, by its model; it is not the same twice",),
    "provider": ("summary: by the service of Codex's provider; nobody else can read it",),
}


def _gone(done: protocol.Compacted) -> dict[str, int]:
    counts: dict[str, int] = {}
    for piece in done.dropped:
        counts[piece.kind] = counts.get(piece.kind, 0) + 1
    return dict(sorted(counts.items()))


def resume_notices(resumed: protocol.Resumed) -> list[str]:
    """Return what a person is told before going on, one line, with the command that helps."""
    if resumed.notice is None:
        return []
    if resumed.compacted is not None:
        command = f"uncompact {resumed.compacted.compaction_id}"
    elif resumed.continued_by is not None:
        command = f"resume {resumed.continued_by}"
    elif resumed.not_compacted is not None:
        return [plain(resumed.notice)]
    else:
        command = f"compact {resumed.source_session_id}"
    return [plain(f"{resumed.notice} → codex-checkpoints {command}")]


def uncompacted_lines(done: protocol.Uncompacted) -> list[str]:
    """Return where the work goes on again."""
    return [
        f"Compaction {plain(done.compaction_id)} is taken back.",
        f"go on: {plain(done.resume)}",
    ]


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def change_lines(report: protocol.ConnectReport, *, colour: bool) -> list[str]:
    """Return what is put into files of Codex's, or taken out."""
    lines: list[str] = []
    for change in report.changes:
        lines.append(f"{change.action} {plain(change.path)}")
        for line in change.diff.splitlines()[2:]:
            tint = {"+": _GREEN, "-": _RED}.get(line[:1], _DIM) if colour else ""
            lines.append(f"{tint}{plain(line)}{_PLAIN if tint else ''}")
    return [*(lines or ["Nothing to change."]), ""]


_CODEX_PROBLEMS = {
    "codex_not_found": "not found on the PATH",
    "timed_out": "gave no answer in time",
    "codex_failed": "gave no answer",
    "hooks_unknown": "knows no hooks; update it",
}
_DOOR_PROBLEMS = {
    "incomplete": "some hooks are missing; connect again",
    "program_missing": "what it would call is gone; connect again",
    "failed": "failed when it was called last",
    "other_program": "calls another installation of this program; connect again to call this one",
    "other_folders": "calls this program for another home; connect again",
    "no_hooks": "this version of Codex has no hooks that fit; update it",
    "disabled": "switched off in Codex",
    "untrusted": "not trusted by Codex yet",
}


def next_step(report: protocol.ConnectReport) -> str | None:
    """Return what helps whoever asks how things stand."""
    # Where the last call failed, the report itself says all there is to say.
    steps = (door.way_out for door in report.doors if door.problem != "failed")
    return next((step for step in steps if step is not None), None)


def connect_lines(report: protocol.ConnectReport, way_out: str | None) -> list[str]:
    """Return whether something was written, how things stand, and what to do next."""
    kept = [plain(change.backup) for change in report.changes if change.backup is not None]
    lines = [f"What was there is kept as {backup}." for backup in kept]
    lines += ["Written.", ""] if report.written else []
    version = report.codex_version or _CODEX_PROBLEMS.get(report.codex_problem or "")
    lines.append(f"Codex home  {plain(report.codex_home)}")
    lines.append(f"Codex       {plain(version or report.codex_path or '-')}")
    for door in report.doors:
        ran = f"last ran {door.last_ran_at} for {door.last_session}" if door.last_ran_at else None
        words = [
            "connected" if door.configured else "not connected",
            _DOOR_PROBLEMS.get(door.problem or ""),
            ran or ("never ran" if door.configured else None),
        ]
        lines.append(f"{door.door:<12}{plain(', '.join(word for word in words if word))}")
        lines += [_hook_line(hook) for hook in report.hooks if door.door == "hook"]
    for home in report.other_homes:
        state = "connected" if home.connected else "not connected"
        lines.append(f"Another Codex home is {state}: {plain(home.codex_home)}")
    lines += [f"! {plain(problem)}" for problem in report.problems]
    lines += [] if way_out is None else [f"→ {plain(way_out)}"]
    return lines


def _hook_line(hook: protocol.ConnectHook) -> str:
    ran = (
        f"last ran {hook.last_ran_at} for {hook.last_session}" if hook.last_ran_at else "never ran"
    )
    words = [
        None if hook.configured else "not connected",
        hook.trust,
        "switched off" if hook.enabled is False else None,
        ran if hook.configured else None,
        None if hook.failure is None else f"failed {hook.failure.at}: {hook.failure.code}",
    ]
    return plain(f"  {hook.event:<18}{', '.join(word for word in words if word)}")


def change_line(session_id: str, row: Row | None, reason: str, *, colour: bool) -> str:
    """Return one change of a followed session."""
    what = "gone" if row is None else plain(row.task or "(no message yet)")
    head = f"{plain(session_id)[:13]}  {reason:<9}"
    return f"{_DIM}{head}{_PLAIN}  {what}" if colour else f"{head}  {what}"


class LogLine(logging.Formatter):
    """A line of the log; what it quotes of a rollout or a folder is as untrusted as elsewhere."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Return the line, without anything a terminal would obey."""
        return plain(super().formatMessage(record))


class Bar:
    """A progress bar on one line of a terminal, drawn only when there is something to wait for."""

    def __init__(self, stream: TextIO) -> None:
        """Draw on this terminal."""
        self._stream = stream
        self._drawn = False

    def show(self, progress: Progress) -> None:
        """Draw how far an index is."""
        if progress.of_files <= 1 or (progress.files >= progress.of_files and not self._drawn):
            return
        share = 1.0 if progress.of_bytes == 0 else progress.bytes / progress.of_bytes
        full = round(share * 24)
        bar = "█" * full + "░" * (24 - full)
        text = f"reading sessions {bar} {progress.files}/{progress.of_files}"
        self._stream.write(f"\r{text}")
        self._stream.flush()
        self._drawn = True

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def _age(stamp: str, now: float) -> str:
    try:
        seconds = max(0.0, now - datetime.fromisoformat(stamp).timestamp())
    except (ValueError, OverflowError):
        return "-"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "now"


def _meter(item: Summary) -> str:
    if item.context_tokens is None or not item.context_window:
        return "-"
    mark = "~" if item.context_tokens_source == "estimated" else ""
    return f"{mark}{item.context_tokens * 100 // item.context_window}%"


def _fit(text: str, room: int) -> str:
    """Cut or fill to `room` columns; wide characters take two."""
    if _columns(text) <= room:
        return text + " " * (room - _columns(text))
    kept, used = "", 0
    for character in text:
        used += _columns(character)
        if used > room - 1:
            break
        kept += character
    return f"{kept}…" + " " * (room - 1 - _columns(kept))


def _columns(text: Sequence[str] | str) -> int:
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )
