"""`connect` writes entries into Codex's files, and removing them restores the earlier bytes.

The law at the end makes up configurations; the tables before it hold one example of each kind.
What the real Codex makes of the outcome is in `codex/test_connect.py`.
"""

import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterable
from difflib import SequenceMatcher
from errno import ENOSPC
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from codex_checkpoints.codex import config, file_edit, hooks, program
from codex_checkpoints.codex.entries import HOOKS, Entries, handlers_of, ours_in
from codex_checkpoints.operations.connect import folders
from codex_checkpoints.service.connect import codex_config
from codex_checkpoints.service.connect.codex_config import Connector
from codex_checkpoints.service.connect.status import HOW_TO_TRUST, Connection, Done
from codex_checkpoints.service.refusal import Refusal
from homes import Home, chat
from peer import Peer

PROGRAM = ("/opt/py thon/bin/python3", "-P", "-X", "utf8", "-m", "codex_checkpoints")
WANTED = Entries(PROGRAM, ("--codex-home", "/home/it's me/.codex"))
MOVED = Entries(("/elsewhere/python3", *PROGRAM[1:]))
THEIRS = '{"hooks": [{"type": "command", "command": "notify-me codex-checkpoints hook"}]}'

CONFIGS = {
    "a byte order mark alone": "\ufeff",
    "no line end at the end": 'model = "gpt"',
    "blanks at the end": 'model = "gpt"\n \t ',
    "a comment that begins as ours": "a = 1\n# >>> codex-checkpoints is a tool\n\n[b]\nc = 2\n",
    "both line ends": "a = 1\r\n[b]\nc = 2\n",
    "an odd order": '[b.c]\nx = 1\n[a]\ny = 2\n[b]\nz = 3\n[mcp_servers.one]\ncommand = "x"\n[d]\n',
    "a table of servers": '[mcp_servers]\none = { command = "x", args = ["]", "#"] }\n',
    "a table of hooks": "[hooks]\n",
    "hooks": '[[hooks.SessionStart]]\n[[hooks.SessionStart.hooks]]\ncommand = "mine"\n',
    "a command that only mentions us": "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\n"
    'command = "x -m codex_checkpoints hook; y"\n',
    "a huge file": "".join(
        f'[projects."/p/{n}"]\ntrust_level = "trusted"\n\n' for n in range(2_000)
    ),
    "no ASCII": '"größe" = 1\n[features."日本語"]\nx = "🎈"\n',
}

HOOKS_FILES = {
    "one line": '{"hooks": {"SessionStart": [%s]}}',
    "spread out": '{\n  "hooks": {\n    "SessionStart": [\n      %s\n    ]\n  }\n}\n',
    "CRLF and tabs": '{\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t%s\r\n\t\t]\r\n\t}\r\n}\r\n',
    "empty lists": '{"hooks":{"Stop":[%s],"PreCompact":[],"PostCompact":[ \n ]}}',
    "other members": '{"x": "]}\\"", "hooks" : {"Stop" : [%s , {"hooks": []}] } , "y": [1.50, {}]}',
    "no spaces": '{"hooks":{"Stop":[%s]},"z":null}',
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "codex"
    folder.mkdir()
    return folder


@pytest.fixture
def path(home: Path) -> Path:
    """Say where the configuration stands, where there is one."""
    return home / "config.toml"


def connect(home: Path, wanted: Entries = WANTED) -> tuple[Done, ...]:
    return codex_config.put_in(codex_config.plan(str(home), wanted))


def disconnect(home: Path) -> tuple[Done, ...]:
    return codex_config.take_out(codex_config.removal(str(home)))


def tree(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir()}


def text_of(path: Path) -> str:
    return path.read_bytes().decode()


def refused(home: Path, wanted: Entries = WANTED) -> Refusal:
    before = tree(home)
    with pytest.raises(Refusal) as caught:
        connect(home, wanted)
    assert tree(home) == before
    return caught.value


# --- config.toml ---------------------------------------------------------------------------------


def test_entries_name_the_programs_that_codex_calls(home: Path, path: Path) -> None:
    path.write_text('model = "gpt"\n')

    connect(home)

    data = tomllib.loads(path.read_text())
    assert data["model"] == "gpt"
    line = (
        "'/opt/py thon/bin/python3' -P -X utf8 -m codex_checkpoints hook "
        "--codex-home '/home/it'\"'\"'s me/.codex'"
    )
    handler = {"type": "command", "command": line, "timeout": 20}
    assert data["hooks"] == {
        "SessionStart": [
            {"matcher": "resume|compact|fork", "hooks": [{**handler, "additionalContextLimit": 0}]}
        ],
        "PreCompact": [{"hooks": [handler]}],
        "PostCompact": [{"hooks": [handler]}],
    }
    assert data["mcp_servers"]["codex-checkpoints"] == {
        "command": PROGRAM[0],
        "args": [*PROGRAM[1:], "mcp", "--codex-home", "/home/it's me/.codex"],
        "startup_timeout_sec": 20,
        "tool_timeout_sec": 20,
    }


@pytest.mark.parametrize("text", CONFIGS.values(), ids=CONFIGS)
def test_remove_after_connect_restores_the_original_bytes(
    home: Path, path: Path, text: str
) -> None:
    path.write_bytes(text.encode())

    connect(home)

    connected = path.read_bytes()
    body = text.removeprefix("\ufeff")
    assert connected.startswith(text.encode())
    assert b"codex_checkpoints" in connected.removeprefix(body.encode())
    disconnect(home)
    assert tree(home) == {"config.toml": text.encode()}


def test_file_created_by_connect_is_removed_again(home: Path) -> None:
    (done,) = connect(home)

    assert done.action == "create"
    assert done.backup is None
    assert tree(home).keys() == {"config.toml"}
    (gone,) = disconnect(home)
    assert gone.action == "delete"
    assert tree(home) == {}


def test_file_keeps_its_own_line_endings(home: Path, path: Path) -> None:
    path.write_bytes(b"a = 1\r\n")

    connect(home)

    connected = path.read_bytes()
    assert connected.count(b"\n") == connected.count(b"\r\n") > 10


OURS = config.with_entries("a = 1\n", WANTED)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("timeout = 20", "timeout = 7"),
        ("[[hooks.PreCompact]]", '[[hooks.PreCompact]]\nmatcher = "*"'),
    ],
    ids=["a value that is theirs to choose", "a matcher that takes everything"],
)
def test_changes_by_a_person_to_our_entries_are_kept(old: str, new: str) -> None:
    changed = added_to(OURS, [(old, new)])

    assert config.with_entries(changed, WANTED) == changed


