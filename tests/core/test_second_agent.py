"""A made-up agent of another shape: its events feed the folds that Codex's events feed.

Oak writes a tree of records: each names the record that it follows.  It has no ordinals, no events
of turns and no list of items.  Another prompt that follows the same record replaces the turns after
it.  `OakDeriver` is all that knows this.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import Factory, define

from codex_checkpoints.core.changes.edits import Edits
from codex_checkpoints.core.checkpoint.records import Caps
from codex_checkpoints.core.checkpoint.stream import Stream
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.digest.allocation import DigestTerms
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.digest.render import digest_v1
from codex_checkpoints.core.events import (
    Answered,
    Called,
    CallEnded,
    CallText,
    CommandRun,
    Event,
    FilesChanged,
    FileViewed,
    InputGiven,
    NotUnderstood,
    Outcome,
    OutputText,
    PlanSet,
    Record,
    RolledBack,
    SessionMeta,
    UserMessage,
)
from codex_checkpoints.core.losses.file_activity import FileActivity
from codex_checkpoints.core.patches import PatchedFile
from codex_checkpoints.core.recall.search import FileUses, Needle
from codex_checkpoints.core.timeline import TurnCounts
from codex_checkpoints.core.windows import HistoryWindow

FOLDER = "/home/ana/shop"
Node = dict[str, Any]


@define
class OakDeriver:
    """Turns the records of Oak into events: its whole knowledge of them."""

    give: Callable[[Record], None]
    seq: int = 0
    prompts: list[str] = Factory(list[str])
    """The records that the prompts in force follow, in order."""
    calls: dict[str, Node] = Factory(dict[str, Node])

    def take(self, node: Node) -> None:
        """Take the next record."""
        self.seq += 1
        events = tuple(self._events(node))
        self.give(
            Record(
                seq=self.seq,
                position=self.seq,
                file=0,
                offset=0,
                length=0,
                at=str(node["at"]),
                turn_id=None,
                counts=True,
                waits=bool(self.calls),
                events=events,
            )
        )

    def _events(self, node: Node) -> Iterator[Event]:
        name, parent = str(node["id"]), str(node.get("after", ""))
        if self.seq == 1:
            yield SessionMeta("oak-1", FOLDER)
        match node:
            case {"ask": str(text)}:
                if parent in self.prompts:
                    place = self.prompts.index(parent)
                    yield RolledBack(len(self.prompts) - place)
                    del self.prompts[place:]
                self.prompts.append(parent)
                yield UserMessage((text,), ref=name)
            case {"say": str(text)}:
                yield Answered(text, final=True)
            case {"todo": steps}:
                yield Called()
                yield PlanSet(steps, name, None)
            case {"use": str(tool), "input": str(text)}:
                self.calls[name] = node
                script = text if tool == "shell" else None
                yield CallText(name, tool, text, script, (text,), None, FOLDER, None, False, None)
                yield Called()
            case {"result": str(text)}:
                call = self.calls.pop(parent)
                ended = _ended(parent, call, text)
                outcome = Outcome(text.startswith("failed"), printed=text)
                yield OutputText(parent, str(call["use"]), outcome, None, False, None)
                yield InputGiven()
                yield CallEnded(ended, (), None, FOLDER)
            case _:
                yield NotUnderstood("unknown_type")


def _ended(name: str, call: Node, text: str) -> CommandRun | FilesChanged | FileViewed:
    match call:
        case {"use": "shell", "input": str(script)}:
            code = 1 if text.startswith("failed") else 0
            return CommandRun(name, ("bash", "-c", script), None, None, None, code, text)
        case {"use": "read", "input": str(path)}:
            return FileViewed(name, path)
        case {"use": "edit", "input": str(path), "diff": str(diff)}:
            return FilesChanged(name, (PatchedFile(path, "update", diff=diff),), done=True)
        case {"use": "write", "input": str(path), "text": str(content)}:
            return FilesChanged(name, (PatchedFile(path, "add", content=content),), done=True)
        case _:
            raise AssertionError(call)


def nodes(*steps: Node) -> list[Node]:
    """Return records that follow each other, except those that say what they follow."""
    found: list[Node] = []
    for number, step in enumerate(steps, 1):
        before = str(found[-1]["id"]) if found else ""
        at = f"2026-11-20T10:00:{number:02}.000Z"
        found.append({"id": f"n{number}", "after": before, "at": at} | step)
    return found


PLAN = (("Find it", True), ("Fix it", False))
TREE = nodes(
    {"ask": "Fix the login."},
    {"todo": PLAN},
    {"use": "read", "input": "auth.py"},
    {"result": "def login(): ...  # see RFC 6265"},
    {"use": "edit", "input": f"{FOLDER}/auth.py", "diff": "@@\n-return False\n+return True\n"},
    {"result": "done"},
    {"use": "shell", "input": "pytest -q"},
    {"result": "failed: test_login, assert None is True"},
    {"say": "The login works."},
    {"ask": "Now the logout."},
    {"use": "write", "input": "logout.py", "text": "x\n"},
    {"result": "done"},
    {"ask": "Write about the logout instead.", "after": "n9"},
    {"bloom": "?"},
    {"say": "Written."},
)


def fed(follow: Callable[[Stream], object], tree: Sequence[Node] = TREE) -> Stream:
    stream = Stream()
    follow(stream)
    deriver = OakDeriver(stream.give)
    for node in tree:
        deriver.take(node)
    return stream


def test_checkpoint_has_the_task_the_plan_and_the_touched_files():
    found = fed(lambda _stream: None).checkpoint([], {})

    assert found.seq == len(TREE)
    assert found.task is not None
    assert found.task.text == "Write about the logout instead."
    assert tuple((each.text, found.plan.done[each.id]) for each in found.plan.steps) == PLAN
    assert set(found.artifacts) == {"auth.py", "logout.py", "pytest -q"}


def test_turns_end_without_events_of_turns_and_a_sibling_prompt_replaces_one():
    state = fed(lambda _stream: None).state

    assert list(state.ends()) == [("turn-1", "answered"), ("turn-13", "answered")]


def test_changes_have_the_rows_of_the_patch_and_the_turn():
    found: list[Edits] = []
    fed(lambda stream: found.append(Edits(stream)))

    read, changed = found[0].files["auth.py"]
    assert (read.action, changed.action, changed.turn_id) == ("read", "update", "turn-1")
    assert changed.hunks == ("@@", "-return False", "+return True")
    assert found[0].files["logout.py"][0].content == "x\n"


def test_a_search_finds_the_uses_of_a_file_by_turn():
    found: list[FileUses] = []
    fed(lambda stream: found.append(FileUses(stream, Needle.of("auth.py"), lambda _record: True)))

    assert [*found[0].entries] == [
        ("turn-1", "read auth.py"),
        ("turn-1", "changed auth.py"),
    ]


def test_losses_know_the_changed_file_and_the_failing_command():
    activity = FileActivity()

    def follow(stream: Stream) -> None:
        activity.follow(stream.state)
        stream.follow(activity)

    fed(follow)

    assert [*activity.changed] == ["auth.py", "logout.py"]
    assert [each.text for each in activity.failing()] == ["pytest -q"]


def lines(text: str) -> list[str]:
    """Return the lines of a page without headings and blanks."""
    return [line for line in text.splitlines() if line.startswith("- ")]


def test_view_has_the_task_the_plan_and_the_recent_files():
    text = view_v1(fed(lambda _stream: None).checkpoint([], {}), Caps())

    assert lines(text) == [
        "- Write about the logout instead.",
        "- [ ] Fix it (id=s2)",
        "- [x] Find it (id=s1)",
        "- file: logout.py",
        "- cmd:  pytest -q",
        "- file: auth.py",
    ]


def test_digest_quotes_requests_answers_changes_and_the_failing_check():
    found: list[DigestExtract] = []
    fed(lambda stream: found.append(DigestExtract(stream, "oak-1")))

    text = digest_v1(found[0].gathered(), DigestTerms(2000)).text

    assert lines(text) == [
        "- last turn: answered",
        "- plan: last changed 1 request ago",
        "- changed files: 2",
        "- t1 #1 Fix the login.",
        "- t2 #13 Write about the logout instead.",
        "- t2 #15 answered: Written.",
        "- t1 #9 answered: The login works.",
        "- #11 logout.py +1 -0 created",
        "- t1 #5 auth.py +1 -1 turn 1",
        r"- t1 #8 exit 1 before later edits: pytest -q\nfailed: test_login, assert None is True",
        r"- #4 out: read:\ndef login(): ...  # see RFC 6265",
        r"- #5 call:\n/home/ana/shop/auth.py",
    ]


def test_timeline_counts_the_calls_files_and_failed_checks_of_each_turn():
    found: list[TurnCounts] = []
    fed(lambda stream: found.append(TurnCounts(stream)))

    rows = found[0].rows([HistoryWindow(0, None, None, 1, None)])

    assert [(row.turn, row.turn_id, row.outcome, row.window) for row in rows] == [
        (1, "turn-1", "answered", 0),
        (2, "turn-13", "answered", 0),
    ]
    assert [(row.calls, row.files_changed, row.checks_failed) for row in rows] == [
        (4, 1, 1),
        (0, 0, 0),
    ]
