"""Makes the pages of the connection with Codex: the planned changes, and the current state."""

from __future__ import annotations

from collections.abc import Iterator

from codex_checkpoints.sections.model import Page, PageRow, Part, Section, action, code, line, row
from codex_checkpoints.sections.words import advice, joined
from codex_checkpoints.service.connect.status import Connection, Door, HookState

# The Connection view of the editor has these words as well, through `doors/typescript.py`.
CODEX_PROBLEMS = {
    "codex_not_found": "not found on the PATH",
    "timed_out": "gave no answer in time",
    "codex_failed": "gave no answer",
    "hooks_unknown": "has no hooks yet; update it",
}
DOORS = {"hook": "Hooks", "mcp": "Memory tools"}
DOOR_PROBLEMS = {
    "not_configured": "not connected",
    "unreadable": "not known whether it is connected",
    "program_missing": "the program that it calls is gone",
    "outdated": "not as it would be connected now",
    "failed": "the last call failed",
    "no_hooks": "this Codex has no hooks that fit; update it",
    "disabled": "switched off in Codex",
    "untrusted": "waiting for you to trust it",
}
TRUST = {
    "trusted": "trusted",
    "managed": "trusted by your organisation",
    "untrusted": "not trusted yet",
    "modified": "changed since you trusted it",
}
NEVER_RAN = "never ran"
LAST_RAN = "last ran"
_ACTIONS = {"create": "New file", "edit": "Changed", "delete": "Removed"}


def changes_page(report: Connection, *, removes: bool) -> Page:
    """Return the page of all lines that would be written, or `removes`, for a person to agree."""
    title = "Changes to Codex's Configuration"
    if not report.changes:
        nothing = "Codex is not connected." if removes else "Codex is connected already."
        return Page(title, (line(nothing),), ())
    detail = (
        "These are all the lines that change. "
        "The rest of each file stays, and a copy of the old file is kept beside it."
    )
    sections = (
        Section(
            id=f"file-{number}",
            title=f"{_ACTIONS.get(each.action, each.action)}: {each.path}",
            text="\n".join(each.diff.splitlines()[2:]),  # the title has the path
            text_form="diff",
        )
        for number, each in enumerate(report.changes, 1)
    )
    agreed = action("disconnect" if removes else "connect")
    return Page(title, (line(detail),), tuple(sections), (agreed,))


def connection_page(report: Connection, way_out: str | None) -> Page:
    """Return the page of the current connection, with the written changes and the next step."""
    kept = [each.backup for each in report.changes if each.backup is not None]
    said = [line("The file as it was is kept as ", code(each), ".") for each in kept]
    if report.written:
        said.append(line("Written."))
    elif report.changes:
        said.append(line("Nothing was written: this is what a run without --dry-run would write."))
    version = report.codex_version or CODEX_PROBLEMS.get(report.codex_problem or "")
    rows = (
        row("Codex home", code(report.codex_home)),
        row("Codex", version or report.codex_path or "-"),
        *(each for door in report.doors for each in _door(door, report.hooks)),
        *(row("Problem", Part(each, state="warning")) for each in report.problems),
        *([PageRow("Next step", advice(way_out))] if way_out else []),
    )
    return Page("Connection", tuple(said), (Section("connection", "Connection", rows=rows),))


def next_step(report: Connection) -> str | None:
    """Return the remedy for a person who asks about the connection."""
    # If the last call failed, the report itself already says enough.
    steps = (door.way_out for door in report.doors if door.problem != "failed")
    return next((step for step in steps if step is not None), None)


def _door(door: Door, hooks: tuple[HookState, ...]) -> Iterator[PageRow]:
    unknown = door.problem == "unreadable"
    problem = door.problem or ("" if door.configured else "not_configured")
    is_connected = door.configured and problem not in {"not_configured", "unreadable"}
    words = (
        "connected" if is_connected else "",
        DOOR_PROBLEMS.get(problem, ""),
        "connect again" if door.next == "repair" else "",
    )
    ran = _ran(door) if door.configured or door.last_ran_at else ()
    yield PageRow(DOORS.get(door.door, door.door), joined(*((each,) for each in words), ran))
    if door.door == "hook" and not unknown:
        yield from map(_hook, hooks)


def _hook(hook: HookState) -> PageRow:
    words = (
        "" if hook.configured else DOOR_PROBLEMS["not_configured"],
        TRUST.get(hook.trust or "", hook.trust or ""),
        DOOR_PROBLEMS["disabled"] if hook.enabled is False else "",
    )
    failure = hook.failure
    failed = () if failure is None else (f"failed with {failure.code} ", Part(failure.at, "time"))
    ran = _ran(hook) if hook.configured else ()
    return PageRow(f"Hook {hook.event}", joined(*((each,) for each in words), ran, failed))


def _ran(what: Door | HookState) -> tuple[Part | str, ...]:
    """Return when Codex called last, and for which session."""
    if what.last_ran_at is None:
        return (NEVER_RAN,)
    session = f" for {what.last_session}" if what.last_session else ""
    return (f"{LAST_RAN} ", Part(what.last_ran_at, "time"), session)
