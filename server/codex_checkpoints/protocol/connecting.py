"""How Codex and we are connected, and what was found and skipped."""

from __future__ import annotations

from codex_checkpoints.values import frozen


@frozen
class DoctorParams:
    """Nothing to say."""


@frozen
class DoctorFinding:
    """One thing worth knowing, with a way out; `severity` is `error`, `warning` or `info`."""

    code: str
    severity: str
    message: str
    path: str | None
    count: int
    way_out: str


@frozen
class DoctorReport:
    """What was found, skipped and why; `skipped` counts what gave nothing, by reason."""

    codex_home: str
    state_dir: str
    sessions: int
    findings: tuple[DoctorFinding, ...]
    skipped: dict[str, int]


@frozen
class ConnectParams:
    """What is wished: to connect, or to `remove`; to see it only (`dryRun`), or how things stand.

    `cwd` is the folder whose project may have a configuration of its own.
    """

    dry_run: bool = False
    remove: bool = False
    status: bool = False
    cwd: str | None = None


@frozen
class ConnectFailure:
    """A call of ours that failed and that no good one has followed."""

    at: str
    session_id: str | None
    code: str


@frozen
class ConnectDoor:
    """One way in which Codex calls us: `hook` or `mcp`.

    `trusted` is null where that is not known, for the reason in `trustUnknown`; Codex asks for no
    trust in an MCP server.  `problem` is null or `not_configured`, `unreadable`
    (whether it is configured is not known), `incomplete`, `program_missing`, `other_program`,
    `other_folders`, `no_hooks`, `disabled`, `untrusted`, `failed`.  `next` is what helps:
    null or `connect`, `repair`, `trust`, `update_codex`, `choose_home`; `wayOut` says it in a
    sentence.  `byHand` tells that a person wrote something that calls it, which `connect` neither
    changes nor takes out.
    """

    door: str
    configured: bool
    trusted: bool | None
    trust_unknown: str | None
    last_ran_at: str | None
    last_session: str | None
    failure: ConnectFailure | None
    problem: str | None
    next: str | None
    way_out: str | None
    by_hand: bool


@frozen
class ConnectHook:
    """A hook of ours; `trust` is Codex's word: `trusted`, `untrusted`, `modified`, `managed`."""

    event: str
    configured: bool
    trust: str | None
    enabled: bool | None
    last_ran_at: str | None
    last_session: str | None
    failure: ConnectFailure | None


@frozen
class ConnectHome:
    """Another Codex home of this user: whether it is connected, and whether sessions are there."""

    codex_home: str
    connected: bool
    has_sessions: bool


@frozen
class ConnectChange:
    """A file of Codex's that was changed, or would be; `action` is `create`, `edit` or `delete`.

    `diff` shows what comes and goes, and nothing of what stays.
    """

    path: str
    action: str
    diff: str
    backup: str | None


@frozen
class ConnectReport:
    """How Codex and we are connected, and what was `written` or would be.

    `codexProblem` is null or `codex_not_found`, `timed_out`, `codex_failed`, `hooks_unknown`.
    """

    codex_home: str
    codex_path: str | None
    codex_version: str | None
    codex_problem: str | None
    doors: tuple[ConnectDoor, ...]
    hooks: tuple[ConnectHook, ...]
    other_homes: tuple[ConnectHome, ...]
    problems: tuple[str, ...]
    way_out: str | None
    written: bool
    changes: tuple[ConnectChange, ...]
