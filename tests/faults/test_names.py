"""A process that is killed while it gives a name: it is the old one or the new one."""

import sys
from pathlib import Path

import orjson
import pytest

from fault_steps import home_at, killed_at_each_step
from homes import Home, chat, thread
from rollouts import rollout, session, user

RENAME = """
def work(sessions, root, session):
    sessions.rename(session, "new")
"""


def files(home: Home, number: int) -> list[Path]:
    ours = home.state / "sessions" / thread(number) / "metadata.jsonl"
    return [ours, home.root / "session_index.jsonl"][:number]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("number", [1, 2], ids=["paginated", "legacy"])
def test_killed_rename_leaves_the_old_name_or_the_new_one(tmp_path: Path, number: int) -> None:
    home = Home(tmp_path / "template")
    home.put(chat("one"))
    home.put(rollout(session("legacy", thread=thread(2)), user("two")), 2)
    with home.house() as house:
        house.sessions.rename(thread(number), "old")
    before = [file.read_bytes() for file in files(home, number)]

    tries = killed_at_each_step(RENAME, home, tmp_path / "killed", thread(number))

    seen: set[str | None] = set()
    for at in range(1, tries):
        here = home_at(tmp_path / "killed" / str(at))
        with here.house() as house:
            titles = {each.session_id: each.title for each in house.sessions.summaries.page().items}
            seen.add(titles[thread(number)])
            house.sessions.rename(thread(number), "next")
        for file, data in zip(files(here, number), before, strict=True):
            assert file.read_bytes().startswith(data)
            assert "next" in orjson.loads(file.read_bytes().splitlines()[-1]).values()
        assert not list(here.root.rglob("*.tmp"))
    assert seen == {"old", "new"}
