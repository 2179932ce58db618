"""Show that two builds give the same answers: every command, every method, every file.

    python tools/same_answers.py --before OTHER/.venv/bin/python --after .venv/bin/python [HOMES]

HOMES is a folder of sample homes, each a folder with `sessions` or `archived_sessions` in it.
Without it the homes are made of the stories in tests/golden. Each home is copied to the same place
for either build, one after the other, and asked in this order:

    read      the commands that change nothing, as text and as JSON, and the refusals
    tour      a sequence of changes, with a look at what each has left
    methods   the JSON-RPC methods of `serve`, those that change something included
    doors     calls of the hook and of the MCP server
    files     the home and our own folder as they are then

and once for all homes: the help of every command (`help`), and extension/src/client/protocol.ts
(`generated`). What is drawn anew is replaced before comparing: ids and digests by numbers in the
order of their first appearance in an answer, times by a mark. What `read` shows is never replaced,
but for folders and for the age in the list of sessions. In `index.sqlite` the rows count, of saved
states and digests only that they are there.

`--keep DIR` stores the answers of the build before and takes them from there the next time.
`--allow FILE` names answers that may differ: a pattern a line, as `s01-*/read/sessions*`.
`--without REGEX` takes a part out of all answers first, as a field that is new.
`--config TEXT` is the config.toml of each home: with "digestTokens = 0" nothing quotes a session.
The exit code is 1 where anything else differs.
"""

import argparse
import difflib
import fcntl
import fnmatch
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from asking import Answers, Asked, Build, Calls, copy_home, golden_homes, homes_in, text_of
from questions import METHODS, ask_everything

PLACE = Path(tempfile.gettempdir(), "same-answers")

# --- both builds, and the comparison -------------------------------------------------------------


@contextmanager
def taken(place: Path) -> Generator[None]:
    """Hold a place as long as the block runs: another comparison on this machine waits."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            shutil.rmtree(place, ignore_errors=True)


def answers_of(build: Build, home: Path, config: str = "") -> Answers:
    """Ask one build about one home; the caller holds the place."""
    place = PLACE / home.name
    copy_home(home, place, config)
    calls = Calls(build, place / "out")
    try:
        asked = Asked(build, calls, place)
        ask_everything(asked)
    finally:
        calls.close()
    return asked.answers


def helps(build: Build) -> Answers:
    """Ask one build for what does not hang on a home."""
    place = PLACE / "help"
    for name in ("work", "user", "out", "codex"):
        (place / name).mkdir(parents=True, exist_ok=True)
    calls = Calls(build, place / "out")
    try:
        asked = Asked(build, calls, place)
        for arguments in (("--help",), ("--version",)):
            asked.command("help", *arguments)
        for name in commands_of(asked.answers["help"]["--help"]):
            asked.command("help", name, "--help")
    finally:
        calls.close()
    file = build.repository / "extension/src/client/protocol.ts"
    asked.note("generated", "protocol.ts", text_of(file))
    asked.note("generated", "methods", "\n".join(methods_of(build)))
    return asked.answers


def commands_of(told: str) -> list[str]:
    """Return the names of the commands that the help lists."""
    return re.findall(r"(?m)^    ([a-z][a-z-]*)\b", told)


def methods_of(build: Build) -> list[str]:
    """Return the methods that a build's page of the protocol has."""
    page = text_of(build.repository / "server/PROTOCOL.md")
    return re.findall(r"(?m)^## `checkpoints/(\w+)`", page)


def kept(
    folder: Path | None, home: Path | None, ask: Callable[[], Answers], config: str
) -> Answers:
    """Return what was kept of the build before, else ask, and keep it.

    Its name holds a digest of the questions and the home: answers to others are not used.
    """
    if folder is None:
        return ask()
    seen = hashlib.sha256(config.encode())
    for name in ("asking.py", "questions.py"):
        seen.update(Path(__file__).with_name(name).read_bytes())
    for file in sorted(home.rglob("*")) if home else ():
        seen.update(file.read_bytes() if file.is_file() else file.name.encode())
    path = folder / f"{home.name if home else 'help'}-{seen.hexdigest()[:12]}.json"
    if path.is_file():
        return cast("Answers", json.loads(path.read_text()))
    answers = ask()
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(answers))
    unfinished.replace(path)
    return answers


