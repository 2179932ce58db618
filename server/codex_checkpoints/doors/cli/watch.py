"""Runs the command `watch`."""

from __future__ import annotations

import argparse
import contextlib
import signal
import time
from collections.abc import Callable, Generator
from types import FrameType

from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.commands import DONE, Commands, flag, screen
from codex_checkpoints.doors.cli.session_scope import Terminal
from codex_checkpoints.doors.pages import sessions as texts
from codex_checkpoints.service.sessions import session_watcher
from codex_checkpoints.service.sessions.session_watcher import Changed, SessionWatcher
from codex_checkpoints.storage.watch import Watcher


def add(commands: Commands) -> None:
    """Add the command."""
    once = flag("--once", "bring everything up to date, then stop")
    json = flag("--json", "print one JSON object per change")
    commands.add("watch", _watch, once, json, before=None)


def _watch(options: argparse.Namespace, services: Terminal) -> int:

    output.log_to_stderr()
    follower = SessionWatcher(services.sessions)
    if options.once:
        services.update_index()
        _report(follower.keep_all(), services, options)
        return DONE
    with _ending_on_signals():
        watcher = Watcher(follower.mark)
        try:
            for root in follower.trees():
                watcher.follow_tree(root)
            services.update_index()
            count = len(services.sessions.catalogue.current())
            output.say(f"following {count} sessions under {services.where.codex_home}")
            _report(follower.begin(), services, options)
            _follow(follower, watcher, lambda change: _report(change, services, options))
        finally:
            watcher.stop()
    return DONE


def _follow(follower: SessionWatcher, watcher: Watcher, show: Callable[[Changed], None]) -> None:

    folders: frozenset[str] = frozenset()
    while True:
        if follower.folders() != folders:
            folders = follower.folders()
            watcher.follow_folders(set(folders))
            # A file may have changed before its folder was watched.
            changes = follower.reconcile()
        elif follower.marked.wait(follower.patience):
            time.sleep(session_watcher.DEBOUNCE_SECONDS)
            changes = follower.drain()
        else:
            changes = follower.unmarked()
        for change in changes:
            show(change)


def _report(change: Changed, services: Terminal, options: argparse.Namespace) -> None:
    current = services.sessions.catalogue.current()
    for session_id in change.session_ids:
        if options.json:
            output.write_json({"sessionId": session_id, "reason": change.reason}, indent=False)
        else:
            row = current.get(session_id)
            words = "gone" if row is None else services.sessions.title(row) or "(no message yet)"
            line = texts.change_line(session_id, words, change.reason, screen(options))
            output.write_lines([line])


@contextlib.contextmanager
def _ending_on_signals() -> Generator[None]:
    """End cleanly on a signal: SIGTERM counts like Ctrl+C."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
