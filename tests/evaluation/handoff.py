"""Ask a model what it knows after a compaction, and compare that with the checkpoint (JUN-39).

    handoff.py SESSION [--codex PROGRAM]

Runs by hand alone: it calls the model that your Codex is set to, once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

QUESTION = """\
Do not call any tool. Answer from what you have been told, with one JSON object and nothing else:
{"task": the request being worked on, word for word,
 "nextStep": the first step of the plan that is not done, or null,
 "files": [the paths of the files that were met last, read or changed]}"""


def main() -> int:
    """Compact, ask, compare; return 0 where the answer has everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--codex", metavar="PROGRAM", default="codex")
    options = parser.parse_args()
    done = _ours("compact", options.session)
    try:
        made = done["sessionId"]
        answer = _asked(options.codex, made)
        scores = _compared(answer, _shown(options.session))
    finally:
        _ours("uncompact", done["compactionId"])
    for what, (held, missing) in scores.items():
        print(f"{what:<9} {held:>4.0%}  {'; '.join(missing)}".rstrip())
    return 0 if all(not missing for _, missing in scores.values()) else 1


def _ours(command: str, subject: str) -> Any:  # noqa: ANN401 - any JSON value
    program = [sys.executable, "-m", "codex_checkpoints", command, subject, "--json"]
    return json.loads(subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout)


def _shown(session: str) -> Mapping[str, Any]:
    program = [sys.executable, "-m", "codex_checkpoints", "show", session]
    return json.loads(subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout)


def _asked(codex: str, session: str) -> Mapping[str, Any]:
    flags = ["--json", "--skip-git-repo-check", QUESTION]
    done = subprocess.run(
        [codex, "exec", "resume", session, *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    said = "{}"
    for line in done.stdout.splitlines():
        event: Any = json.loads(line) if line.startswith(b"{") else {}
        item: Any = event.get("item") or {}
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            said = str(item["text"])
    return json.loads(said[said.find("{") : said.rfind("}") + 1] or "{}")


def _compared(
    answer: Mapping[str, Any], checkpoint: Mapping[str, Any]
) -> dict[str, tuple[float, Sequence[str]]]:
    """Return by question how much of the truth the answer has, and what is missing."""
    plan, artifacts = checkpoint["plan"], checkpoint["artifacts"]
    steps = [step["text"] for step in plan["steps"] if not plan["done"][step["id"]]]
    recent = [each for each in checkpoint["recentArtifacts"] if artifacts[each]["kind"] == "file"]
    task = checkpoint["task"]
    return {
        "task": _held([task["text"]] if task else [], [answer.get("task")]),
        "nextStep": _held(steps[:1], [answer.get("nextStep")]),
        "files": _held(recent, answer.get("files") or ()),
    }


def _held(truth: Iterable[str], said: Iterable[object]) -> tuple[float, Sequence[str]]:
    truth, heard = list(truth), {" ".join(str(each).split()) for each in said}
    missing = [each for each in truth if " ".join(each.split()) not in heard]
    return (1 - len(missing) / len(truth) if truth else 1.0), missing


if __name__ == "__main__":
    raise SystemExit(main())