ADDITIONS = {
    "server keys": (
        "tool_timeout_sec = 20\n",
        'enabled = false  # now\nenabled_tools = [ # ]\n  "x",\n]\ntool_timeout_sec = 90\n',
    ),
    "a table of tools": (
        "\n[[hooks.SessionStart]]",
        """
[mcp_servers.codex-checkpoints.tools."memory.read"]
approval_mode = "approve"

[[hooks.SessionStart]]""",
    ),
    "trust between our tables": (
        "\n[[hooks.PostCompact]]",
        '\n[hooks.state."k"]\ntrusted_hash = "sha256:00"\n\n[[hooks.PostCompact]]',
    ),
    "tables behind the block": (
        f"{config.END}\n",
        f"{config.END}\n\n[mcp_servers.codex-checkpoints.env]\nA = 'b'\n\n[mine]\nx = 1\n",
    ),
}


def added_to(text: str, additions: Iterable[tuple[str, str]]) -> str:
    """Return a text of ours as a person or Codex changes it; line ends stay as they are."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for old, new in additions:
        changed = text.replace(old.replace("\n", newline), new.replace("\n", newline))
        assert changed != text
        text = changed
    return text


def says(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return what a text means, and the comments in lines of their own, in no order."""
    text = text.removeprefix("\ufeff")
    data = tomllib.loads(text, parse_float=str)  # a NaN is not itself
    return data, sorted(line for line in text.splitlines() if line.startswith("#"))


def stays(text: str, names: set[str]) -> None:
    """Add to our entries behind a text; all of it stays when others replace them or one comes."""

    def changed(wanted: Entries) -> str:
        ours = config.with_entries(text, wanted).removeprefix(text)
        return text + added_to(ours, (ADDITIONS[name] for name in ADDITIONS if name in names))

    before, moved = changed(WANTED), config.with_entries(changed(WANTED), MOVED)
    assert says(moved) == says(changed(MOVED))
    assert config.with_entries(moved, MOVED) == moved
    assert says(config.with_entries(moved, WANTED)) == says(before)
    assert says(config.without_entries(moved) or "") == says(config.without_entries(before) or "")


def test_deleted_server_entry_is_added_again() -> None:
    start, end = OURS.index("[mcp_servers"), OURS.index("\n[[hooks.SessionStart]]")

    assert config.with_entries(OURS[:start] + OURS[end + 1 :], WANTED) == OURS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('command = "{}"', '"command"="{}"# here'),
        ('command = "{}"', "\tcommand\t=\t'{}' # = there"),
        ('command = "{}"', "command = '''{}'''"),
        ('args = ["-P", "-X", ', 'args = [ # [one]\n  "-P",\n  "-X", # two\n  '),
    ],
)
def test_value_is_corrected_in_any_spelling(old: str, new: str) -> None:
    written = added_to(OURS, [(old.format(PROGRAM[0]), new.format(PROGRAM[0]))])

    moved = config.with_entries(written, MOVED)

    assert says(moved) == says(config.with_entries(OURS, MOVED))


CHANGED = {
    "a narrower matcher": ('"resume|compact|fork"', '"startup"'),
    "no matcher": ('matcher = "resume|compact|fork"\n', ""),
    "no limit": ("additionalContextLimit = 0\n", ""),
    "another limit": ("additionalContextLimit = 0\n", "additionalContextLimit = 9\n"),
    "a matcher where none belongs": (
        "[[hooks.PreCompact]]",
        '[[hooks.PreCompact]]\nmatcher = "auto"',
    ),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_changed_hook_of_ours_is_corrected_and_nothing_else(
    home: Path, path: Path, change: tuple[str, str], newline: str
) -> None:
    path.write_text("\ufeffa = 1\n", newline=newline)
    connect(home, HERE)
    ours = text_of(path) + f"[mine]{newline}x = 1{newline}"
    path.write_bytes(added_to(ours, [change]).encode())
    assert look(home, HERE).doors[0].problem == "outdated"

    connect(home, HERE)

    assert says(text_of(path)) == says(ours)
    assert look(home, HERE).doors[0].problem is None
    assert connect(home, HERE) == ()


BETWEEN = "\n[[hooks.PreCompact]]"


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ([(BETWEEN, f'\n[x."k"]\nhash = "00"\n{BETWEEN}')], 'a = 1\n[x."k"]\nhash = "00"\n\n'),
        (
            [(config.END, f'[[hooks.PostCompact.hooks]]\ncommand = "mine"\n{config.END}')],
            'a = 1\n[[hooks.PostCompact]]\n\n[[hooks.PostCompact.hooks]]\ncommand = "mine"\n',
        ),
        (
            [(BETWEEN, f"# Why this?\n{BETWEEN}"), (f"{config.END}\n", "\n# Mine.\n[b]\n")],
            "a = 1\n# Why this?\n# Mine.\n[b]\n",
        ),
    ],
    ids=["a table of Codex's", "a handler", "comments"],
)
def test_lines_of_others_between_ours_are_kept(changes: list[tuple[str, str]], left: str) -> None:
    text = added_to(config.with_entries("a = 1\n", WANTED), changes)

    assert config.without_entries(text) == left


