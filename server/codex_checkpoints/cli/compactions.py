"""`compact` and `uncompact`: a checkpoint in the place of a history, and back."""

from __future__ import annotations

import argparse
import os
from functools import partial

from codex_checkpoints.answers import compactions as answers
from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import OF_OURS, add_json, add_session, positive
from codex_checkpoints.cli.commands import Commands, named, refresh, told
from codex_checkpoints.presentation import compactions as texts

STRATEGY = "who compacts: we, or Codex itself, which asks its model over the network"


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "go on from a checkpoint instead of the whole history"
    compact = commands.add("compact", about, _compact, _wrong)
    add_session(compact, OF_OURS)
    compact.add_argument(
        "--into",
        choices=("new", "in-place"),
        default="new",
        help="where the work goes on: in a new session, or in the same one",
    )
    compact.add_argument(
        "--strategy", choices=("checkpoint", "codex"), default="checkpoint", help=STRATEGY
    )
    compact.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive,
        help="how long Codex may take for its summary",
    )
    compact.add_argument(
        "--placement", metavar="MODE", default="manual", help="for the record: manual, or pre_turn"
    )
    compact.add_argument("--dry-run", action="store_true", help="only say what would come of it")
    compact.add_argument(
        "--force",
        action="store_true",
        help="also where it gets no smaller, or the last turn was cut off",
    )
    add_json(compact)

    uncompact = commands.add("uncompact", "take a compaction back", _uncompact)
    uncompact.add_argument(
        "compaction", metavar="COMPACTION", help="its id, as `compact` printed it"
    )
    add_json(uncompact)


def _wrong(options: argparse.Namespace) -> str | None:
    waits = options.strategy == "codex" or options.timeout is None
    return None if waits else "--timeout goes with --strategy codex"


def _compact(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.outside import outside
    from codex_checkpoints.service.compaction.compacting import Compacting
    from codex_checkpoints.service.compaction.request import Request

    compacting = Compacting(house.sessions, outside(os.environ), partial(refresh, house))
    request = Request(
        options.session,
        options.into,
        options.strategy,
        options.placement,
        options.force,
        options.timeout,
    )
    if options.dry_run:
        found = compacting.preview(request)
    else:
        asked = compacting.ask(request)
        if options.strategy == "codex":
            output.say("Codex is asked for a summary, which takes a while; Ctrl-C stops it")
        done = compacting.install(asked.consult())
        found = compacting.finish(done, done.tell())
    record = answers.compacted(found)
    return told(options, record, texts.compaction_lines(record, named(options)))


def _uncompact(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.outside import outside
    from codex_checkpoints.service.compaction.undoing import Undoing

    refresh(house)
    undoing = Undoing(house.sessions, outside(os.environ))
    record = answers.uncompacted(undoing.uncompact(options.compaction))
    return told(options, record, texts.uncompacted_lines(record, named(options)))
