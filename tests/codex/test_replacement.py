"""The real Codex sends our replacement next, in place and as a session of its own."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from codex.codex_cli import AppServer
from codex.conftest import MakeHome
from codex.product import worked
from codex.scripted_model import Answer, Request, Usage, say, shell
from codex_checkpoints.core.agents.codex.history.item_kinds import Past
from codex_checkpoints.core.agents.codex.history.rebuild import (
    Rebuild,
    RebuiltHistory,
    choose,
    history_of,
)
from codex_checkpoints.core.agents.codex.history.scan import HistoryScan
from codex_checkpoints.core.checkpoint.records import Caps
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.compaction.replacement import Replacement, Terms, build
from codex_checkpoints.core.compaction.replacement_lines import (
    Naming,
    RecordLine,
    SourceSession,
    TurnTime,
    in_place,
    new_session,
)
from codex_checkpoints.storage import locks, writer
from codex_checkpoints.storage.contract import HistoryItem
from codex_checkpoints.storage.records import uuid7
from codex_checkpoints.storage.rollout_file import line_of

pytestmark = [
    pytest.mark.codex,
    pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"]),
]

FULL = 255_000
"""So many tokens that Codex would compact by itself before the next turn."""


def script() -> list[Answer]:
    return [
        Answer(shell("cat README.md", "call_1")),
        Answer(say("I fixed the login.")),
        Answer(say("And that."), usage=Usage(input=FULL)),
        Answer(say("Going on.")),
    ]


def history_in(path: Path) -> RebuiltHistory:
    data = path.read_bytes()
    survey = HistoryScan()
    survey.reader.feed(data)
    outline = survey.outline()
    choice = choose(outline)
    rebuild = Rebuild(choice, outline)
    rebuild.reader.feed(data[rebuild.start.offset :])
    return history_of(outline, rebuild)


def replaced(path: Path, history: RebuiltHistory) -> Replacement:
    replay = Replay()
    replay.feed(path.read_bytes())
    checkpoint = replay.checkpoint(updates=(), hashes={})
    terms = Terms(placement="manual", waived=frozenset({"not_smaller"}))
    found = build([Past(item) for item in history.items], checkpoint, Caps(), terms)
    assert isinstance(found, Replacement)
    return found


def last_token_count(path: Path) -> Any:  # noqa: ANN401 - a line as it stands
    payloads = [orjson.loads(line)["payload"] for line in path.read_bytes().splitlines()]
    return next(each for each in reversed(payloads) if each.get("type") == "token_count")


def items_of(lines: tuple[RecordLine, ...]) -> list[HistoryItem]:
    return [HistoryItem(line.type, line.payload) for line in lines]


def sent(request: Request, built: Replacement) -> list[Any]:
    """Return what stands before the fresh context: the replacement, if it was honoured."""
    bare: list[object] = [
        {key: item[key] for key in ("type", "role", "content")} for item in request.input
    ]
    begin = bare.index(built.items[0])
    return bare[begin : begin + len(built.items)]


def new_id() -> str:
    return uuid7(time.time_ns() // 1_000_000, os.urandom(8))


def test_codex_sends_a_replacement_installed_in_place(scripted: MakeHome, legacy: bool) -> None:
    home, model = scripted(*script())
    thread, path = worked(home, legacy=legacy)
    before, history = path.read_bytes(), history_in(path)
    built = replaced(path, history)

    lines = in_place(
        built.items, history.chain.opened(new_id()), built.report.after, last_token_count(path)
    )
    with locks.hold(str(home.codex_home), thread) as lock:
        writer.append(str(path), items_of(lines), datetime.now(UTC), lock, None)
    home.exec("Go on.", resume=thread)

    request = model.turns[-1]
    assert model.compactions == []
    assert sent(request, built) == list(built.items)
    assert request.texts("user")[-1] == "Go on."
    assert request.texts("assistant") == []
    assert path.read_bytes().startswith(before)
    assert history_in(path).chain == history.chain.opened(str(history_in(path).chain.current))
    assert built.report.kinds_after == {"handoff": 1, "user": 2}


def test_codex_lists_and_sends_a_session_that_begins_with_a_replacement(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(*script())
    thread, path = worked(home, legacy=legacy)
    before = path.read_bytes()
    built = replaced(path, history_in(path))
    head = orjson.loads(before.splitlines()[0])["payload"]
    now = datetime.now(UTC)
    text = now.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    name = new_id()

    made = new_session(
        built.items,
        SourceSession(thread, head["cwd"], head, 258_400),
        Naming("Fix the login", new_id(), new_id()),
        TurnTime(text, int(now.timestamp() * 1000)),
        (name, new_id(), new_id()),
    )
    items = [HistoryItem("session_meta", made.meta), *items_of(made.lines)]
    target = path.parent / f"rollout-2026-11-20T10-00-00-{name}.jsonl"
    written = [
        line_of(item, None if legacy else ordinal, now) for ordinal, item in enumerate(items)
    ]
    writer.publish(str(target), written, str(home.codex_home / "codex-checkpoints"))

    with AppServer(home) as server:
        assert set(server.listed()) == {name, thread}
        read = server.read(name)
        assert (read["preview"], read["forkedFromId"]) == ("Fix the login", thread)
        assert read["historyMode"] == ("legacy" if legacy else "paginated")
    home.exec("Go on.", resume=name)

    request = model.turns[-1]
    assert model.compactions == []
    assert sent(request, built) == list(built.items)
    assert request.texts("user")[-1] == "Go on."
    assert "Fix the login" not in request.texts("user")
    assert request.texts("assistant") == []
    assert path.read_bytes() == before
    assert history_in(target).chain == made.chain