def test_entries_without_comments_are_recognised_by_content() -> None:
    bare = "".join(line for line in OURS.splitlines(True) if not line.startswith("#"))

    assert config.with_entries(bare, WANTED) == bare
    assert (config.without_entries(bare) or "").split() == ["a", "=", "1"]


UNSAFE = [
    (b"a = [", "unreadable_source", "not valid TOML"),
    (b"a = 1\na = 2\n", "unreadable_source", "not valid TOML"),
    (b"a = " + b"[" * 10_000, "unreadable_source", "not valid TOML"),
    (b"mcp_servers = {}\n", "conflict", "[mcp_servers.NAME]"),
    (b'hooks = { Stop = [] }\n[x]\ny = "z"\n', "conflict", "[[hooks.EVENT]]"),
    (b"hooks.SessionStart = [{ hooks = [] }]\n", "conflict", "[[hooks.EVENT]]"),
    (b'[mcp_servers.codex-checkpoints]\ncommand = "x"\n', "conflict", "not ours"),
    (b'a = "\xff"\n', "unreadable_source", "not UTF-8"),
    (b"#" * (file_edit.MAX_BYTES + 1), "limit_exceeded", "longer than"),
    (b"read = 'only'\n", "storage_error", "read-only"),
]


@pytest.mark.parametrize(("data", "code", "reason"), UNSAFE, ids=[each[2] for each in UNSAFE])
def test_file_that_cannot_be_edited_safely_is_left(
    home: Path, path: Path, data: bytes, code: str, reason: str
) -> None:
    path.write_bytes(data)
    path.chmod(0o444 if reason == "read-only" else 0o644)

    refusal = refused(home)

    assert (refusal.code, refusal.facts["path"]) == (code, str(path))
    assert reason in refusal.message


def test_missing_codex_home_is_not_made_and_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="no Codex home") as caught:
        codex_config.plan(str(tmp_path / "none"), WANTED)

    assert caught.value.code == "codex_not_found"
    assert [(door.problem, door.next) for door in look(tmp_path / "none").doors] == [
        ("not_configured", "choose_home")
    ] * 2
    assert list(tmp_path.iterdir()) == []


# --- hooks.json ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", HOOKS_FILES.values(), ids=HOOKS_FILES)
def test_our_hooks_are_added_to_those_of_a_person(home: Path, path: Path, form: str) -> None:
    text = form % THEIRS
    (home / "hooks.json").write_bytes(text.encode())

    connect(home)

    assert "[[hooks." not in path.read_text()
    connected = text_of(home / "hooks.json")
    after = json.loads(connected)["hooks"]
    for event, groups in json.loads(text)["hooks"].items():
        assert after[event][: len(groups)] == groups
    assert WANTED.are_all(ours_in(hooks.groups_in(connected)))
    assert connect(home) == ()
    disconnect(home)
    assert tree(home) == {"hooks.json": text.encode()}


@pytest.mark.parametrize("form", HOOKS_FILES.values(), ids=HOOKS_FILES)
def test_hooks_file_changes_only_by_our_entries(form: str) -> None:
    text = form % THEIRS

    connected = hooks.with_hooks(text, WANTED)

    changes = SequenceMatcher(None, text, connected, autojunk=False).get_opcodes()
    assert {kind for kind, *_ in changes} == {"equal", "insert"}
    assert THEIRS in hooks.with_hooks(connected, MOVED)
    assert hooks.without_hooks(hooks.with_hooks(connected, MOVED)) == text


def test_refusal_halfway_names_the_files_already_written(
    home: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "hooks.json").write_text(HOOKS_FILES["one line"] % THEIRS)
    real = file_edit.replace

    def replace(before: file_edit.Snapshot, data: bytes) -> None:
        if before.path == str(path):
            raise OSError(ENOSPC, "No space left on device")
        real(before, data)

    monkeypatch.setattr(file_edit, "replace", replace)
    with pytest.raises(Refusal, match=r"hooks\.json is changed already") as caught:
        connect(home)

    assert caught.value.code == "storage_error"
    assert caught.value.facts["written"] == [str(home / "hooks.json")]


@pytest.mark.parametrize("text", ['{"hooks": {}}', "{}", "[", "\ufeff{}", "", '{"hooks": 1}'])
def test_hooks_file_without_hooks_is_left_alone(home: Path, path: Path, text: str) -> None:
    (home / "hooks.json").write_bytes(text.encode())

    connect(home)

    assert (home / "hooks.json").read_bytes() == text.encode()
    assert "[[hooks.SessionStart]]" in path.read_text()


