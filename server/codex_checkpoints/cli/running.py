"""`watch`, and `serve`, `mcp`, `hook`: what runs until it is stopped.

The last three are the doors for programs, each loaded only when it is opened.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import TYPE_CHECKING

from codex_checkpoints.assembly import Places
from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import DONE, Commands, Terminal, add_json, port
from codex_checkpoints.presentation import sessions as texts
from codex_checkpoints.service import following
from codex_checkpoints.service.following import Changed, Follower

if TYPE_CHECKING:
    from codex_checkpoints.storage.watch import Watcher


def add_watch(commands: Commands) -> None:
    """Add `watch`."""
    about = "follow the sessions and keep their checkpoints current"
    watch = commands.add("watch", about, _watch)
    watch.add_argument("--once", action="store_true", help="bring all up to date and end")
    add_json(watch, "one JSON object a change")


def add_doors(commands: Commands) -> None:
    """Add the doors for programs."""
    about = "be the language server of an editor, on stdin and stdout"
    serve = commands.add_alone("serve", about, _serve)
    serve.add_argument("--tcp", metavar="PORT", type=port, help="on a loopback port, to debug")
    commands.add_alone("mcp", "be the MCP server of Codex, on stdin and stdout", _mcp)
    commands.add_alone("hook", "answer one call of a hook of Codex's, on stdin and stdout", _hook)


def _watch(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.storage.watch import Watcher

    follower = Follower(services.sessions)
    if options.once:
        services.look_around()
        _tell(follower.keep_all(), services, options)
        return DONE
    with _ending_on_signals():
        watcher = Watcher(follower.mark)
        try:
            for root in follower.trees():
                watcher.follow_tree(root)
            services.look_around()
            count = len(services.sessions.catalogue.current())
            output.say(f"following {count} sessions under {services.where.codex_home}")
            _tell(follower.begin(), services, options)
            _follow(follower, watcher, lambda change: _tell(change, services, options))
        finally:
            watcher.stop()
    return DONE


def _follow(follower: Follower, watcher: Watcher, tell: Callable[[Changed], None]) -> None:
    folders: frozenset[str] = frozenset()
    while True:
        if follower.folders() != folders:
            folders = follower.folders()
            watcher.follow_folders(set(folders))
            # A file may have changed before its folder was watched.
            changes = follower.reconcile()
        elif follower.marked.wait(following.RECONCILE_SECONDS):
            time.sleep(following.DEBOUNCE_SECONDS)
            changes = follower.drain()
        else:
            changes = follower.reconcile()
        for change in changes:
            tell(change)


def _tell(change: Changed, services: Terminal, options: argparse.Namespace) -> None:
    current = services.sessions.catalogue.current()
    for session_id in change.session_ids:
        if options.json:
            output.write_json({"sessionId": session_id, "reason": change.reason}, indent=False)
        else:
            row, colour = current.get(session_id), output.colour()
            line = (
                texts.gone_line(session_id, change.reason, colour=colour)
                if row is None
                else texts.change_line(session_id, row.task, change.reason, colour=colour)
            )
            output.write_lines([line])


@contextlib.contextmanager
def _ending_on_signals() -> Generator[None]:
    """End cleanly when asked to: SIGTERM counts like Ctrl+C."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _serve(options: argparse.Namespace, where: Places) -> int:
    from codex_checkpoints import server

    server.serve(where, tcp=options.tcp)
    return DONE


def _mcp(options: argparse.Namespace, _where: Places) -> int:
    from codex_checkpoints import mcp

    return mcp.serve(options.codex_home, options.state_dir)


def _hook(options: argparse.Namespace, _where: Places) -> int:
    from codex_checkpoints import hook

    return hook.serve(options.codex_home, options.state_dir)
