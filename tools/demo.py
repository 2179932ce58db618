"""A few small sessions and the project they worked on, for whoever has none of their own yet.

    python tools/demo.py CODEX_HOME PROJECT

Session files are written as Codex writes them: one of 40 turns in the middle of its work, which was
compacted twice, with a helper, a marker, a branch, and a few notes of which one is no longer
backed; one that was compacted; two that are done. Their patches are those of `demo_project`, so
files can be restored. All texts are ours. Both folders must be ours as well: nothing is ever
written into a home in use.
"""

import difflib
import hashlib
import json
import re
import secrets
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

import demo_project
from demo_project import FILES, READER, READER_TESTS, SUPPLIERS, Files

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"

VERSION = "0.169.0"
MODEL = "gpt-5.5"
WINDOW = 258_400
SUMMARY_PREFIX = (
    "Another language model started to solve this problem and produced a summary of its thinking"
    " process. You also have access to the state of the tools that were used by that language"
    " model. Use this to build on the work that has already been done and avoid duplicating work."
    " Here is the summary produced by the other language model, use the information in this"
    " summary to assist with your own analysis:"
)
"""The text with which Codex begins each summary of its own."""
ESTIMATE = 11_300
"""Codex's estimate of the tokens in use after a compaction."""

TESTS = "python -m pytest -q"