def test_hooks_go_into_one_file_if_a_person_uses_both(home: Path, path: Path) -> None:
    (home / "hooks.json").write_text(HOOKS_FILES["one line"] % THEIRS)
    path.write_text(CONFIGS["hooks"])

    connect(home)

    assert (home / "hooks.json").read_text() == HOOKS_FILES["one line"] % THEIRS
    assert len(config.found_in(path.read_text()).hooks) == len(HOOKS)


def test_hooks_follow_the_file_that_a_person_starts_to_use(home: Path, path: Path) -> None:
    connect(home)
    (home / "hooks.json").write_text(HOOKS_FILES["spread out"] % THEIRS)

    connect(home)

    assert not config.found_in(path.read_text()).hooks
    assert len([*ours_in(hooks.groups_in((home / "hooks.json").read_text()))]) == len(HOOKS)


def test_hooks_move_to_the_configuration_when_a_person_has_none_left(
    home: Path, path: Path
) -> None:
    (home / "hooks.json").write_text(HOOKS_FILES["spread out"] % THEIRS)
    connect(home)
    data = json.loads((home / "hooks.json").read_text())
    data["hooks"]["SessionStart"].pop(0)
    (home / "hooks.json").write_text(json.dumps(data))

    connect(home, MOVED)

    assert json.loads((home / "hooks.json").read_text()) == {"hooks": {}}
    assert MOVED.are_all(config.found_in(path.read_text()).hooks)


def test_concurrent_changes_by_others_stay_in_the_hooks_file(home: Path) -> None:
    path = home / "hooks.json"
    path.write_text(HOOKS_FILES["spread out"] % THEIRS)
    connect(home)
    theirs = {"type": "command", "command": "mine"}
    data = json.loads(path.read_text())
    data["hooks"]["PreCompact"][0]["hooks"].append(theirs)
    path.write_text(json.dumps(data, indent=2))

    connect(home, MOVED)
    groups = hooks.groups_in(path.read_text())
    disconnect(home)

    assert MOVED.are_all(ours_in(groups))
    assert handlers_of(groups["PreCompact"][0]) == [theirs]
    assert json.loads(path.read_text())["hooks"] == {
        "SessionStart": [json.loads(THEIRS)],
        "PreCompact": [{"hooks": [theirs]}],
    }


TWICE = f'{{"hooks": {{"Stop": [1]}}, "hooks": {{"Stop": [{THEIRS}], "Stop": [2]}}}}'
LOOKS_LIKE = json.dumps(
    {
        "hooks": {
            "SessionStart": [json.loads(THEIRS)],
            "Stop": {"x": WANTED.group(HOOKS[1])},
            "PreCompact": [{"hooks": {"x": handlers_of(WANTED.group(HOOKS[1]))[0]}}],
        }
    }
)


@pytest.mark.parametrize("text", [TWICE, LOOKS_LIKE], ids=["one name twice", "looks like ours"])
def test_unusual_hooks_file_is_left_or_restored(home: Path, text: str) -> None:
    (home / "hooks.json").write_text(text)

    connect(home)
    connect(home, MOVED)
    disconnect(home)

    assert text_of(home / "hooks.json") == text


def test_hooks_file_with_our_entries_that_no_longer_parses_is_named(home: Path) -> None:
    (home / "hooks.json").write_text(HOOKS_FILES["one line"] % THEIRS)
    connect(home)
    path = home / "hooks.json"
    path.write_text(path.read_text()[:-1])

    with pytest.raises(Refusal, match=r"hooks\.json") as caught:
        codex_config.removal(str(home))

    assert caught.value.code == "unreadable_source"


# --- files ---------------------------------------------------------------------------------------


def test_backup_is_kept_until_nothing_differs_and_never_replaced(home: Path, path: Path) -> None:
    path.write_text("a = 1\n")
    older = {"config.toml.codex-checkpoints.bak": b"older\n"}
    (home / "config.toml.codex-checkpoints.bak").write_text("older\n")
    copy = {"config.toml.codex-checkpoints.bak2": b"a = 1\n"}

    (done,) = connect(home)

    assert done.backup == str(home / "config.toml.codex-checkpoints.bak2")
    assert tree(home) == older | copy | {"config.toml": path.read_bytes()}
    disconnect(home)
    assert tree(home) == older | {"config.toml": b"a = 1\n"}
    connect(home)
    path.write_text("b = 2\n" + path.read_text())
    disconnect(home)
    assert tree(home) == older | copy | {"config.toml": b"b = 2\na = 1\n"}


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_mode_is_kept_and_new_files_are_private(home: Path, path: Path) -> None:
    connect(home)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("a = 1\n")
    path.chmod(0o640)

    (done,) = connect(home)

    assert done.backup is not None
    assert {stat.S_IMODE(os.stat(each).st_mode) for each in (path, done.backup)} == {0o640}


def test_both_files_are_checked_before_one_is_written(home: Path, path: Path) -> None:
    (home / "hooks.json").write_text(HOOKS_FILES["one line"] % THEIRS)
    path.write_text("a = 1\n")
    path.chmod(0o444)

    assert refused(home).code == "storage_error"


