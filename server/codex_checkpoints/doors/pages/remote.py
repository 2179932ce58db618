"""Words a remote for a person: its state, the outgoing data, the result of a pull."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codex_checkpoints.doors.pages.search import hit_line
from codex_checkpoints.operations.push import Push, PushedSession
from codex_checkpoints.operations.remote import (
    PulledSession,
    RemoteAudit,
    RemoteDeleted,
    RemoteRetained,
    RemoteSession,
    RemoteSessions,
    RemoteStatus,
)
from codex_checkpoints.operations.remote_search import SearchRemoteAnswer
from codex_checkpoints.sections.previews import LEFT_OUT
from codex_checkpoints.sections.terminal import DIM, Screen, fit, moment, plain
from codex_checkpoints.storage.contract import folder_name

_STATES = {
    "pushed": "pushed",
    "unchanged": "already there",
    "ahead": "already there, with later lines from another machine",
}
_UNIT = 1000

MOST_NAMED = 4
"""The most sessions without anything new that are named."""


def status_lines(record: RemoteStatus, screen: Screen) -> list[str]:
    """Return the place of the remote, and its content."""
    if not record.made:
        hint = screen.within(f"`codex-checkpoints remote set {record.place}` makes one.")
        return [plain(f"{record.place} is not a remote; is the disk mounted? {hint}")]
    sessions = _number(record.sessions, "session")
    lines = [
        plain(f"remote   {record.place}"),
        plain(f"as       {record.owner} on {record.machine}"),
        f"holds    {sessions}, {size(record.bytes)}",
    ]
    if record.unreadable:
        lines.append(f"         {_number(record.unreadable, 'more')} not readable yet")
    return lines


def deleted_lines(record: RemoteDeleted, _screen: Screen) -> list[str]:
    """Return the session that was removed from the remote."""
    return [plain(f"deleted {record.session_id} from the remote; sessions here stay")]


_NARROW = 100
"""Columns below which the columns of a list are narrower."""


def remote_session_lines(record: RemoteSessions, screen: Screen) -> Iterator[str]:
    """Return one line per session: its time, size, owner, folder and title."""
    for item in record.items:
        yield _session_line(item, screen)
    if record.next_cursor is not None:
        yield "…"
    if record.unreadable:
        yield f"{_number(record.unreadable, 'more')} not readable yet"


def _session_line(item: RemoteSession, screen: Screen) -> str:
    narrow = screen.width is not None and screen.width < _NARROW
    folder = fit(plain(folder_name(item.cwd or "-")), 10 if narrow else 18)
    team = f" ({item.team})" if item.team else ""
    whose = fit(plain(f"{item.owner}@{item.machine}{team}"), 12 if narrow else 20)
    when = moment(item.updated_at, screen)
    when = when[: len("YYYY-MM-DD HH:MM")] if narrow else when
    head = f"{when}  {size(item.bytes):>8}  {whose}  {folder}  {item.session_id[:13]}  "
    label = plain(item.title or item.task or "(no message yet)")
    return f"{screen.tinted(DIM, head)}{screen.cut_after(head, label)}"


def found_lines(found: SearchRemoteAnswer, text: str, screen: Screen) -> Iterator[str]:
    """Return the hits of each session below its name: turn, anchor, kind and line."""
    for each in found.items:
        yield _session_line(each.session, screen)
        for hit in each.hits:
            yield hit_line(hit, text, screen)


def audit_lines(record: RemoteAudit, screen: Screen) -> Iterator[str]:
    """Return one line per entry: its time, the login, the action, the session and its owner."""
    for each in record.items:
        whose = "" if each.owner == each.login else f" of {each.owner}"
        team = f" for {each.team}" if each.team and each.kind == "pushed" else ""
        did = f"{each.login} {each.kind} {each.session_id}{whose}{team}"
        yield f"{moment(each.at, screen)}  {plain(did)}"
    if not record.items:
        yield "no entries"


def retained_lines(record: RemoteRetained, _screen: Screen) -> list[str]:
    """Return the number of sessions that lost their lines."""
    sessions = _number(record.sessions, "session")
    return [f"removed the lines of {sessions} not pushed for {record.days} days; their rows stay"]


def preview_lines(record: Push, screen: Screen) -> Iterator[str]:
    """Return the outgoing data: sessions, sizes, redactions, the longest texts."""
    leaving = [each for each in record.sessions if each.state != "unchanged"]
    for each in leaving:
        yield from _leaving_lines(each, screen)
    for refused in record.refused:
        hint = f" {refused.hint}" if refused.hint else ""
        yield plain(f"✗ {refused.message}.{hint} [{refused.code}]")
    if not leaving:
        yield "nothing new to push"
        return
    if record.longest:
        yield ""
        yield "The longest texts that leave:"
        for text in record.longest:
            head = f"  {text.chars:>9,}  {text.session_id[:13]} line {text.line:<6}  "
            beginning = " ".join(plain(text.beginning).split())
            yield f"{screen.tinted(DIM, head)}{screen.cut_after(head, beginning, 60)}"
    yield ""
    yield record.caution


def _leaving_lines(each: PushedSession, screen: Screen) -> Iterator[str]:
    head = f"{each.session_id[:13]}  {size(each.bytes):>8}  {each.lines:>7,} lines  "
    label = plain(each.title or "(no message yet)")
    yield f"{screen.tinted(DIM, head)}{screen.cut_after(head, label)}"
    if each.redacted:
        kinds = ", ".join(f"{count} {kind}" for kind, count in each.redacted.items())
        yield f"    redacted: {kinds}"
    if each.left_out:
        yield f"    left out: {_left_out(each.left_out)}"


def _left_out(counts: Mapping[str, int]) -> str:
    words = ((LEFT_OUT[kind], count) for kind, count in counts.items() if kind in LEFT_OUT)
    return ", ".join(f"{count} {one if count == 1 else many}" for (one, many), count in words)


def push_question(record: Push) -> str:
    """Return the question before a push."""
    leaving = [each.bytes for each in record.sessions if each.state != "unchanged"]
    sessions = _number(len(leaving), "session")
    team = f" for team {plain(record.team)}" if record.team else ""
    return f"Push {sessions} ({size(sum(leaving))}) to {plain(record.place)}{team}?"


def asks_to_delete(item: RemoteSession) -> str:
    """Return the question before a session is deleted from the remote."""
    title = fit(plain(item.title or item.task or "(no name)"), 60).rstrip()
    whose = f"pushed by {item.owner} on {item.machine}"
    return plain(f"Delete “{title}” ({item.session_id}), {whose}, from the remote?")


def question(text: str) -> str:
    """Return a question in a form that a terminal may show."""
    return plain(text)


def push_lines(record: Push, _screen: Screen) -> Iterator[str]:
    """Return the result of a push; many sessions without anything new share one line."""
    unchanged = [each for each in record.sessions if each.state == "unchanged"]
    are_many = len(unchanged) > MOST_NAMED
    if are_many:
        yield f"{_number(len(unchanged), 'session')} already there"
    for each in record.sessions:
        if are_many and each in unchanged:
            continue
        sent = f", {size(each.sent)} sent" if each.sent else ""
        yield plain(f"{_STATES.get(each.state, each.state)}  {each.session_id}{sent}")


def following(count: int) -> str:
    """Return a line saying that pushes continue."""
    return f"following {_number(count, 'session')}; Ctrl+C stops it"


def pulled_lines(record: PulledSession, screen: Screen) -> Iterator[str]:
    """Return the branch that was made, and the next step."""
    yield plain(f"made session {record.session_id} in {record.cwd}: {record.title or ''}".rstrip())
    counts = f"{record.lines:,} lines, {_number(record.notes, 'note')}"
    counts += f", {_number(record.markers, 'marker')}"
    yield plain(f"from {record.source_session_id} of {record.owner} on {record.machine}: {counts}")
    if record.before is not None:
        yield plain(record.before)
    if record.digest == "made":
        yield "its last summary was encrypted for another account: it opens with our digest"
    elif record.digest == "failed":
        yield (
            "its last summary was encrypted for another account and is missing; "
            f"`{screen.ours(f'compact {record.session_id}')}` puts a digest in its place"
        )
    yield plain(f"→ {screen.codex(record.resume)}")


def size(count: int) -> str:
    """Return a count of bytes as a person reads it."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < _UNIT:
            break
        value, unit = value / _UNIT, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 or noun == 'more' else 's'}"
