"""An import that is cut off at any step leaves no session or a whole one; an export a whole file.

It is cut off by a kill, or by Ctrl-C, after which a process still tidies up.
"""

import json
import sys
from pathlib import Path

import pytest

from homes import Home, chat, thread
from killing import How, again, killed_at_each_step
from rollouts import patch, rollout, session, turn, user

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")

IMPORT = """
from codex_checkpoints.service.portable import Importing

def work(sessions, root, file):
    Importing(sessions, stamps.now, stamps.new_id).make(file, os.path.join(root, "user"))
"""
EXPORT = """
from codex_checkpoints.service.portable import Packing

def work(sessions, root, session):
    packing = Packing(sessions, [], stamps.now, stamps.new_id)
    packing.write(session, os.path.join(root, "pack.json"), "replace")
"""


@pytest.fixture
def there(tmp_path: Path) -> Home:
    home = Home(tmp_path / "there")
    home.put(rollout(session(cwd=str(home.user)), turn(user("Fix it"), patch(add="b.py"))))
    home.json("mark", thread(1), "--label", "x")
    home.json("pin", thread(1), "b.py")
    home.json("export", thread(1), str(tmp_path / "pack.json"))
    return home


@pytest.mark.slow
@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("how", ["kill", "interrupt"])
def test_an_import_that_is_cut_off_is_taken_back_or_finished_by_the_next_start(
    tmp_path: Path, how: How
):
    here = Home(tmp_path / "here")
    here.put(chat("mine", 2), 2)

    pack = str(tmp_path / "pack.json")
    tries = killed_at_each_step(IMPORT, here, tmp_path / "killed", pack, how=how)

    whole = [_after(again(tmp_path / "killed" / str(at))) for at in range(1, tries)]
    assert len(whole) > 15
    assert 3 < sum(whole) < len(whole), "both are tried"


def _after(home: Home) -> bool:
    """Start again where an import was killed; return whether there is a session."""
    with home.house() as house:
        made = set(house.sessions.catalogue.current()) - {thread(2)}
        shown = [house.sessions.show(each).checkpoint for each in made]
    assert not list((home.state / "restoring").glob("*"))
    assert not list(home.root.rglob("*.tmp"))
    folder = home.state / "sessions"
    left = {path.name for path in folder.iterdir()} if folder.exists() else set[str]()
    audit = home.state / "audit.jsonl"
    lines = audit.read_bytes().splitlines() if audit.exists() else []
    kinds = [json.loads(line)["type"] for line in lines if line.endswith(b"}")]
    assert left == made
    assert kinds == ["PackImported"] * len(made)
    assert [each.task and each.task.text for each in shown] == ["Fix it"] * len(made)
    return bool(made)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "interrupt"])
def test_an_export_that_is_cut_off_leaves_the_old_file_or_the_new_one(
    there: Home, tmp_path: Path, how: How
):
    (there.user.parent / "pack.json").write_text("old")

    tries = killed_at_each_step(EXPORT, there, tmp_path / "killed", thread(1), how=how)

    found = [(tmp_path / "killed" / str(at) / "pack.json").read_text() for at in range(1, tries)]
    assert {text[:3] for text in found} == {"old", '{"f'}
    for text in found:
        assert text == "old" or json.loads(text)["version"] == 1
    left = {path.parent.name for path in (tmp_path / "killed").glob("*/.pack.json.*.tmp")}
    # Ctrl-C while it is being removed leaves it, as a kill does.
    assert len(left) <= (1 if how == "interrupt" else tries)