def test_symbolic_link_is_preserved(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "codex.toml"
    target.parent.mkdir()
    target.write_text("a = 1\n")
    (home / "config.toml").symlink_to(target)

    connect(home)

    assert (home / "config.toml").is_symlink()
    assert b"codex_checkpoints" in target.read_bytes()
    assert list(target.parent.iterdir()) == [target]
    assert tree(home).keys() == {"config.toml", "config.toml.codex-checkpoints.bak"}
    disconnect(home)
    assert (home / "config.toml").is_symlink()
    assert tree(home) == {"config.toml": b"a = 1\n"}


@pytest.mark.skipif(os.name == "nt", reason="there are no such pipes")
@pytest.mark.parametrize("kind", ["leads nowhere", "not a regular file"])
def test_dangling_link_and_pipe_are_left(home: Path, path: Path, tmp_path: Path, kind: str) -> None:
    if kind == "leads nowhere":
        path.symlink_to(tmp_path / "none")
    else:
        os.mkfifo(path)

    with pytest.raises(Refusal, match=kind) as caught:
        connect(home)

    assert caught.value.code == "storage_error"
    assert not (tmp_path / "none").exists()


def test_change_between_check_and_write_is_noticed(home: Path, path: Path) -> None:
    path.write_text("a = 1\n")
    changes = codex_config.plan(str(home), WANTED)
    path.write_text("a = 2\n")

    with pytest.raises(Refusal, match="meanwhile") as caught:
        codex_config.put_in(changes)

    assert caught.value.code == "conflict"
    assert path.read_text() == "a = 2\n"
    assert not list(home.glob(".*"))


def test_diff_shows_only_the_changes(home: Path, path: Path) -> None:
    path.write_text('key = "a secret of somebody"')

    (change,) = codex_config.plan(str(home), WANTED)

    assert "+[mcp_servers.codex-checkpoints]" in change.done().diff.splitlines()
    assert "secret" not in change.done().diff
    codex_config.put_in((change,))
    (back,) = codex_config.removal(str(home))
    assert "-[mcp_servers.codex-checkpoints]" in back.done().diff.splitlines()
    assert "secret" not in back.done().diff


# --- how things stand ----------------------------------------------------------------------------


def look(
    home: Path, wanted: Entries = WANTED, environment: dict[str, str] | None = None
) -> Connection:
    return Connector(str(home), str(home / "state"), wanted, environment or {"PATH": ""}).status()


def test_status_is_shown_before_and_after_connect(home: Path) -> None:
    def told() -> list[tuple[object, ...]]:
        return [
            (d.door, d.configured, d.trusted, d.problem, d.next) for d in look(home, HERE).doors
        ]

    assert told() == [
        ("hook", False, None, "not_configured", "connect"),
        ("mcp", False, None, "not_configured", "connect"),
    ]
    assert look(home, HERE).codex_problem == "codex_not_found"
    assert tree(home) == {}

    connect(home, HERE)

    assert told() == [("hook", True, None, None, "trust"), ("mcp", True, True, None, None)]
    assert look(home, HERE).doors[0].way_out == HOW_TO_TRUST
    assert [(hook.event, hook.configured, hook.trust) for hook in look(home, HERE).hooks] == [
        (event, True, None) for event in ("SessionStart", "PreCompact", "PostCompact")
    ]


HERE = evolve(WANTED, program=(sys.executable, *PROGRAM[1:]))


def test_hook_that_ran_was_trusted(home: Path) -> None:
    connect(home, HERE)
    ran(home, event="PreCompact")

    hook, _ = look(home, HERE).doors

    assert (hook.trusted, hook.problem, hook.next) == (None, None, None)


def test_entries_that_differ_from_ours_are_reported(home: Path, path: Path) -> None:
    def problems(there: Entries, wanted: Entries) -> list[tuple[str | None, str | None]]:
        connect(home, there)
        return [(door.problem, door.next) for door in look(home, wanted).doors]

    copied = evolve(HERE, options=("--codex-home", "/copied/from"))
    for there, wanted, problem in (
        (WANTED, WANTED, "program_missing"),
        (HERE, WANTED, "outdated"),
        (copied, HERE, "outdated"),
    ):
        assert problems(there, wanted) == [(problem, "repair")] * 2
    connect(home, HERE)
    path.write_text(path.read_text().replace("tool_timeout", "enabled = false\ntool_timeout"))
    assert [door.problem for door in look(home, HERE).doors] == [None, "disabled"]
    path.write_text(path.read_text().replace("ContextLimit = 0", "ContextLimit = [0]"))
    assert [door.problem for door in look(home, HERE).doors] == ["outdated", "disabled"]


def ran(home: Path, session: str = "a", at: str = "2026-11-20T10:00:00.000Z", **more: str) -> None:
    """Leave the receipt of a call, and what may stand beside it."""
    path = home / "state" / "sessions" / session / "receipts.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"door": "hook", "at": at, **more}) + "\nno json\n[1]\n")


def failed(home: Path, at: str, event: str | None, code: str = "storage_error") -> None:
    (home / "state").mkdir(exist_ok=True)
    said = {"type": "HookFailed", "at": at, "event": event, "sessionId": "a", "code": code}
    others: list[object] = [said | {"at": 2}, said | {"type": "RestoreFailed", "at": "3"}, []]
    with (home / "state" / "audit.jsonl").open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in (said, *others, "torn"))