def sha256(text: str) -> str:
    """Hash a text as checkpoints write it."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class Session:
    """One session file, written as Codex writes it: each method is a thing that Codex did."""

    def __init__(
        self,
        codex_home: Path,
        project: Path,
        files: Files,
        began: datetime,
        parent: "Session | None" = None,
    ) -> None:
        self.codex_home = codex_home
        self.project = project
        self.files = files
        self.began = self.now = began
        self.id = self._uuid()
        self.turn = ""
        self.seq = -1
        self._lines: list[str] = []
        self._calls = 0
        self._tokens = 0
        meta: dict[str, Json] = {
            "session_id": self.id,
            "id": self.id,
            "timestamp": self._stamp(),
            "cwd": str(project),
            "originator": "codex-tui",
            "cli_version": VERSION,
            "source": "cli",
            "model_provider": "openai",
            "history_mode": "paginated",
            "context_window": {"window_id": self._uuid()},
        }
        if parent is not None:
            spawn: dict[str, Json] = {"parent_thread_id": parent.id, "depth": 1}
            meta |= {"source": {"subagent": {"thread_spawn": spawn}}, "thread_source": "subagent"}
            meta["parent_thread_id"] = parent.id
        self._line("session_meta", meta)

    def asks(self, text: str) -> "Session":
        """Begin a turn: the user asks for something."""
        self.turn = self._uuid()
        started: dict[str, Json] = {"turn_id": self.turn, "model_context_window": WINDOW}
        self._event("task_started", started)
        self._line(
            "turn_context",
            {
                "turn_id": self.turn,
                "cwd": str(self.project),
                "approval_policy": "on-request",
                "model": MODEL,
            },
        )
        self._message("user", "input_text", text)
        parts: list[Json] = [{"type": "text", "text": text, "text_elements": []}]
        return self._item("UserMessage", self._uuid(), {"content": parts})

    def plans(self, done: Iterable[str], to_do: Iterable[str]) -> "Session":
        """Write the plan; the first open step is the one in progress."""
        states = [(text, "completed") for text in done]
        states += [(text, "pending" if i else "in_progress") for i, text in enumerate(to_do)]
        plan: list[Json] = [{"step": text, "status": status} for text, status in states]
        call_id = self._call("function_call", "update_plan", {"arguments": _text({"plan": plan})})
        return self._output("function_call_output", call_id, "Plan updated")

    def runs(self, command: str, output: str, exit_code: int = 0) -> "Session":
        """Run a command."""
        parsed: dict[str, Json] = {"type": "unknown", "cmd": command}
        return self._runs(command, output, parsed, exit_code)

    def reads(self, name: str) -> "Session":
        """Read a file of the project."""
        path: Json = str(self.project / name)
        command = f"cat {name}"
        parsed: dict[str, Json] = {"type": "read", "cmd": command, "name": name, "path": path}
        return self._runs(command, self.files[name], parsed)

    def _runs(
        self, command: str, output: str, parsed: dict[str, Json], exit_code: int = 0
    ) -> "Session":
        call_id = self._call(
            "function_call", "exec_command", {"arguments": _text({"cmd": command})}
        )
        self._item(
            "CommandExecution",
            call_id,
            {
                "command": ["/bin/bash", "-lc", command],
                "cwd": self.project.as_uri(),
                "parsed_cmd": [parsed],
                "status": "failed" if exit_code else "completed",
                "aggregated_output": output,
                "exit_code": exit_code,
            },
        )
        said = f"Process exited with code {exit_code}\nOutput:\n{output}"
        return self._output("function_call_output", call_id, said)

    def changes(self, texts: Files) -> "Session":
        """Give files of the project new texts."""
        hunks = {name: _hunks(self.files[name], text) for name, text in texts.items()}
        self.files |= texts
        updates = "".join(
            f"*** Update File: {name}\n" + re.sub(r"(?m)^@@ .*", "@@", changed)
            for name, changed in hunks.items()
        )
        patch = f"*** Begin Patch\n{updates}*** End Patch"
        call_id = self._call("custom_tool_call", "apply_patch", {"input": patch})
        changes: dict[str, Json] = {
            str(self.project / name): {"type": "update", "unified_diff": changed}
            for name, changed in hunks.items()
        }
        self._item("FileChange", call_id, {"changes": changes, "status": "completed"})
        listed = "".join(f"M {name}\n" for name in texts)
        said = f"Exit code: 0\nOutput:\nSuccess. Updated the following files:\n{listed}"
        return self._output("custom_tool_call_output", call_id, said)

    def uses(self, tokens: int) -> "Session":
        """Report how full the model's window is."""
        self._tokens += tokens
        return self._counts(tokens - 400, 400, tokens)

    def _counts(self, prompt: int, answer: int, tokens: int) -> "Session":
        last: dict[str, Json] = {
            "input_tokens": prompt,
            "cached_input_tokens": 0,
            "output_tokens": answer,
            "total_tokens": tokens,
        }
        info: dict[str, Json] = {
            "total_token_usage": {**last, "total_tokens": self._tokens},
            "last_token_usage": last,
            "model_context_window": WINDOW,
        }
        return self._event("token_count", {"info": info})

    def says(self, text: str) -> "Session":
        """Say something."""
        self._item("AgentMessage", f"msg_{secrets.token_hex(16)}", {"content": [_said(text)]})
        return self._message("assistant", "output_text", text)

    def is_done(self, text: str) -> "Session":
        """Say that all is done: the turn ends."""
        self.says(text)
        done: dict[str, Json] = {"turn_id": self.turn, "last_agent_message": text}
        return self._event("task_complete", done)

    def is_compacted(self, summary: str) -> "Session":
        """Replace the history by a summary of it, and estimate how full the window is then."""
        text = f"{SUMMARY_PREFIX}\n{summary}"
        part: Json = {"type": "input_text", "text": text}
        kept: list[Json] = [{"type": "message", "role": "user", "content": [part]}]
        self._line("compacted", {"message": text, "replacement_history": kept})
        self._event("context_compacted", {})
        return self._counts(0, 0, ESTIMATE)

    def later(self, minutes: float) -> "Session":
        """Let some time pass."""
        self.now += timedelta(minutes=minutes)
        return self

    def notes(self, payload: dict[str, Json], hashes: dict[str, str]) -> "Session":
        """Note what was found out, as `memory.apply` records it."""
        line: dict[str, Json] = {
            "updateId": self._uuid(),
            "seq": self.seq,
            "turnId": self.turn,
            "at": self._stamp(),
            "payload": payload,
            "hashes": dict(hashes),
        }
        updates = self.codex_home / "codex-checkpoints" / "sessions" / self.id / "updates.jsonl"
        updates.parent.mkdir(parents=True, exist_ok=True)
        with updates.open("a", encoding="utf-8", newline="\n") as file:
            file.write(_text(line) + "\n")
        return self

    def knows(self, key: str, value: str, name: str) -> "Session":
        """Note a fact that rests on a file as it is now."""
        seen_hash = sha256(self.files[name])
        evidence: dict[str, Json] = {"source": "file", "ref": name, "hash": seen_hash}
        rests_on: list[Json] = [{"uri": name, "hash": seen_hash}]
        fact: dict[str, Json] = {"kind": "fact", "key": key, "value": value}
        return self.notes({**fact, "evidence": evidence, "dependsOn": rests_on}, {name: seen_hash})

    def decides(self, name: str, topic: str, decision: str, why: str) -> "Session":
        """Note a decision of the user's."""
        evidence: dict[str, Json] = {"source": "user", "ref": "task"}
        payload: dict[str, Json] = {"kind": "decision", "decisionId": name, "topic": topic}
        payload |= {"decision": decision, "rationale": why, "evidence": evidence}
        return self.notes(payload, {})

    def save(self) -> "Session":
        """Write the file where Codex would; its folder and name are in local time."""
        local = self.began.astimezone()
        folder = self.codex_home / "sessions" / f"{local:%Y}" / f"{local:%m}" / f"{local:%d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{self.id}.jsonl"
        path.write_text("".join(self._lines), encoding="utf-8", newline="\n")
        return self

    def _uuid(self) -> str:
        """Make an id that sorts by time, as Codex does (UUIDv7)."""
        stamp = int(self.now.timestamp() * 1000)
        bits = stamp << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
        return str(UUID(int=bits))

    def _stamp(self) -> str:
        return f"{self.now:%Y-%m-%dT%H:%M:%S}.{self.now.microsecond // 1000:03}Z"

    def _line(self, kind: str, payload: dict[str, Json]) -> "Session":
        self.seq += 1
        self.now += timedelta(seconds=1)
        line: dict[str, Json] = {"timestamp": self._stamp(), "ordinal": self.seq}
        self._lines.append(_text({**line, "type": kind, "payload": payload}) + "\n")
        return self

    def _event(self, kind: str, facts: dict[str, Json]) -> "Session":
        return self._line("event_msg", {"type": kind, **facts})

    def _item(self, kind: str, name: str, facts: dict[str, Json]) -> "Session":
        item: dict[str, Json] = {"type": kind, "id": name, **facts}
        whose: dict[str, Json] = {"thread_id": self.id, "turn_id": self.turn}
        return self._event("item_completed", {**whose, "item": item})

    def _message(self, role: str, kind: str, text: str) -> "Session":
        part: Json = {"type": kind, "text": text}
        return self._line("response_item", {"type": "message", "role": role, "content": [part]})

    def _call(self, kind: str, tool: str, facts: dict[str, Json]) -> str:
        self._calls += 1
        call_id = f"call_{self._calls:024x}"
        self._line("response_item", {"type": kind, "name": tool, "call_id": call_id, **facts})
        return call_id

    def _output(self, kind: str, call_id: str, text: str) -> "Session":
        return self._line("response_item", {"type": kind, "call_id": call_id, "output": text})


