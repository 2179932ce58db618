"""Compare lists and turns of sessions with those of the real Codex (NOW-6).

    bench/against_codex.py [--verbose] FOLDER...

Session files below the folders are copied into a throw-away home.  For each: the title, folder and
branch of our row against `thread/list`, and the number, ids and ends of our turns against
`thread/read`.  It prints how many are equal, and with `--verbose` where the others differ; no text
of a session but titles is printed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from codex.codex_cli import AppServer, CodexHome
from codex.product import service_over
from codex.scripted_model import ScriptedModel
from codex_checkpoints.service.history.timelines import timeline
from codex_checkpoints.service.sessions.sessions import Sessions

NAME = re.compile(r"rollout-.*-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")
KINDS = [
    *("cli", "vscode", "exec", "appServer", "unknown"),
    *("subAgent", "subAgentReview", "subAgentCompact", "subAgentThreadSpawn", "subAgentOther"),
]
PROVIDER = re.compile(rb'("model_provider(?:_id)?"\s*:\s*)"[^"]*"')
ENDS = {"answered": "completed", "failed": "failed", "aborted": "interrupted"}


ASKED_OR_ANSWERED = {"userMessage", "agentMessage", "plan", "enteredReviewMode"}


def session_files(folders: Iterable[Path]) -> dict[str, Path]:
    """Return one file a session, by its id, of those below some folders."""
    found = dict[str, Path]()
    for folder in folders:
        for path in sorted(folder.rglob("rollout-*.jsonl")):
            named = NAME.match(path.name)
            if named is not None:
                found.setdefault(named[1], path)
    return found


def copy(paths: Iterable[Path], home: CodexHome) -> None:
    """Copy session files into a home."""
    folder = home.codex_home / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    for path in paths:
        # Codex loads a thread of a provider that it knows.
        with path.open("rb") as session, (folder / path.name).open("wb") as other:
            other.writelines(PROVIDER.sub(rb'\1"scripted"', line) for line in session)


def listed(server: AppServer) -> dict[str, Any]:
    """Return the threads that Codex lists, by id, once the list has stopped growing."""
    before = -1
    while True:
        threads, cursor = dict[str, Any](), None
        while True:
            asked = {"limit": 100, "sourceKinds": [*KINDS], "modelProviders": [], "cursor": cursor}
            page = cast("Any", server.call("thread/list", asked))
            threads |= {each["id"]: each for each in page["data"]}
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        if len(threads) == before:
            return threads
        before = len(threads)
        time.sleep(1)


def own_turns(turns: list[Any]) -> list[tuple[str, str]]:
    """Return id and status of the turns of Codex that are turns by our rules too.

    Not those in which nobody was asked and nothing was answered (a compaction, a command of the
    user's own), nor a reviewer's inside a review, which Codex leaves open before it.
    """
    found = list[tuple[str, str]]()
    for turn in turns:
        kinds = {item["type"] for item in turn["items"]}
        if "enteredReviewMode" in kinds and found and found[-1][1] == "interrupted":
            found.pop()
        if turn["status"] != "completed" or kinds & ASKED_OR_ANSWERED:
            found.append((turn["id"], turn["status"]))
    return found


def differences(sessions: Sessions, server: AppServer, thread: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    """Yield what differs between a thread of Codex and our session: its name, and both values."""
    row = sessions.own(thread["id"])
    ours = sessions.summaries.of(row)
    title = " ".join((ours.title or "").split()).removesuffix("…")
    theirs: dict[str, str | None] = {
        "title": " ".join((thread["name"] or thread["preview"]).split())[: len(title)],
        "folder": thread["cwd"],
        "branch": None if thread["gitInfo"] is None else thread["gitInfo"]["branch"],
    }
    git = ours.git
    own = {"title": title, "folder": ours.cwd, "branch": None if git is None else git.branch}
    for name, value in theirs.items():
        if own[name] != value:
            yield name, f"{str(own[name])[:70]!r} / {str(value)[:70]!r}"
    server.resume(thread["id"])  # only a thread that was loaded has its turns
    turns = own_turns(cast("Any", server.turns(thread["id"])))
    found = [
        (turn.turn_id, ENDS.get(turn.outcome, "interrupted"))
        for turn in timeline(sessions, thread["id"]).turns
    ]
    if ours.made_by is not None:
        turns = [turn for turn in turns if turn[0] in {each for each, _ in found}]  # one names it
    if len(found) != len(turns):
        yield "number of turns", f"{len(found)} / {len(turns)}"
    elif [end for _, end in found] != [end for _, end in turns]:
        pairs = zip(found, turns, strict=True)
        yield (
            "ends",
            str([(place, a[1], b[1]) for place, (a, b) in enumerate(pairs) if a[1] != b[1]]),
        )
    if len(found) == len(turns) and [each for each, _ in found] != [each for each, _ in turns]:
        yield "ids", f"{found[0][0]} / {turns[0][0]}"


def main() -> None:
    """Compare, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as root, ScriptedModel(()) as model:
        home = CodexHome(Path(root) / "lab", model)
        files = session_files(options.folders)
        copy(files.values(), home)
        with AppServer(home) as server, service_over(home) as sessions:
            threads = listed(server)
            for name in files:
                if name not in threads:
                    counts["not listed by Codex"] += 1
                    if options.verbose:
                        print(f"{name}: not listed by Codex")
                    continue
                counts["compared"] += 1
                try:
                    found = list(differences(sessions, server, threads[name]))
                except (AssertionError, TimeoutError) as error:
                    found = [("not read by Codex", str(error)[:150])]
                counts["equal"] += not found
                for what, values in found:
                    counts[f"{what} differ"] += 1
                    if options.verbose:
                        print(f"{name}: {what}: {values}")
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