def test_each_door_and_hook_shows_its_last_run_and_failure(home: Path) -> None:
    connect(home, HERE)
    ran(home, "a", "2026-11-20T10:00:00.000Z", event="SessionStart")
    ran(home, "b", "2026-11-22T10:00:00.000Z", event="PreCompact")
    ran(home, "b", "2026-11-19T10:00:00.000Z", door="memory.read")
    failed(home, "2026-11-21T10:00:00.000Z", "SessionStart")
    failed(home, "2026-11-21T11:00:00.000Z", "PreCompact")

    seen = look(home, HERE)

    assert [(h.last_session, h.failure.code if h.failure else None) for h in seen.hooks] == [
        ("a", "storage_error"),
        ("b", None),
        (None, None),
    ]
    hook, mcp = seen.doors
    assert [(each.last_ran_at, each.last_session) for each in (hook, mcp)] == [
        ("2026-11-22T10:00:00.000Z", "b"),
        ("2026-11-19T10:00:00.000Z", "b"),
    ]
    assert hook.failure is not None
    assert hook.failure.at == "2026-11-21T10:00:00.000Z"
    assert str(hook.failure) in seen.problems


def test_failure_without_an_event_counts_for_the_first_hook(home: Path) -> None:
    connect(home, HERE)
    failed(home, "2026-11-21T10:00:00.000Z", None, "invalid_payload")
    assert look(home, HERE).doors[0].failure is not None

    ran(home, "a", "2026-11-22T10:00:00.000Z", event="SessionStart")

    assert look(home, HERE).doors[0].failure is None
    assert look(home, HERE).doors[1].failure is None


def test_unreadable_files_are_reported(home: Path, path: Path) -> None:
    path.write_text("a = [")
    (home / "hooks.json").write_bytes(b"\xff")

    seen = look(home)

    assert [problem.split(" cannot be read: ")[0] for problem in seen.problems] == [
        str(path),
        str(home / "hooks.json"),
    ]
    assert {
        (door.problem, door.next, (door.way_out or "").partition(":")[0]) for door in seen.doors
    } == {("unreadable", None, "Correct `config.toml` first")}


def test_failure_before_removal_is_no_longer_a_problem(home: Path) -> None:
    connect(home)
    failed(home, "2026-11-21T10:00:00.000Z", "PreCompact")
    assert [problem for problem in look(home).problems if "failed" in problem]

    disconnect(home)

    assert not look(home).problems


@pytest.mark.skipif(os.name == "nt", reason="a script of the POSIX shell")
@pytest.mark.parametrize(
    ("script", "seconds", "code"),
    [
        ("exit 3", 30, "codex_failed"),
        ("exec sleep 60", 0.1, "timed_out"),
        ("yes", 0.1, "timed_out"),
    ],
)
def test_codex_that_does_not_answer_is_reported(  # noqa: PLR0917 - each is a fixture or a case
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    seconds: float,
    code: str,
) -> None:
    connect(home)
    found = a_codex(tmp_path / "bin", script)
    monkeypatch.setattr(program, "SECONDS", seconds)

    seen = look(home, environment=found)

    assert (seen.codex_path, seen.codex_problem) == (str(tmp_path / "bin" / "codex"), code)
    assert {hook.enabled for hook in seen.hooks} == {None}


@pytest.mark.skipif(os.name == "nt", reason="a script of the POSIX shell")
def test_only_the_status_asks_codex(home: Path, tmp_path: Path) -> None:
    environment = a_codex(tmp_path / "bin", f'touch "{tmp_path}/asked"')
    connector = Connector(str(home), str(home / "state"), HERE, environment)

    assert connector.status().doors[0].problem == "not_configured"
    assert not connector.preview("connect").written
    told = connector.carry_out("connect")
    assert told.written
    assert told.way_out == HOW_TO_TRUST
    assert not (tmp_path / "asked").exists()
    assert connector.status().codex_problem == "codex_failed"
    assert (tmp_path / "asked").exists()
    assert connector.preview("remove").changes[0].action == "delete"
    assert connector.carry_out("remove").way_out is None
    assert not connector.carry_out("remove").written


def test_codex_in_the_current_folder_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_codex(tmp_path / "here", "")
    monkeypatch.chdir(tmp_path / "here")

    assert program.find(os.pathsep.join(("", ".", "bin"))) is None


def test_our_program_is_called_so_that_no_folder_can_shadow_it(tmp_path: Path) -> None:
    launcher = tmp_path / "bundled" / "launch.py"
    launcher.parent.mkdir()
    launcher.touch()

    installed, bundled = (
        program.this_program("/p/python", str(tmp_path / folder / "codex_checkpoints"))
        for folder in ("x", "bundled/server")
    )

    assert installed == ("/p/python", "-P", "-X", "utf8", "-m", "codex_checkpoints")
    assert bundled[-1] == str(launcher)
    text = config.with_entries(None, Entries(bundled))
    assert len(config.found_in(text).hooks) == len(HOOKS)
    assert config.without_entries(text) is None


def test_codex_is_configured_with_a_launcher_that_survives_updates(tmp_path: Path) -> None:
    own, stable = (tmp_path / name / "bundled" / "launch.py" for name in ("0.1.0", "storage"))
    for launcher in (own, stable):
        launcher.parent.mkdir(parents=True)
        launcher.touch()
    package = str(own.parent / "server" / "codex_checkpoints")

    words = program.this_program("/p/python", package, str(stable))
    assert words[-1] == str(stable)
    assert len(config.found_in(config.with_entries(None, Entries(words))).hooks) == len(HOOKS)
    for useless in (str(tmp_path / "gone" / "launch.py"), "launch.py", ""):
        assert program.this_program("/p/python", package, useless)[-1] == str(own)


# --- the doors -----------------------------------------------------------------------------------


NO_CODEX = {"PATH": os.path.dirname(sys.executable)}