def _said(text: str) -> Json:
    return {"type": "Text", "text": text}


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _hunks(before: str, after: str) -> str:
    """Return the differences between two texts as Codex records them, without names of files."""
    texts = before.splitlines(keepends=True), after.splitlines(keepends=True)
    lines: Iterator[str] = difflib.unified_diff(*texts)
    return "".join([*lines][2:])


def write_project(project: Path, files: Files) -> None:
    """Write the files of the project."""
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def write_demo(codex_home: Path, project: Path, now: datetime) -> str:
    """Write sessions and project, the newest a minute old; return the id of the longest."""
    files = dict(FILES)

    def session(days: float, parent: Session | None = None) -> Session:
        return Session(codex_home, project, files, now - timedelta(days=days), parent)

    website, website_files = project.parent / "website", dict(demo_project.WEBSITE)
    elsewhere(Session(codex_home, website, website_files, now - timedelta(days=9))).save()
    compacted(session(3)).save()
    done(session(1)).save()
    working = so_far(session(0.25)).save()
    write_project(project, files)
    branch(codex_home, working.id)
    working.now = max(working.now, now - timedelta(minutes=14))
    at_work(working)
    helping(session(10 / 1440, parent=working)).save()
    working.save()
    write_project(project, files)
    return working.id


def branch(codex_home: Path, session_id: str) -> None:
    """Mark a turn of a session and open a branch there, as a person does."""
    ours = [sys.executable, "-m", "codex_checkpoints"]
    home = ["--codex-home", str(codex_home), "--json"]
    mark = [*ours, "mark", session_id, "--turn", "27", "--label", "nine suppliers work", *home]
    made = subprocess.run(mark, check=True, capture_output=True, encoding="utf-8").stdout
    marker = json.loads(made)["checkpointId"]
    restore = [*ours, "restore", session_id, marker, "--mode", "soft", *home]
    subprocess.run(restore, check=True, capture_output=True)


FULL = (5, 9)
"""The suppliers at which the model's window was full."""


