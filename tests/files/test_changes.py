"""Changed files of a session: their turns, and the texts that hashes prove."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.service.history.changes import ChangesParams, FileChange, changes
from homes import Home, refusal, thread

V1, V2, V3 = "x\nb\n", "y\nb\n", "y\nc\n"
X_TO_Y = r.patch(update="a.py")
BACK = "put back by git {}"
READ = r.shell("sed -n 1,5p a.py", V1, reads=["a.py"])
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def shop(home: Home) -> Path:
    folder = home.user / "shop"
    folder.mkdir()
    return folder


def put(home: Home, *steps: r.Step, form: r.Form = "paginated") -> None:
    head = r.session(form, thread=thread(1), cwd=str(home.user / "shop"))
    home.put(r.rollout(head, *steps))


def ask(home: Home, **asked: Any) -> dict[str, FileChange]:  # noqa: ANN401 - params of a method
    with home.house() as house:
        found = changes(house.sessions, ChangesParams(thread(1), **asked))
        return {each.uri: each for each in found.files}


def seen(home: Home, text: str, seq: int, uri: str = "a.py") -> None:
    """Record what a host saw of a file right after a record."""
    value = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    line = {"uri": uri, "seq": seq, "hash": value, "at": "2026-11-20T10:00:00.000Z"}
    path = home.checkpoint().with_name("observed.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def seqs(home: Home, uri: str = "a.py") -> list[int]:
    return [int(each.ref[1:]) for each in ask(home, uri=uri, texts=True)[uri].patches]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
@pytest.mark.usefixtures("shop")
def test_files_are_listed_with_the_turns_that_changed_them(home: Home, form: r.Form):
    put(
        home,
        r.turn(r.user("Go"), READ, r.patch(add="new.py", content="1\n2\n"), X_TO_Y),
        r.turn(r.user("On"), X_TO_Y, r.patch(delete="old.py"), r.shell("touch b.py", "")),
        r.turn(r.user("Look"), READ),
        form=form,
    )

    whole, second, third = ask(home), ask(home, turn_id="2"), ask(home, turn_id="3")
    behind = ask(home, after_turn_id="1")

    told = [(each.uri, each.kind, each.added, each.removed, each.turns) for each in whole.values()]
    assert told == [
        ("a.py", "changed", 2, 2, (1, 2)),
        ("b.py", "changed", 0, 0, (2,)),
        ("new.py", "created", 2, 0, (1,)),
        ("old.py", "deleted", 0, 1, (2,)),
    ]
    assert whole["a.py"].seen_in == 3
    assert list(second) == list(behind) == ["a.py", "b.py", "old.py"]
    assert second["a.py"].turns == (2,)
    assert third == {}
    assert ask(home, turn_id="3", uri="a.py")["a.py"].kind == "read"
    assert refusal(lambda: ask(home, turn_id="9")).code == "unknown_turn"


def test_file_changed_since_the_session_is_distinguished_from_an_unchanged_one(
    home: Home, shop: Path
):
    put(home, r.turn(r.user("Go"), r.patch(add="a.py", content=V1)))
    (shop / "a.py").write_text(V1)
    assert ask(home)["a.py"].now == "same"

    (shop / "a.py").write_text(V2)
    found = ask(home, texts=True)["a.py"]
    assert (found.now, found.before, found.after) == ("changed", "", V1)

    (shop / "a.py").unlink()
    assert ask(home)["a.py"].now == "gone"


def test_each_turn_has_the_texts_before_and_after_that_hashes_prove(home: Home, shop: Path):
    put(home, r.turn(r.user("Go"), READ, X_TO_Y), r.turn(r.user("On"), READ))
    (shop / "a.py").write_text(V2)
    found = ask(home, uri="a.py", texts=True)["a.py"]
    assert (found.before, found.after, found.now) == (None, None, "unknown")

    seen(home, V2, seqs(home)[0])
    found = ask(home, turn_id="1", texts=True)["a.py"]
    assert (found.before, found.after) == (None, V2)

    seen(home, V1, READ_AT)
    found = ask(home, turn_id="1", texts=True)["a.py"]
    assert (found.before, found.after) == (V1, V2)
    assert ask(home, turn_id="1")["a.py"].after is None  # texts were not asked for


READ_AT = 5
"""The number of the record in which the first call of a session ended."""


def test_change_without_a_patch_leaves_only_patches(home: Home, shop: Path):
    put(
        home,
        r.turn(r.user("Go"), X_TO_Y, r.shell("sed -i s/b/c/ a.py", ""), r.patch(update="a.py")),
    )
    (shop / "a.py").write_text(V3)

    found = ask(home, texts=True)["a.py"]

    assert (found.before, found.after) == (None, None)
    assert [each.text for each in found.patches] == ["@@\n-x\n+y", None, "@@\n-x\n+y"]
    assert [each.turn for each in found.patches] == [1, 1, 1]


def test_text_in_git_is_used_if_the_patches_lead_from_it_to_the_file(home: Home, shop: Path):
    put(home, r.turn(r.user("Go"), X_TO_Y))
    (shop / "a.py").write_text(V2)

    found = ask(home, uri="a.py", texts=True, bases={"a.py": V1})["a.py"]
    assert (found.before, found.after, found.now) == (V1, V2, "same")

    (shop / "a.py").write_text(V3)
    found = ask(home, uri="a.py", texts=True, bases={"a.py": V1})["a.py"]
    assert (found.before, found.after, found.now) == (None, None, "unknown")


def test_secret_and_ignored_file_are_not_shown(home: Home, shop: Path):
    put(
        home,
        r.turn(
            r.user("Go"),
            r.patch(add="a.py", content=f"key = '{SECRET}'\n"),
            r.patch(add=".env", content="A=1\n"),
        ),
    )
    (shop / "a.py").write_text(f"key = '{SECRET}'\n")

    found = ask(home, texts=True)

    assert SECRET not in repr(found)
    assert (found["a.py"].before, found["a.py"].after) == ("", None)
    assert found["a.py"].patches[0].text == "+key = '[redacted]'"
    assert (found[".env"].after, found[".env"].patches) == (None, ())


@pytest.mark.usefixtures("shop")
def test_file_is_named_as_in_the_session_or_by_its_path(home: Home):
    put(home, r.turn(r.user("Go"), X_TO_Y))

    for name in ("a.py", "./a.py", str(home.user / "shop/a.py")):
        assert list(ask(home, uri=name)) == ["a.py"]
    assert ask(home, uri="b.py") == {}


def test_changes_are_listed_for_people_with_the_patches_of_one_file(home: Home, shop: Path):
    put(home, r.turn(r.user("Go"), r.patch(add="a.py", content=V1)), r.turn(r.user("On"), X_TO_Y))
    (shop / "a.py").write_text(V3)
    seen(home, V2, seqs(home)[-1])

    listed = home.here("changes", thread(1)).stdout.decode()
    assert listed == "a.py  created +3 -1  turns 1, 2  changed since turn 2\n"
    one = home.here("changes", thread(1), "a.py", "--turn", "2").stdout.decode().splitlines()
    assert one[0] == "a.py  changed +1 -1  turn 2  changed since turn 2"
    assert one[2].startswith("turn 2  #")
    assert one[3:] == ["@@", "-x", "+y"]
    assert home.json("changes", thread(1), "--after", "2") == {"files": [], "left": 0, "unnamed": 0}
    none = home.here("changes", thread(1), "--after", "2").stdout.decode()
    assert none == "No file was changed.\n"
    other = home.here("changes", thread(1), "never.py").stdout.decode()
    assert other == "never.py was not changed here. Without PATH, all changed files are listed.\n"


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("steps", "count", "put_back"),
    [
        ([X_TO_Y, r.shell("git checkout -- a.py")], 0, BACK),
        (
            [X_TO_Y, r.shell("git reset --hard"), X_TO_Y],
            1,
            f"{BACK}, then changed again",
        ),
        (
            [X_TO_Y, r.shell("git commit -am x"), X_TO_Y, r.shell("git restore .")],
            1,
            f"{BACK} +1 -1",
        ),
        ([X_TO_Y, r.shell("git commit -am x"), r.shell("git restore .")], 1, ""),
        ([X_TO_Y, r.shell("git restore dee")], 1, ""),
        ([X_TO_Y, r.shell("git restore .", exit_code=1)], 1, ""),
        ([r.patch(add="a.py", content="1\n"), r.shell("git restore .")], 1, ""),
    ],
)
def test_changes_reverted_by_git_are_not_counted(
    home: Home, steps: list[r.Step], count: int, put_back: str
):
    put(home, r.turn(r.user("Go"), *steps))
    found = ask(home)["a.py"]
    assert found.added == count
    assert (found.put_back is None) == (put_back == "")
    assert (found.kind == "put_back") == (put_back != "" and "again" not in put_back)
    line = home.here("changes", thread(1)).stdout.decode()
    assert put_back.format(found.put_back) in line
    assert ("put back" in line) == (put_back != "")


@pytest.mark.usefixtures("shop")
def test_move_names_its_target_and_unnamed_changes_are_counted(home: Home):
    moved = r.patch(move=("old.py", "sub/new.py"))
    unnamed = (r.shell("tar xf z.tar"), r.shell("rg -l a | xargs sed -i s/a/b/"))
    put(home, r.turn(r.user("Go"), moved, r.shell("git mv c.py d.py"), *unnamed))

    assert home.here("changes", thread(1)).stdout.decode().splitlines() == [
        "c.py  moved to d.py  turn 1  no longer there",
        "d.py  moved from c.py  turn 1  no longer there",
        "old.py  moved to sub/new.py  turn 1  no longer there",
        "sub/new.py  moved from old.py  turn 1  no longer there",
        "2 commands may have changed more",
    ]
    assert home.here("changes", thread(1), "old.py").stdout.decode().splitlines()[-1] == "(moved)"
