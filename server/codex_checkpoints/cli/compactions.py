"""`compact` and `uncompact`: a checkpoint in the place of a history, and back."""

from __future__ import annotations

import argparse
import os

from codex_checkpoints import answers, presentation
from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import OF_OURS, add_json, add_session, positive
from codex_checkpoints.cli.commands import Commands, refresh, told

STRATEGY = "who compacts: we, or Codex itself, which asks its model over the network"


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "go on from a checkpoint instead of the whole history"
    compact = commands.add("compact", about, _compact)
    add_session(compact, OF_OURS)
    compact.add_argument(
        "--into", choices=("new", "in-place"), default="new", help="where the work is to go on"
    )
    compact.add_argument(
        "--strategy", choices=("checkpoint", "codex"), default="checkpoint", help=STRATEGY
    )
    compact.add_argument(
        "--timeout", metavar="SECONDS", type=positive, help="how long Codex may take"
    )
    compact.add_argument("--placement", metavar="MODE", default="manual", help="manual or pre_turn")
    compact.add_argument("--dry-run", action="store_true", help="say what would come of it")
    compact.add_argument(
        "--force", action="store_true", help="even where it is not smaller, or was cut off"
    )
    add_json(compact)

    uncompact = commands.add("uncompact", "take a compaction back", _uncompact)
    uncompact.add_argument("compaction", metavar="COMPACTION", help="the id of a compaction")
    add_json(uncompact)


def _compact(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.outside import outside
    from codex_checkpoints.service.compacting import Compacting
    from codex_checkpoints.service.compaction_request import Request

    refresh(house)
    compacting = Compacting(house.sessions, outside(os.environ))
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
    return told(options, record, presentation.compaction_lines(record))


def _uncompact(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.outside import outside
    from codex_checkpoints.service.undoing import Undoing

    refresh(house)
    undoing = Undoing(house.sessions, outside(os.environ))
    record = answers.uncompacted(undoing.uncompact(options.compaction))
    return told(options, record, presentation.uncompacted_lines(record))