def so_far(session: Session) -> Session:
    """Tell of a long piece of work up to its last turn: supplier by supplier, compacted twice."""
    reader, test, files = READER, READER_TESTS, session.files
    steps = ["Take the lists of all suppliers", "Test each of them", "Say it in the README"]
    tokens = 14_000
    session.asks("Let the reader take the price lists of all our suppliers.").plans([], steps)
    session.reads(reader).uses(tokens).is_done("I read one format so far. Which one is next?")
    for number, supplier in enumerate(SUPPLIERS, 1):
        name, oddity = supplier.name, supplier.oddity
        session.later(3).asks(f"The list of {name} has {oddity}. Can we read it?").reads(reader)
        session.runs(f"python -m pricelist samples/{name.lower()}.csv", "line 3: no price\n", 1)
        session.uses(tokens := tokens + 14_600)
        session.is_done(f"Not yet. `{reader}` stops at the third line of `{name.lower()}.csv`.")
        session.later(2).asks("Then let it.").changes(demo_project.with_rule(files, supplier))
        session.runs(TESTS, f"{number + 1} passed\n").uses(tokens := tokens + 16_900)
        session.is_done(
            f"## {name}\n\nThe reader takes {oddity} now:\n\n"
            f"```python\nread({supplier.line!r}, {name.lower()!r})\n"
            "{'bolt': Decimal('0.25')}\n```\n\n"
            f"- `{reader}`: one rule more\n- `{test}`: **{number + 1}** tests pass"
        )
        session.later(1).asks("Name it in the README.")
        session.changes(demo_project.with_supplier(files, supplier))
        session.uses(tokens := tokens + 5_200).is_done("Done, in the section *Suppliers*.")
        if number in FULL:
            session.is_compacted(f"The lists of {number} suppliers can be read; others follow.")
            session.uses(tokens := 21_000)
    session.plans(steps[:1], steps[1:])
    session.later(2).asks("Which lists can still not be read?").runs("ls samples", "12 files\n")
    session.uses(tokens + 4_000).is_done("None of these twelve.")
    session.later(1).asks("And which tests are missing?").reads(test).uses(tokens + 9_000)
    return session.is_done("Those for empty lines at the end of a list.")


def elsewhere(session: Session) -> Session:
    """Tell of work in another folder."""
    return (
        session.asks("Make the front page load without scripts.")
        .plans(["List what the scripts do", "Replace the menu", "Remove the scripts"], [])
        .runs("ls public", "index.html\nmenu.css\nmenu.js\n")
        .changes(demo_project.without_scripts())
        .uses(31_800)
        .is_done("The page needs no scripts any more; the menu is plain CSS.")
    )


def compacted(session: Session) -> Session:
    """Tell of work that outgrew the model's window."""
    steps = ["Read both lists", "Compare them", "Write one line a change"]
    return (
        session.asks("Say what has changed between two price lists.")
        .plans([], steps)
        .reads(READER)
        .changes(demo_project.with_report(of_gone=False))
        .runs(TESTS, "1 passed\n")
        .uses(228_300)
        .is_compacted("The report compares two lists; articles that are gone are still to do.")
        .uses(19_400)
        .plans(steps, [])
        .changes(demo_project.with_report(of_gone=True))
        .runs(TESTS, "1 passed\n")
        .uses(41_200)
        .is_done("New, gone and changed articles each get a line.")
    )


def done(session: Session) -> Session:
    """Tell of a small thing that is done."""
    return (
        session.asks("Write a README that fits on one screen.")
        .reads(READER)
        .changes(demo_project.with_readme())
        .uses(12_700)
        .is_done("It says what the project is for and what it does not do.")
    )


def at_work(session: Session) -> Session:
    """Tell of work that goes on, with notes of which one is no longer backed."""
    return (
        session.asks("Read price lists that contain empty lines, and say which line is wrong.")
        .plans([], ["Find where lines are read", "Pass over empty lines", "Name the line"])
        .reads(READER)
        .knows("lines.empty", "An empty line is an error.", READER)
        .changes(demo_project.with_test_of_empty_lines(session.files))
        .runs(TESTS, "1 failed, 13 passed\n", exit_code=1)
        .uses(146_400)
        .later(4)
        .changes(demo_project.with_empty_lines(session.files))
        .knows("prices.decimal", "Prices are Decimal, never float.", READER)
        .decides(
            "d1",
            topic="errors",
            decision="A wrong line raises ValueError with its number.",
            why="The user wants to be told which line is wrong.",
        )
        .plans(
            ["Find where lines are read", "Pass over empty lines"],
            ["Name the line", "Run the tests", "Say it in the README"],
        )
        .runs(TESTS, "14 passed\n")
        .uses(187_900)
        .later(8)
        .reads(READER_TESTS)
        .uses(203_100)
    )


def helping(session: Session) -> Session:
    """Tell of what a helper found out for it."""
    return (
        session.asks("Find out which programs write empty lines into price lists.")
        .runs("grep -rn '^$' samples | wc -l", "41\n")
        .uses(8_300)
        .is_done("Two of them do: one after each page, one at the end.")
    )


def main() -> None:
    """Write the demo where the command line says."""
    codex_home, project = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    write_demo(codex_home, project, datetime.now(UTC))


if __name__ == "__main__":
    main()
