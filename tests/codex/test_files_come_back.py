"""Files of a session of the real Codex are restored to their state after each turn (FIL-1)."""

import json
import stat
from pathlib import Path

import pytest

from codex.codex_cli import CODE_MODE_MODEL, AppServer, CodexHome
from codex.conftest import MakeHome
from codex.product import run
from codex.scripted_model import Answer, Item, apply_patch, say, script, shell
from codex.test_hook import trust

pytestmark = pytest.mark.codex

Files = dict[str, tuple[bytes, int]]


def patch(body: str, call: str) -> Item:
    return apply_patch(f"*** Begin Patch\n{body}*** End Patch", call)


DOS = "*** Update File: dos.txt\n@@\n one\r\n-two\r\n+TWO\r\n three\r\n"
TURNS: list[Item] = [
    say("Ready."),
    patch("*** Update File: calc/core.py\n@@\n-    return a + b\n+    return b + a\n", "c1"),
    patch("*** Delete File: README.md\n", "c2"),
    patch("*** Update File: calc/core.py\n@@\n-def div(a, b):\n+def div(a: int, b: int):\n", "c3"),
    patch("*** Update File: größe 🙂.txt\n@@\n-alt\n+neu\n", "c4"),
    patch(DOS, "c5"),
    patch("*** Update File: run.sh\n@@\n-echo a\n+echo b\n", "c6"),
    patch("*** Update File: old.py\n*** Move to: new/place.py\n@@\n-x = 1\n+x = 2\n", "c7"),
    patch("*** Update File: no_end.txt\n@@\n-first\n+FIRST\n", "c8"),
    patch(
        "*** Update File: calc/__init__.py\n@@\n+# calc\n from calc.core import add, div\n", "c9"
    ),
]


def files_in(folder: Path) -> Files:
    """Return bytes and mode of each file of the project."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in found
    }


def prepared(home: CodexHome) -> None:
    for name, data in {
        "größe 🙂.txt": b"alt\n",
        "dos.txt": b"one\r\ntwo\r\nthree\r\n",
        "run.sh": b"echo a\n",
        "old.py": b"x = 1\n",
        "no_end.txt": b"first\nlast",
    }.items():
        (home.project / name).write_bytes(data)
    (home.project / "run.sh").chmod(0o755)


def test_files_can_be_restored_to_each_of_ten_turns(scripted: MakeHome) -> None:
    answers = [Answer(item) for item in TURNS]
    ended = [each for item in answers for each in (item, Answer(say("Done.")))][1:]
    home, model = scripted(*ended)
    prepared(home)
    copies = list[Files]()
    with AppServer(home) as server:
        thread = server.start()
        for number in range(len(TURNS)):
            server.turn(thread, f"Take step {number}.")
            copies.append(files_in(home.project))
    assert model.unscripted == []
    assert len({json.dumps(sorted(map(repr, each.items()))) for each in copies}) == len(TURNS)

    for number, copy in enumerate(copies[:-1], 1):
        done = json.loads(run(home, "restore-files", thread, "--to", str(number), "--json"))
        assert files_in(home.project) == copy, f"turn {number}"
        run(home, "undo-restore-files", done["operationId"], "--json")
        assert files_in(home.project) == copies[-1], f"undo of turn {number}"


def test_no_file_is_deleted_and_no_command_is_undone(scripted: MakeHome) -> None:
    moved = "*** Update File: calc/core.py\n*** Move to: old.py\n"
    over = patch("*** Add File: README.md\n+Mine.\n", "c1")
    onto = patch(f"{moved}@@\n-def add(a, b):\n+def add(b, a):\n", "c2")
    home, _ = scripted(
        Answer(say("Ready.")),
        *(
            each
            for item in (over, onto, shell("sed -i s/alt/neu/ *.txt", "c3"))
            for each in (Answer(item), Answer(say("Done.")))
        ),
    )
    prepared(home)
    with AppServer(home) as server:
        thread = server.start()
        for number in range(4):
            server.turn(thread, f"Take step {number}.")
    before = files_in(home.project)

    plan = json.loads(run(home, "restore-files", thread, "--to", "1", "--dry-run", "--json"))
    states = {row["path"]: (row["state"], row["on"]) for row in plan["rows"]}
    assert states["README.md"] == ("new_or_replaced", False)
    assert states["calc/core.py"] == ("move", True)
    why = next(row["why"] for row in plan["rows"] if row["path"] == "calc/core.py")
    assert why == "it comes back from old.py, and whether a file was there before is not recorded"
    assert files_in(home.project) == before


def copying(home: CodexHome, mode: str) -> None:
    """Let Codex call our hook, which copies these files."""
    state = home.codex_home / "codex-checkpoints"
    state.mkdir()
    (state / "config.toml").write_text(f'fileCopies = "{mode}"\n')
    run(home, "connect", "--json")
    trust(home)


def test_hook_copies_restore_replaced_texts(scripted: MakeHome) -> None:
    moved = "*** Update File: calc/core.py\n*** Move to: old.py\n"
    items = [
        patch("*** Add File: README.md\n+Mine.\n", "c1"),
        patch(f"{moved}@@\n-def add(a, b):\n+def add(b, a):\n", "c2"),
        patch("*** Add File: new/a.py\n+x = 1\n", "c3"),
        shell("sed -i s/echo/printf/ run.sh", "c4"),
        shell("rm no_end.txt && mv dos.txt unix.txt", "c5"),
    ]
    answers = [each for item in items for each in (Answer(item), Answer(say("Done.")))]
    home, model = scripted(Answer(say("Ready.")), *answers)
    prepared(home)
    copying(home, "named")
    copies = list[Files]()
    with AppServer(home) as server:
        thread = server.start()
        for number in range(len(items) + 1):
            server.turn(thread, f"Take step {number}.")
            copies.append(files_in(home.project))
    assert model.unscripted == []
    assert b"Mine." in copies[-1]["README.md"][0]

    for number, copy in enumerate(copies[:-1], 1):
        done = json.loads(run(home, "restore-files", thread, "--to", str(number), "--json"))
        proofs = {row["proof"] for row in done["rows"] if row["written"]}
        assert proofs <= {"copy", "diff", "hash"}
        assert files_in(home.project) == copy, f"turn {number}"
        run(home, "undo-restore-files", done["operationId"], "--json")
        assert files_in(home.project) == copies[-1], f"undo of turn {number}"


def test_hook_copies_files_of_patches_inside_scripts_and_commands(
    scripted: MakeHome,
) -> None:
    text = "*** Begin Patch\n*** Add File: {}\n+Mine.\n*** End Patch"
    inner = json.dumps(text.format("README.md"))
    items = [
        script(f"await tools.apply_patch({inner})", "c1"),
        shell(f"apply_patch <<'EOF'\n{text.format('dos.txt')}\nEOF", "c2"),
    ]
    answers = [each for item in items for each in (Answer(item), Answer(say("Done.")))]
    home, model = scripted(Answer(say("Ready.")), *answers, model_name=CODE_MODE_MODEL)
    prepared(home)
    copying(home, "replaced")
    before = files_in(home.project)
    with AppServer(home) as server:
        thread = server.start()
        for number in range(len(items) + 1):
            server.turn(thread, f"Take step {number}.")
    assert model.unscripted == []

    done = json.loads(run(home, "restore-files", thread, "--to", "1", "--json"))
    assert {row["path"]: row["proof"] for row in done["rows"]} == {
        "README.md": "copy",
        "dos.txt": "copy",
    }
    assert files_in(home.project) == before
