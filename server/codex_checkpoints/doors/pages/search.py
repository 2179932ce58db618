"""Renders records for a terminal: of one session by its digest and recall, of all by a search."""

from __future__ import annotations

from collections.abc import Sequence

from codex_checkpoints.sections.terminal import DIM, Screen, columns, moment, plain
from codex_checkpoints.service import search
from codex_checkpoints.service.history import digests
from codex_checkpoints.storage.contract import folder_name


def hit_lines(hits: Sequence[digests.Hit], screen: Screen) -> list[str]:
    """Return one line a hit: its anchor, its kind, and the line."""
    lines: list[str] = []
    for hit in hits:
        turn = "" if hit.turn is None else f"t{hit.turn} "
        head = plain(f"{turn}{hit.ref}  {hit.kind}  ")
        lines.append(f"{screen.tinted(DIM, head)}{plain(hit.line)}")
    return lines


def nothing_found(text: str) -> str:
    """Return that no line contains a text, and the possible reasons."""
    exactly = " The text has a capital, so case counts." if text != text.lower() else ""
    together = " The words are searched as one text." if " " in text.strip() else ""
    return f"Nothing found.{exactly}{together}"


def more_hits(count: int) -> str:
    """Return that the limit left hits out."""
    return f"The first {count} hits; raise --limit, or leave it out, for more."


def found_lines(found: search.SessionHits, text: str, screen: Screen) -> list[str]:
    """Return the hits of a text in one session below its name: turn, anchor, kind and line."""
    session = found.session
    folder = folder_name(session.cwd or session.start_folder or "-")
    when = moment(session.updated_at or session.file_time, screen)
    head = plain(f"{when}  {folder}  {session.session_id[:13]}  ")
    title = plain(session.title or "(no message yet)")
    lines = [screen.tinted(DIM, head) + screen.cut_after(head, title)]
    lines += (hit_line(hit, text, screen) for hit in found.hits)
    if (more := found.count - len(found.hits)) > 0:
        lines.append(screen.tinted(DIM, f"  {more} more"))
    return lines


def hit_line(hit: search.SearchHit, text: str, screen: Screen) -> str:
    """Return a hit of a text below the name of its session, cut to a terminal."""
    turn = "" if hit.turn is None else f"t{hit.turn} "
    head = plain(f"  {turn}#{hit.seq}  {hit.kind}  ")
    line = _with_text_in_sight(plain(hit.line), text, screen.room_after(head))
    return screen.tinted(DIM, head) + screen.cut_after(head, line)


def _with_text_in_sight(line: str, text: str, room: int | None) -> str:
    """Return a line, without its beginning if the text would be cut off at its end."""
    at = line.lower().find(text.lower())
    if room is None or at < 0 or columns(line[: at + len(text)]) < room:
        return line
    return f"…{line[max(at - room // 3, 0) :]}"