@pytest.fixture
def own(tmp_path: Path) -> Home:
    """Make a home with a configuration, for the product as a process."""
    made = Home(tmp_path)
    (made.root / "config.toml").write_text("a = 1  # mine\n")
    return made


def configuration(own: Home) -> str:
    return (own.root / "config.toml").read_text()


def test_command_line_connects_shows_and_removes(own: Home) -> None:
    elsewhere = ("--state-dir", str(own.state / "elsewhere"))
    shown = own.run("connect", "--dry-run", *elsewhere).stdout.decode()
    assert configuration(own) == "a = 1  # mine\n"
    assert (
        "Nothing was written: this is what a run without --dry-run would write."
        in shown.splitlines()
    )

    done = own.json("connect", *elsewhere)

    (change,) = done["changes"]
    assert (done["written"], change["action"]) == (True, "edit")
    assert "+[mcp_servers.codex-checkpoints]" in shown.splitlines()
    assert change["diff"].partition("\n@@")[2].rstrip() in shown
    server = tomllib.loads(configuration(own))["mcp_servers"]["codex-checkpoints"]
    folders = ("--codex-home", str(own.root), *elsewhere)
    assert [server["command"], *server["args"]] == [
        *(sys.executable, "-P", "-X", "utf8", "-m", "codex_checkpoints", "mcp", *folders),
    ]
    status = own.json("connect", "--status", env=NO_CODEX)
    assert [(door["door"], door["configured"]) for door in status["doors"]] == [
        ("hook", True),
        ("mcp", True),
    ]
    assert b"Written." in own.run("connect", "--remove").stdout
    assert {path.name for path in own.root.iterdir() if path.is_file()} == {"config.toml"}
    assert configuration(own) == "a = 1  # mine\n"


def test_default_folders_are_not_written() -> None:
    usual = os.path.abspath("/home/ana/.codex")

    assert folders(usual, os.path.join(usual, "codex-checkpoints"), usual) == ()


def test_client_connects_shows_and_removes(own: Home) -> None:
    with Peer(own.root, env=NO_CODEX) as peer:
        peer.start()
        shown = peer.call("checkpoints/connect", {"dryRun": True})
        assert (shown["written"], len(shown["changes"])) == (False, 1)
        assert peer.call("checkpoints/connect")["written"]
        status = peer.call("checkpoints/connect", {"status": True})
        assert [door["configured"] for door in status["doors"]] == [True, True]
        assert peer.call("checkpoints/connect", {"remove": True})["written"]

    assert configuration(own) == "a = 1  # mine\n"


@pytest.mark.parametrize("other", ["remove", "dryRun"])
def test_status_request_with_another_action_is_refused(own: Home, other: str) -> None:
    with Peer(own.root, env=NO_CODEX) as peer:
        peer.start()
        error = peer.error("checkpoints/connect", {"status": True, other: True})

    assert (error["code"], error["data"]["code"]) == (-32602, "invalid_payload")
    assert error["data"]["facts"]["problems"]
    assert configuration(own) == "a = 1  # mine\n"


# --- the law -------------------------------------------------------------------------------------

STATEMENTS = (
    "{k} = 1",
    "\t'größe{k}'\t=\t1",
    '[[{k}."c.d # e"]] # [f]',
    "{k} = 'x # y'  # z",
    '{k} = "a\\"]"',
    "{k} = '''\n[[hooks.Stop]]\n# >>> codex-checkpoints'''",
    '{k} = """\n"x" \\\n"""',
    "{k} = [\n  1, # ]\n  [2] ,\n]",
    "{k} = { a = [ {} ], b.c = 'd' }",
    "{k}.a.b = nan",
    "[{k}]",
    "  [ {k} . 'a.b' ] # [c]",
    "[[{k}.x]]",
    "[mcp_servers.{k}]\ncommand = 'x'",
    '[[hooks.SessionStart]]\nmatcher = "{k}"\n[[hooks.SessionStart.hooks]]\ncommand = "{k}"',
    '[[hooks.PreCompact]]\nhooks = [{ command = "{k}" }]',
    '[hooks.state."{k}:0"]\ntrusted_hash = "x"',
    "# {k}",
    "# <<< codex-checkpoints {k}",
    "# >>> codex-checkpoints {k}",
    "",
    "\t ",
)


@st.composite
def configs(draw: st.DrawFn) -> str:
    """Make up a configuration that is valid TOML."""
    chosen = draw(st.lists(st.sampled_from(STATEMENTS), max_size=12))
    lines = [statement.replace("{k}", f"k{n}") for n, statement in enumerate(chosen)]
    newline = draw(st.sampled_from(("\n", "\r\n")))
    mark = draw(st.sampled_from(("", "", "\ufeff")))
    end = draw(st.sampled_from(("", newline, newline * 3)))
    return mark + "\n".join(lines).replace("\n", newline) + end


@given(configs(), st.booleans())
def test_any_configuration_keeps_its_meaning_and_is_restored(
    text: str, hooks_elsewhere: bool
) -> None:
    wanted = evolve(WANTED, hooks=()) if hooks_elsewhere else WANTED

    connected = config.with_entries(text, wanted)

    assert connected.startswith(text)
    assert config.with_entries(connected, wanted) == connected
    assert config.without_entries(connected) == text
    moved = config.with_entries(connected, MOVED)
    assert config.with_entries(moved, wanted) == connected
    assert config.without_entries(moved) == text


