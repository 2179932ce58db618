"""Compare predicted context sizes with what sessions report (NUM-1).

    bench/token_figures.py FOLDER...

For every call that reports tokens: the size that the reports before it predict, against its own
("next call").  For every session: the size of its first call as the earlier session of the same
folder predicts it, whose history was another one, as after a compaction ("other history").
Beside it stands the rule of before: the newest report beyond our estimate of the history.
Apart are the calls that search the web, whose pages nothing predicts, and the cases in which only
such a call was reported before: there the product says that it does not know.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from statistics import median

import orjson

from codex_checkpoints.core.agents.codex.history.items import read_item, replacement_of
from codex_checkpoints.core.agents.codex.history.tokens import TokenReport, calibrated, of_item
from codex_checkpoints.core.agents.codex.parsing import item_of
from codex_checkpoints.core.events import Tokens
from codex_checkpoints.core.fields import Json, object_of


def session_files(folders: Sequence[str]) -> list[str]:
    """Return the paths of the session files below some folders, in order."""
    return sorted(
        os.path.join(folder, name)
        for top in folders
        for folder, _, names in os.walk(top)
        for name in names
        if name.endswith(".jsonl")
    )


def windows(path: str) -> Iterator[tuple[str, list[TokenReport]]]:
    """Yield the reports of each window of a session, with its folder; up to a rollback."""
    cwd, history, reports, has_pages = "", 0, list[TokenReport](), False
    with open(path, "rb") as file:
        for raw in file:
            try:
                line: Json = object_of(orjson.loads(raw))
            except orjson.JSONDecodeError:
                continue
            kind, payload = str(line.get("type")), object_of(line.get("payload"))
            if kind == "session_meta" and not cwd:
                cwd = str(payload.get("cwd"))
            elif kind == "response_item":
                item = read_item(payload)
                history += 0 if item is None else of_item(item)
                has_pages = has_pages or payload.get("type") == "web_search_call"
            elif kind == "compacted":
                yield cwd, reports
                history, reports = sum(map(of_item, replacement_of(payload) or ())), []
                has_pages = False
            elif payload.get("type") == "thread_rolled_back":
                break
            elif payload.get("type") == "token_count":
                usage = item_of(kind, payload, bare=False)
                if isinstance(usage, Tokens) and usage.total and not usage.is_impossible:
                    report = TokenReport(history, usage.total, usage.is_estimate, has_pages)
                    is_new = not reports or reports[-1].tokens != usage.total
                    if is_new and not report.is_estimate:
                        reports.append(report)
                        has_pages = False
    yield cwd, reports


def error(predicted: int, reported: int) -> float:
    """Return how far a prediction is off, as a share of the report."""
    return abs(predicted - reported) / reported


NEAR = 0.1
"""A prediction is near when it is off by at most this share (NUM-1)."""


def show(name: str, errors: Sequence[float]) -> None:
    """Print the median and the worst error, and the share of near predictions."""
    within = sum(each <= NEAR for each in errors) / len(errors)
    print(
        f"{name:28} {len(errors):5} predictions  median {median(errors):6.1%}"
        f"  worst {max(errors):7.1%}  within 10 % {within:4.0%}"
    )


def main() -> None:
    """Measure the sessions in the folders that the command line names."""
    if not sys.argv[1:]:
        sys.exit("usage: bench/token_figures.py FOLDER...")
    found: dict[str, tuple[list[float], list[float]]] = {"next call": ([], []), "other": ([], [])}
    searches = unknown = 0
    earlier: dict[str, list[TokenReport]] = {}
    for path in session_files(sys.argv[1:]):
        for cwd, reports in windows(path):
            cases = [("next call", reports[:at], reports[at]) for at in range(1, len(reports))]
            if cwd in earlier and reports:
                cases.append(("other", earlier[cwd], reports[0]))
            for name, known, call in cases:
                last, now = known[-1], calibrated(known)
                if call.has_pages or now.overhead is None:
                    searches += call.has_pages
                    unknown += not call.has_pages
                    continue
                before = max(0, last.tokens - last.history) + call.history
                old, new = found[name]
                old.append(error(before, call.tokens))
                new.append(error(now.in_use(call.history), call.tokens))
            if reports:
                earlier[cwd] = reports
    for name, (old, new) in found.items():
        if old:
            show(f"{name}, rule of before", old)
            show(f"{name}, calibrated", new)
    print(f"calls that search the web: {searches}; nothing else reported before: {unknown}")


if __name__ == "__main__":
    main()
