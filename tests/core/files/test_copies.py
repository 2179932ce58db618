"""Files that the hook copied before Codex wrote them are restored from the copies (FIL-2)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.fields import content_hash
from codex_checkpoints.core.files.copies import Copied, CopyMode, Target, targets_of
from core.files.test_plan import NAMES, Disk, difference, patched, plan, session, texts

PATCH = """*** Begin Patch
*** Add File: a.py
+x
*** Update File: b.py
@@
-x
+y
*** Update File: c.py
*** Move to: sub/d.py
@@
-x
+y
*** Delete File: e.py
*** End Patch"""


def names(tool: str, command: str, mode: CopyMode) -> list[str]:
    found = targets_of(tool, command, f"{r.FOLDER}/in", r.FOLDER, mode)
    return [each.uri for each in found]


def test_added_files_and_move_targets_of_a_patch_are_copied():
    found = targets_of("apply_patch", PATCH, r.FOLDER, r.FOLDER, "replaced")

    assert found == (Target("a.py"), Target("sub/d.py", "c.py"))


@pytest.mark.parametrize(
    ("tool", "command", "replaced", "named"),
    [
        ("apply_patch", PATCH, ["in/a.py", "in/sub/d.py"], []),
        ("Bash", f"cd x && apply_patch <<'EOF'\n{PATCH}\nEOF", ["in/x/a.py", "in/x/sub/d.py"], []),
        ("Bash", "sed -i s/a/b/ a.py", [], ["in/a.py"]),
        ("Bash", "echo x > ../a.py; rm b.py", [], ["a.py", "in/b.py"]),
        ("Bash", "mv a.py b.py", [], ["in/a.py", "in/b.py"]),
        ("Bash", "echo x > /etc/hosts", [], ["/etc/hosts"]),
        ("Bash", "make all", [], []),
        ("view_image", "a.py", [], []),
    ],
)
def test_patches_and_optionally_named_files_of_a_command_are_copied(
    tool: str, command: str, replaced: list[str], named: list[str]
):
    assert names(tool, command, "replaced") == replaced
    assert names(tool, command, "named") == replaced + named


class Hands:
    """Codex and somebody else change files; Codex's changes are recorded, and copied before."""

    def __init__(self, disk: Disk) -> None:
        self.disk, self.left = dict(disk), dict(disk)
        """The files as they are, and as Codex left them."""
        self.disks, self.steps = [dict(disk)], list[r.Step]()
        self.copies: dict[tuple[str, str], Copied] = {}
        self.others = False

    def act(self, act: str, name: str, other: str, text: str) -> None:
        call, old = f"call_{len(self.steps)}", self.disk.get(name)
        match act:
            case "hand":
                self.disk[name] = self.disks[-1][name] = text
                self.others = True
            case "add":
                self.copies[call, name] = Copied(old)
                self._record(call, name, {"type": "add", "content": text}, {name: text})
            case "update" if old not in {None, text}:
                self._record(call, name, difference(old or "", text), {name: text})
            case "delete" if old is not None:
                self._record(call, name, {"type": "delete", "content": old}, {name: None})
            case "move" if other != name and old not in {None, text}:
                self.copies[call, other] = Copied(self.disk.get(other), source=content_hash(old))
                moved = difference(old or "", text, move_path=f"{r.FOLDER}/{other}")
                self._record(call, name, moved, {name: None, other: text})
            case _:
                pass

    def _record(self, call: str, name: str, change: object, texts: dict[str, str | None]) -> None:
        self.steps.append(patched({name: change}, call_id=call))
        for each, text in texts.items():
            for disk in (self.disk, self.left):
                disk.pop(each, None)
                disk.update({} if text is None else {each: text})
        self.disks.append(dict(self.disk))


ACTS = st.tuples(
    st.sampled_from(["update", "add", "delete", "move", "hand"]),
    NAMES,
    NAMES,
    texts().filter(bool),
)


@settings(max_examples=300)
@given(st.dictionaries(NAMES, texts(), max_size=3), st.lists(ACTS, max_size=8), st.data())
def test_copies_restore_all_files_except_those_changed_by_others(
    disk: Disk, acts: list[tuple[str, str, str, str]], data: st.DataObject
):
    hands = Hands(disk)
    for act in acts:
        hands.act(*act)
    turn = data.draw(st.integers(1, len(hands.disks)))
    now, left = hands.disk, hands.left

    def copied(call_id: str, uri: str) -> Copied | None:
        return hands.copies.get((call_id, uri))

    rows = plan(session(*hands.steps), now, turn, copied).values()
    for row in rows:
        if now.get(row.path) != left.get(row.path):
            assert row.state != "delete", row
            assert row.proof != "copy" or not row.is_on, row
    if hands.others:
        return
    for row in rows:
        assert row.state == "same" or row.is_on, row
        now |= {} if row.then is None else {row.path: row.then}
    for row in rows:
        if row.then is None:
            now.pop(row.path, None)
        if row.moved_to is not None:
            del now[row.moved_to]
    assert now == hands.disks[turn - 1]