@example("a = 1\n", set(ADDITIONS))
@example("\ufeffa = 1\r\n", set(ADDITIONS))
@given(configs(), st.sets(st.sampled_from(sorted(ADDITIONS))))
def test_additions_to_our_entries_stay_with_them(text: str, names: set[str]) -> None:
    stays(text, names)


NAMES = st.sampled_from(("SessionStart", "PreCompact", "PostCompact", "Stop"))
HANDLERS = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.text(max_size=5), "timeout": st.floats()},
)
GROUPS = st.fixed_dictionaries({"hooks": st.lists(HANDLERS, max_size=2)})
LEAVES = st.none() | st.booleans() | st.floats() | st.text('[]{},:"\\\n\u2028é', max_size=6)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
EVENTS = st.dictionaries(NAMES, st.lists(GROUPS, max_size=2), min_size=1)


@st.composite
def hooks_files(draw: st.DrawFn) -> str:
    """Make up a hooks file, in some form that programs and people write."""
    others = draw(st.dictionaries(st.text(min_size=6, max_size=8), VALUES, max_size=2))
    data = {**others, "hooks": draw(EVENTS), **{f"{name}!": others[name] for name in others}}
    text = json.dumps(
        data,
        indent=draw(st.sampled_from((None, 0, 1, "\t"))),
        separators=draw(st.sampled_from(((",", ":"), (", ", ": "), (" ,", " : ")))),
        ensure_ascii=draw(st.booleans()),
    )
    return text.replace("\n", draw(st.sampled_from(("\n", "\r\n"))))


@given(hooks_files())
def test_any_hooks_file_is_restored(text: str) -> None:
    connected = hooks.with_hooks(text, WANTED)

    assert WANTED.are_all(ours_in(hooks.groups_in(connected)))
    assert hooks.with_hooks(connected, WANTED) == connected
    assert hooks.without_hooks(connected) == text


@given(configs(), configs())
def test_text_after_our_entries_is_kept(text: str, later: str) -> None:
    connected = config.with_entries(text, WANTED)
    more = "[later]\n" + later.removeprefix("\ufeff").replace("k", "late")
    try:
        tomllib.loads((connected + more).removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        return

    left = config.without_entries(connected + more)

    assert left is not None
    assert left.startswith(text)
    assert left.removeprefix(text).lstrip("\r\n") == more
    assert config.without_entries(config.with_entries(connected + more, MOVED)) == left


def test_text_added_to_our_file_keeps_its_last_line_ending() -> None:
    added = config.with_entries(None, WANTED) + "[mine]\na = 1\n"

    moved = config.with_entries(added, MOVED)

    assert config.without_entries(added) == config.without_entries(moved) == "[mine]\na = 1\n"


# --- what the doctor says of it -------------------------------------------------------------------


def diagnosed(home: Home, **env: str) -> dict[str, str]:
    """Return what the doctor found: how bad each finding is, by its code."""
    told = home.json("doctor", env={"PATH": "", **env})
    assert all(each["message"] and each["wayOut"] for each in told["findings"])
    return {each["code"]: each["severity"] for each in told["findings"]}


def a_codex(folder: Path, script: str) -> dict[str, str]:
    """Put a program of this name into a folder; return the environment that finds it."""
    folder.mkdir()
    (folder / "codex").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "codex").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_doctor_reports_obstacles_to_codexs_calls(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.put(chat("one"))
    assert diagnosed(home) == {}

    assert home.json("connect")["written"]
    assert diagnosed(home) == {"hook_never_ran": "info"}
    path = home.root / "config.toml"
    receipt = home.checkpoint().with_name("receipts.jsonl")
    receipt.parent.mkdir(parents=True, exist_ok=True)
    receipt.write_text('{"door":"hook","event":"SessionStart","at":"2026-11-20T10:00:00.000Z"}\n')
    assert diagnosed(home) == {}

    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(sys.executable, "/gone/python"), encoding="utf-8")
    assert diagnosed(home) == {"hook_program_missing": "error", "mcp_program_missing": "error"}
    path.write_text("[")
    assert diagnosed(home) == {"codex_configuration": "warning"}
    path.write_text(text)
    path.with_name("hooks.json").write_text("[")
    assert diagnosed(home) == {"codex_configuration": "warning"}


def test_doctor_reports_a_failed_call(own: Home) -> None:
    assert own.json("connect")["written"]
    failed(own.root, "2026-11-21T10:00:00.000Z", "PreCompact")
    copytree(own.root / "state", own.state, dirs_exist_ok=True)

    assert diagnosed(own)["hook_failed"] == "warning"


def test_status_names_the_next_step(own: Home) -> None:
    def lines(*options: str) -> list[str]:
        return own.run("connect", *options, env=NO_CODEX).stdout.decode().splitlines()

    step = re.compile(r"  Next step +(.*)")

    def next_step(*options: str) -> str | None:
        found = step.fullmatch(lines(*options)[-1])
        return found and found[1]

    shown = next_step("--status") or ""
    assert shown.startswith("Run `codex-checkpoints connect`: it shows")
    assert next_step("--yes") == next_step("--status") == HOW_TO_TRUST
    assert next_step("--remove", "--yes") is None
    (own.root / "config.toml").write_text("[")
    *others, _last = lines("--status")
    assert (next_step("--status") or "").startswith("Correct config.toml first")
    words = "\n".join(others)
    assert "Codex may read a newer form of it" in words
    assert words.count("not known whether it is connected") == 2
    assert "not connected" not in words
