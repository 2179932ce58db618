"""How many of the lines under `[CHECKS]` in digests verified nothing?  No model is asked.

    python bench/checks.py [--tokens 8000] [--list] PATH

PATH is a rollout or a folder of them.  The digest of each is made by the product, and a judge of
its own looks at the commands: it splits each line at `&&`, `||`, `;` and `|` and asks whether every
part begins with one of the words by which people look around, tidy up or install.  It knows nothing
of the rules of the product.  Lines of what failed are counted apart: a chore that failed is told.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from measure import Wrong, product, run


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LINE = re.compile(
    r"- (?:t\d+ )?#\d+ (?P<ended>exit (?P<code>-?\d+)|failed|completed|outcome not known)"
    r"(?: \([\d.]+ s\))?(?: in \S+?/)?(?: before later edits)?: (?P<command>.*)"
)
_LOOKS = _names(
    "ls dir tree find fd rg grep cat head tail nl sed awk wc sort uniq cut file stat du df pwd"
    " cd echo printf which type command whoami date env ps ss lsof netstat jq xxd test [ true"
    " sleep for if do done then fi else while get-content get-childitem test-path select-string"
    " get-item select-object where-object foreach-object measure-object write-output get-command"
    " sort-object get-location get-process out-string format-table convertfrom-json"
)
_CHORES = _names(
    "mkdir touch rm rmdir mv cp ln chmod kill pkill killall curl wget tar unzip set-content"
    " new-item remove-item copy-item move-item out-file set-location start-sleep perl"
)
_OF_GIT = re.compile(
    r"git (?:-\S+ \S+ )*(?:status|diff|log|show|branch|add|commit|stash|checkout|restore|fetch|pull"
    r"|push|switch|reset|rev-parse|ls-files|tag|remote|config|init|clone|rm|mv)\b"
)
_INSTALLS = re.compile(
    r"(?:npm|pnpm|yarn|pip3?|uv|poetry|cargo|apt(?:-get)?|brew|python3? -m pip|uv pip)"
    r" (?:i|ci|add|install|sync|ls|list|view)\b"
)
_PRINTS_FILES = re.compile(r"(?:python3?|node) (?:-c|-e|-) ?(?!.*assert).*(?:open\(|read|os\.walk)")
_SPLIT = re.compile(r"\\n|&&|\|\||[;|]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_MOST = 0.05
"""At most one line in twenty may verify nothing."""


def verifies(command: str) -> bool:
    """Return whether a part of a command is neither a look nor a chore."""
    if _PRINTS_FILES.match(command):
        return False
    parts = (part.strip() for part in _SPLIT.split(_QUOTED.sub("Q", command)))
    return any(not _is_idle(part) for part in parts if part)


def _is_idle(part: str) -> bool:
    words = [word for word in part.split() if not re.match(r"\w+=|\$|2>", word)]
    if not words or _OF_GIT.match(part) or _INSTALLS.match(part):
        return True
    is_local = "localhost" in part or "127.0.0.1" in part
    name = words[0].lower().lstrip("({$")
    return name in _LOOKS or (name in _CHORES and not is_local)


def lines_of(path: Path, tokens: int) -> list[str]:
    """Return the lines under `[CHECKS]` in the digest of a rollout."""
    with tempfile.TemporaryDirectory() as folder:
        day = Path(folder, "home/sessions/2026/01/01")
        day.mkdir(parents=True)
        data = path.read_bytes()
        head: dict[str, Any] = json.loads(data.split(b"\n", 1)[0])
        thread = head.get("payload", head).get("id")
        (day / f"rollout-2026-01-01T00-00-00-{thread}.jsonl").write_bytes(data)
        home, state = str(day.parents[3]), os.path.join(folder, "state")
        done = run(product("digest", home, state, thread, "--json", "--tokens", str(tokens)))
    found: list[dict[str, Any]] = json.loads(done.said)["lines"]
    return [line["text"] for line in found if line["section"] == "CHECKS"]


def main() -> int:
    """Print the counts; end with 1 where more than one line in twenty verifies nothing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("path", type=Path, help="a rollout, or a folder of them")
    parser.add_argument("--tokens", type=int, default=8000)
    parser.add_argument("--list", action="store_true", help="print the lines that verify nothing")
    options = parser.parse_args()
    paths = [options.path] if options.path.is_file() else sorted(options.path.rglob("*.jsonl"))
    counts, sessions = Counter[str](), 0
    for path in paths:
        try:
            told = lines_of(path, options.tokens)
        except (ValueError, KeyError, AttributeError, TypeError, Wrong):  # no session
            continue
        sessions += bool(told)
        for line in told:
            found = _LINE.match(line)
            if found is None:
                counts["not read"] += 1
                continue
            passed = found["code"] == "0" or found["ended"] == "completed"
            is_idle = not verifies(
                found["command"].split("\\n")[0] if not passed else found["command"]
            )
            counts["passed" if passed else "failed"] += 1
            counts["passed, idle" if passed else "failed, idle"] += is_idle
            if is_idle and options.list:
                print(line[:160])
    lines = counts["passed"] + counts["failed"]
    idle = counts["passed, idle"] + counts["failed, idle"]
    share = idle / lines if lines else 0.0
    print(f"{sessions} sessions, {lines} lines, {idle} looks or chores: {share:.1%}")
    print(f"  passed: {counts['passed']}, {counts['passed, idle']} of them looks or chores")
    print(f"  failed: {counts['failed']}, {counts['failed, idle']} of them looks or chores")
    print(f"  not read: {counts['not read']}")
    return int(share > _MOST)


if __name__ == "__main__":
    sys.exit(main())