def differences(
    name: str, before: Answers, after: Answers, allowed: Sequence[str], without: str
) -> Iterator[tuple[str, bool]]:
    """Yield the lines of the report on a home, each with whether something differs there."""
    for kind in dict.fromkeys((*before, *after)):
        one, two = (
            {each: re.sub(without, "", text) if without else text for each, text in kinds.items()}
            for kinds in (before.get(kind, {}), after.get(kind, {}))
        )
        wrong = [each for each in dict.fromkeys((*one, *two)) if one.get(each) != two.get(each)]
        may = [
            each
            for each in wrong
            if any(fnmatch.fnmatchcase(f"{name}/{kind}/{each}", pattern) for pattern in allowed)
        ]
        wrong = [each for each in wrong if each not in may]
        counts = f"{len(one)} asked, {len(wrong)} differ" + (f", {len(may)} allowed" if may else "")
        yield f"{name:42} {kind:10} {counts}", bool(wrong)
        for each in wrong:
            yield from (
                (line, True)
                for line in difflib.unified_diff(
                    one.get(each, "").splitlines(),
                    two.get(each, "").splitlines(),
                    f"before {name}/{kind}/{each}",
                    f"after  {name}/{kind}/{each}",
                    lineterm="",
                    n=1,
                )
            )


def unasked(builds: Sequence[Build]) -> list[str]:
    """Return the methods that no question is there for."""
    known = {*METHODS, "changed", "strayed"}
    return sorted({name for build in builds for name in methods_of(build)} - known)


def main() -> int:
    """Compare; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("homes", nargs="?", type=Path, help="a folder of homes")
    parser.add_argument("--before", type=Path, required=True, help="the interpreter of one build")
    parser.add_argument("--after", type=Path, required=True, help="that of the other one")
    parser.add_argument("--only", default="*", help="a pattern: which homes")
    parser.add_argument("--keep", type=Path, help="where the answers of the build before are kept")
    parser.add_argument("--allow", type=Path, help="a file that names what may differ")
    parser.add_argument("--without", default="", help="what is taken out of all answers first")
    parser.add_argument("--config", default="", help="our config.toml of each home")
    parser.add_argument("--jobs", type=int, default=2, help="so many homes at once")
    options = parser.parse_args()
    before, after = (Build(path.absolute()) for path in (options.before, options.after))
    config: str = options.config
    lines = text_of(options.allow).splitlines() if options.allow else []
    allowed = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    with tempfile.TemporaryDirectory() as made:
        folder = options.homes or golden_homes(Path(made))
        homes = [each for each in homes_in(folder) if fnmatch.fnmatch(each.name, options.only)]

        def compare(home: Path | None) -> list[tuple[str, bool]]:
            name = home.name if home else "help"
            with taken(PLACE / name):
                if home:
                    one = kept(options.keep, home, lambda: answers_of(before, home, config), config)
                    two = answers_of(after, home, config)
                else:
                    one, two = kept(options.keep, None, lambda: helps(before), ""), helps(after)
            return list(differences(name, one, two, allowed, options.without))

        different = False
        with ThreadPoolExecutor(options.jobs) as pool:
            for report in pool.map(compare, [None, *homes]):
                for line, wrong in report:
                    print(line, flush=True)
                    different |= wrong
    for method in unasked((before, after)):
        print(f"no question asks checkpoints/{method}")
        different = True
    print("The builds differ." if different else f"No difference in {len(homes)} homes.")
    return int(different)


if __name__ == "__main__":
    raise SystemExit(main())
