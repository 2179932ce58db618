"""Defines the commands `remote`, `push` and `pull`."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Iterable

from attrs import evolve

from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import (
    CHOSEN,
    DONE,
    JSON,
    REFUSED,
    Commands,
    answer,
    ask,
    flag,
    one_of,
    report,
    screen,
    value,
)
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import remote as texts
from codex_checkpoints.operations import push, remote
from codex_checkpoints.service.progress import run_steps
from codex_checkpoints.service.refusal import Refusal

FOLLOW_SECONDS = 2.0
"""The least seconds between two checks of `push --follow` for grown sessions."""

PAUSE_FACTOR = 9
"""The factor of the pause to the time of the last check: nine tenths of the time are free."""

_ACTIONS = ("set", "status", "delete", "audit", "retain")
_USAGE = """codex-checkpoints remote set DIR|URL [--yes] [--json]
       codex-checkpoints remote status [--json]
       codex-checkpoints remote delete SESSION [--yes] [--json]
       codex-checkpoints remote audit [--limit N] [--json]
       codex-checkpoints remote retain --days N [--yes] [--json]"""


def add(commands: Commands) -> None:
    """Add the commands."""
    yes = flag("--yes", "do it without asking")
    commands.add(
        "remote",
        _remote,
        value("action", "ACTION", "set, status, delete, audit or retain", choices=_ACTIONS),
        value("target", "TARGET", "the folder or postgresql://…; or the session", nargs="?"),
        value("--days", "N", "retain: remove lines not pushed for N days", type=int),
        value("--limit", "N", "audit: at most N entries", type=int, default=100),
        yes,
        JSON,
        check=_wrong_action,
        before=None,
        usage=_USAGE,
    )
    cwd, _ = CHOSEN
    commands.add(
        "push",
        _push,
        value("session_ids", "SESSION", "sessions: ids, their beginnings, or names", nargs="*"),
        cwd,
        value("--since", "TIME", "only sessions that changed since, such as 2026-11-28"),
        one_of(
            value("--team", "NAME", "let a team read them, on a server"),
            flag("--private", "keep them private; this is the default"),
        ),
        flag("--allow-redacted", "also sessions with more than 20 secrets, redacted"),
        flag("--follow", "keep pushing as the sessions grow, until Ctrl+C"),
        flag("--dry-run", "only preview the push"),
        flag("--yes", "push without asking"),
        JSON,
        check=_wrong_choice,
    )
    commands.add(
        "pull",
        _pull,
        value("session_id", "SESSION", "a session in the remote: its id, or the beginning of it"),
        value("--into", "DIR", "the folder of the branch", type=os.path.abspath),
        JSON,
    )


def _wrong_action(options: argparse.Namespace) -> str | None:
    if (options.days is None) == (options.action == "retain"):
        return "retain needs --days, and nothing else has it"
    if options.days is not None and options.days < 1:
        return "--days must be 1 or more"
    if options.action not in {"set", "delete"}:
        return f"{options.action} takes no {options.target!r}" if options.target else None
    wanted = {"set": "the folder or server", "delete": "the session"}[options.action]
    return None if options.target else f"{options.action} what? Name {wanted}"


def _wrong_choice(options: argparse.Namespace) -> str | None:
    if not (options.session_ids or options.cwd or options.since):
        return "push which sessions? Name them, or give --cwd or --since"
    if options.session_ids and (options.cwd or options.since):
        return "either name sessions, or choose them with --cwd and --since"
    if options.follow and options.dry_run:
        return "--dry-run shows one push, and --follow makes many"
    return None


def _remote(options: argparse.Namespace, services: Terminal) -> int:
    if options.action == "status":
        return answer(options, services, remote.remote_status, texts.status_lines)
    if options.action == "audit":
        return answer(options, services, remote.remote_audit, texts.audit_lines)
    if options.action == "delete":
        return _delete(options, services)
    if options.action == "retain":
        if not options.yes:
            run_steps(remote.require_team(services))
        question = f"Remove the lines of sessions that nobody pushed for {options.days} days?"
        _consent(options, question, "nothing was removed")
        return answer(options, services, remote.remote_retain, texts.retained_lines)
    options.place, options.make = options.target, False
    status = ask(options, services, remote.remote_set)
    if not status.made:
        _consent(options, f"Make a remote in {status.place}?", "nothing was made")
        options.make = True
        status = ask(options, services, remote.remote_set)
    return report(options, status, texts.status_lines(status, screen(options)))


def _delete(options: argparse.Namespace, services: Terminal) -> int:
    options.session_id = options.target
    if not options.yes:
        found = run_steps(remote.remote_row(services, options.target))
        options.session_id = found.session_id
        _consent(options, texts.asks_to_delete(found), "nothing was deleted")
    return answer(options, services, remote.remote_delete, texts.deleted_lines)


def _consent(options: argparse.Namespace, question: str, otherwise: str) -> None:
    """Ask, unless `--yes`; refuse `cancelled` for a no, and without a terminal."""
    if options.yes:
        return
    if options.json or not output.is_answered():
        hint = "--yes does it without asking."
        raise Refusal("cancelled", f"{otherwise}: nobody could be asked", {"hint": hint})
    if not output.agreed(texts.question(question)):
        raise Refusal("cancelled", otherwise)


def _push(options: argparse.Namespace, services: Terminal) -> int:
    options.session_ids = tuple(options.session_ids)
    options.cwd = options.cwd or None
    with contextlib.closing(ask(options, services, push.prepare_push)) as prepared:
        if not options.json:
            output.write_lines(texts.preview_lines(prepared.shown, screen(options)))
        if options.dry_run:
            return _report(options, prepared.shown, ())
        if prepared.going:
            _consent(options, texts.push_question(prepared.shown), "nothing was pushed")
        done = run_steps(push.send(services, prepared))
    code = _report(options, done, texts.push_lines(done, screen(options)))
    if options.follow:
        _follow(options, services)
    return code


def _report(options: argparse.Namespace, record: push.Push, lines: Iterable[str]) -> int:
    report(options, record, lines)
    return REFUSED if record.refused and not record.sessions else DONE


def _follow(options: argparse.Namespace, services: Terminal) -> None:
    """Push grown sessions again, until Ctrl+C; sessions that the remote rejects now are retried.

    A large session takes long each time, so the pauses grow with it.
    """
    params = push.PushParams(
        options.session_ids, options.cwd, options.since, options.allow_redacted, options.team
    )
    seen = push.versions(services, params)
    output.say(texts.following(len(seen)))
    took, failed = 0.0, dict[str, str]()
    try:
        while True:
            time.sleep(max(FOLLOW_SECONDS, PAUSE_FACTOR * took))
            services.update_index()
            began, now = time.monotonic(), push.versions(services, params)
            for session_id in now:
                if seen.get(session_id) != now[session_id]:
                    one = evolve(params, session_ids=(session_id,))
                    refusal = _pushed(options, services, one)
                    if refusal is not None and failed.get(session_id) != refusal.message:
                        output.refused(refusal, screen(options), as_json=options.json)
                    if refusal is None or not refusal.code.startswith("remote_"):
                        seen[session_id] = now[session_id]
                    failed[session_id] = "" if refusal is None else refusal.message
            took = time.monotonic() - began
    except KeyboardInterrupt:
        return


def _pushed(
    options: argparse.Namespace, services: Terminal, params: push.PushParams
) -> Refusal | None:
    """Push one session and print it; return the refusal if it is refused."""
    try:
        done = run_steps(push.push(services, params))
    except Refusal as refusal:
        return refusal
    report(options, done, texts.push_lines(done, screen(options)))
    return None


def _pull(options: argparse.Namespace, services: Terminal) -> int:
    return answer(options, services, remote.pull_session, texts.pulled_lines)
