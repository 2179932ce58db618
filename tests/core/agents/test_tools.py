"""Artifacts of a call: one rule, one case, in both forms of file."""

import hashlib
import json

import pytest

from codex_checkpoints.core.checkpoint.records import FOLDER as FOLDER_NOW
from codex_checkpoints.core.checkpoint.records import Limits
from codex_checkpoints.core.checkpoint.replay import Replay
from derived_state import artifacts, checkpoint, read, task
from rollouts import (
    FOLDER,
    Form,
    Step,
    Writer,
    call,
    custom_call,
    event,
    image,
    item,
    mcp,
    output,
    patch,
    patch_text,
    raw,
    response,
    rollout,
    session,
    several,
    shell,
    started,
    to_line,
    turn_context,
    user,
)

Kinds = dict[str, str]

TEXT = {"type": "text", "text": "x"}
CALLED = {"server": "docs", "tool": "find"}
P = patch_text(update="a.py")
DONE = "Success. Updated the following files:\nM x\n"
HEREDOC = f"apply_patch <<'E'\n{P}\nE"


def met(form: Form, *steps: Step) -> Kinds:
    """Return the kind of each artifact of a session with these steps."""
    found = artifacts(rollout(session(form), user("x"), *steps))
    return {uri: kind for uri, (kind, _) in found.items()}


def answered(name: str, arguments: object, text: object = "ok", **more: object) -> Step:
    """Call a function that answers."""
    return several(call(name, arguments, "c1", **more), output("c1", text))


def custom(name: str, text: str, answer: str = DONE) -> Step:
    """Call a tool that takes a text and answers."""
    return several(custom_call(name, text, "c1"), output("c1", answer, custom=True))


def ran(**fields: object) -> Step:
    """Tell of a command that ran."""
    known: dict[str, object] = {"command": ["bash", "-lc", "make"], "status": "completed"}
    known |= fields
    return lambda writer: writer.item("CommandExecution", None, id="c1", **known)


def parsed(*entries: tuple[str, str | None]) -> list[dict[str, str]]:
    return [{"type": kind, "cmd": "x"} | ({"path": path} if path else {}) for kind, path in entries]


def sha(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


# --- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (ran(), {"make": "command"}),  # completed
        (ran(status="failed", exit_code=2), {"make": "command"}),  # failed
        (ran(status="failed", exit_code=130), {"make": "command"}),  # interrupted
        (ran(status="declined"), {}),  # declined
        (ran(status="in_progress"), {}),  # without an outcome
        (ran(command=["make", "-k", "all it"]), {"make -k 'all it'": "command"}),  # words
        (ran(command="make all"), {"make all": "command"}),  # one text
        (ran(command=["sh", "-c", "a && b"]), {"a && b": "command"}),  # sh
        (ran(command=["cmd.exe", "/c", "dir", "/b"]), {"dir /b": "command"}),  # cmd
        (ran(command=["pwsh", "-Command", "ls"]), {"ls": "command"}),  # pwsh
        (ran(command=["bash", "-lc", " \n\t "]), {}),  # an empty script
        (ran(command=[]), {}),  # no words
        (ran(command=["a", 1]), {}),  # no texts
        (ran(command=["bash", "-lc", "a\n\tb\x00c"]), {"a b c": "command"}),  # lines
        (ran(command=["bash", "-lc", "y" * 200]), {"y" * 159 + "…": "command"}),  # too long
    ],
)
def test_command_that_ran_is_recorded_by_its_script(step: Step, expected: Kinds):
    assert met("paginated", step) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([("read", "a.py")], {"a.py": "file"}),  # a read
        ([("read", "a.py"), ("read", "d/b.py")], {"a.py": "file", "d/b.py": "file"}),  # two
        ([("read", "a.py"), ("unknown", None)], {"a.py": "file", "make": "command"}),  # mixed
        ([("search", "src")], {"make": "command"}),  # a search
        ([("list_files", "src")], {"make": "command"}),  # a list
        ([("unknown", None)], {"make": "command"}),  # unknown
        ([("read", None)], {"make": "command"}),  # a read of nothing
        ([("new", "a.py")], {"make": "command"}),  # from the future
    ],
)
def test_codexs_list_of_files_read_by_a_command_counts(
    entries: list[tuple[str, str | None]], expected: Kinds
):
    assert met("paginated", ran(parsed_cmd=parsed(*entries))) == expected
    told = event("exec_command_end", call_id="c1", command=["make"], parsed_cmd=parsed(*entries))
    assert met("legacy", call("exec_command", {"cmd": "x"}, "c1"), told) == expected


@pytest.mark.parametrize(
    ("script", "read", "mixed"),
    [
        ("cat a.py", "a.py", False),
        ("cat a.py b.py; head -n 3 c.py && tail d.py | nl e.py", "a.py b.py c.py d.py e.py", False),
        ("cd lib && cat a.py", "lib/a.py", False),
        ("cd lib && cat a.py && make", "lib/a.py", True),
        ("cat a.py | grep x", "a.py", True),
        ("cat ~/a.py", "", True),
        ("cat a.py > b.py", "a.py b.py", False),
        ("cat a.py > $b", "a.py", True),
        ("cat 'unclosed", "", True),
    ],
)
def test_plain_reads_are_parsed_where_codex_lists_none(script: str, read: str, *, mixed: bool):
    expected = dict.fromkeys(read.split(), "file") | ({script: "command"} if mixed else {})

    assert met("legacy", answered("exec_command", {"cmd": script})) == expected
    assert met("legacy", answered("shell_command", {"command": script})) == expected
    assert met("legacy", answered("shell", {"command": ["bash", "-lc", script]})) == expected
    assert met("legacy", answered("container.exec", {"command": ["sh", "-c", script]})) == expected
    assert met("paginated", ran(command=["bash", "-lc", script], parsed_cmd=[])) == expected


@pytest.mark.parametrize("program", ["powershell", "pwsh.exe"])
@pytest.mark.parametrize("script", ["Get-Content a.txt", "gc a.txt", "type a.txt", "cat a.txt"])
def test_plain_reads_in_powershell_are_parsed(program: str, script: str):
    argv = [program, "-Command", script]
    unknown = parsed(("unknown", None))

    assert met("paginated", ran(command=argv)) == {"a.txt": "file"}
    assert met("paginated", ran(command=argv, parsed_cmd=unknown)) == {"a.txt": "file"}
    assert met("legacy", answered("shell", {"command": argv})) == {"a.txt": "file"}
    text = {"command": script, "shell": program}
    assert met("legacy", answered("shell_command", text)) == {"a.txt": "file"}


@pytest.mark.parametrize("text", ["execution error: no such file", "aborted by user after 1.0s"])
def test_failed_write_names_no_file(text: str):
    assert met("legacy", answered("shell", {"command": ["sh", "-c", "rm a"]}, text)) == {
        "rm a": "command"
    }
    assert met("legacy", answered("exec_command", {"cmd": "cat a > b"}, text)) == {
        "cat a > b": "command",
        "a": "file",
    }


def test_our_parser_decides_the_parts_that_codex_calls_unknown():
    script = "cat notes.txt other.txt; true"
    step = ran(command=["bash", "-lc", script], parsed_cmd=parsed(("unknown", None)))
    both = {"notes.txt": "file", "other.txt": "file", script: "command"}
    assert met("paginated", step) == both

    mixed = parsed(("read", "notes.txt"), ("unknown", None))
    assert met("paginated", ran(command=["bash", "-lc", script], parsed_cmd=mixed)) == both
    known = parsed(("read", "notes.txt"))
    only = ran(command=["bash", "-lc", script], parsed_cmd=known)
    assert met("paginated", only) == {"notes.txt": "file"}


@pytest.mark.parametrize("path", ["$HOME/a.py", "${HOME}/a.py", "~/a.py", "~", "~ana/a.py"])
def test_path_below_the_home_is_not_a_file(path: str):
    script = f"cat {path}"
    step = ran(command=["bash", "-lc", script], parsed_cmd=parsed(("read", path)))

    assert met("paginated", step) == {script: "command"}
    assert met("legacy", answered("exec_command", {"cmd": script})) == {script: "command"}
    assert met("legacy", answered("view_image", {"path": path})) == {}
    assert met("legacy", custom("apply_patch", patch_text(add=path))) == {path: "file"}


@pytest.mark.parametrize(
    ("script", "code", "expected"),
    [
        ("cat > a.py <<'E'\nx\nE", 0, {"a.py": "file"}),
        ("cat > a.py <<'E'\nx\nE", None, {"a.py": "file"}),
        ("rm a.py", 1, {"rm a.py": "command"}),
        ("cat a.py > b.py", 1, {"a.py": "file", "cat a.py > b.py": "command"}),
        ("make > log", 0, {"log": "file", "make > log": "command"}),
        ("make > log", 2, {"make > log": "command"}),
        ("cd d && sed -i s/a/b/ a.py", 0, {"d/a.py": "file"}),
        ("cp a.py b.py", 0, {"b.py": "file"}),
        ("mv a.py b.py", 0, {"a.py": "file", "b.py": "file"}),
    ],
)
def test_a_plain_write_counts_unless_the_call_failed(
    script: str, code: int | None, expected: Kinds
):
    status = "completed" if not code else "failed"
    step = ran(command=["bash", "-lc", script], exit_code=code, status=status)
    assert met("paginated", step) == expected

    ended = "x" if code is None else f"Exit code: {code}\nWall time: 1 seconds\nOutput:\nx"
    assert met("legacy", answered("shell_command", {"command": script}, ended)) == expected
    if code is not None:
        old = json.dumps({"output": "x", "metadata": {"exit_code": code}})
        assert met("legacy", answered("shell", {"command": ["sh", "-c", script]}, old)) == expected


@pytest.mark.parametrize(
    ("script", "hashes", "expected"),
    [
        ("cp a d", {}, {"d": "file"}),
        ("cp a d", {"d": "sha256:1"}, {"d": "file"}),
        ("cp a d", {"d": FOLDER_NOW}, {"cp a d": "command"}),
        ("mv a d", {"d": FOLDER_NOW}, {"mv a d": "command"}),
        ("mv a d; make", {"d": FOLDER_NOW}, {"mv a d; make": "command"}),
        ("cp /x/a d/b", {"d": FOLDER_NOW}, {"d/b": "file"}),
        ("cat > d <<E\nx\nE", {"d": FOLDER_NOW}, {"d": "file"}),
    ],
)
def test_target_that_is_a_folder_now_names_no_file(
    script: str, hashes: dict[str, str], expected: Kinds
):
    replay = read(rollout(session(), user("x"), ran(command=["bash", "-lc", script])))

    found = replay.checkpoint((), hashes).artifacts
    assert {uri: each.kind for uri, each in found.items()} == expected
    assert found.keys() <= {*replay.files(), script}
    assert all(each.hash != FOLDER_NOW for each in found.values())


@pytest.mark.parametrize(
    ("arguments", "uri"),
    [
        ({"cmd": "cat a.py"}, "web/a.py"),
        ({"cmd": "cat a.py", "workdir": "/home/ana/shop/lib"}, "lib/a.py"),
        ({"cmd": "cat a.py", "workdir": "lib"}, "web/lib/a.py"),
        ({"cmd": "cat a.py", "workdir": ""}, "web/a.py"),
        ({"cmd": "cd lib && cat a.py", "workdir": "/home/ana/shop/x"}, "x/lib/a.py"),
        ({"cmd": "cd /abs && cat a.py", "workdir": "/home/ana/shop/x"}, "/abs/a.py"),
    ],
)
def test_relative_path_starts_at_the_folder_of_the_call_then_of_the_turn(
    arguments: dict[str, object], uri: str
):
    step = answered("exec_command", arguments)

    assert met("legacy", turn_context("/home/ana/shop/web"), step) == {uri: "file"}


def test_without_any_folder_a_relative_path_stays_relative():
    step = answered("exec_command", {"cmd": "cat a"})

    assert set(artifacts(rollout(session("legacy", cwd=None), user("x"), step))) == {"a"}


def test_own_folder_of_an_item_is_a_file_uri():
    step = ran(parsed_cmd=parsed(("read", "a.py")), cwd="file:///home/ana/shop/with%20space")

    assert met("paginated", turn_context("/elsewhere"), step) == {"with space/a.py": "file"}


# --- what has no outcome -------------------------------------------------------------------------


def test_call_without_an_outcome_gives_nothing():
    waiting = [
        call("exec_command", {"cmd": "ls"}, "c1"),
        custom_call("apply_patch", patch_text(add="a.py"), "c2"),
        call("view_image", {"path": "a.png"}, "c3"),
        call("mcp__a__b", {}, "c4"),
    ]

    assert met("legacy", *waiting) == {}
    assert met("legacy", *waiting, output("c9", "ok")) == {}
    assert set(met("legacy", *waiting, output("c1", "ok"))) == {"ls"}


def test_call_without_a_name_or_a_number_gives_nothing():
    nameless: list[Step] = [
        response("function_call", arguments="{}", call_id="c1"),
        response("function_call", name="exec_command", arguments='{"cmd":"ls"}'),
        response("custom_tool_call", name="apply_patch", input=P),
        response("local_shell_call", action={"type": "exec", "command": ["ls"]}),
        response("function_call_output", output=DONE),
    ]

    assert met("legacy", *nameless, output("c1", DONE)) == {}


def test_unreadable_call_does_not_decide_its_number():
    """No Codex gives a number twice; damage and a second call of that number are two accidents."""
    asked = call("exec_command", {"cmd": "ls"}, "c1")
    steps = [user("x"), asked, output("c1", "x"), asked, output("c1", "x")]
    spoilt = rollout(session("legacy"), *steps).replace(b'"exec_', b'"\xffexec_', 1)

    assert set(read(spoilt).checkpoint((), {}).artifacts) == {"ls"}


def test_outcome_without_its_call_gives_nothing():
    assert met("legacy", output("c1", DONE), call("exec_command", {"cmd": "ls"}, "c1")) == {}


@pytest.mark.parametrize("text", ["aborted", "aborted by user after 3.1s", "", [], None, {}])
def test_interrupted_command_counts_as_run(text: object):
    assert met("legacy", answered("exec_command", {"cmd": "ls"}, text)) == {"ls": "command"}


@pytest.mark.parametrize("arguments", ["", "{", "[]", "null", '{"cmd":7}', '{"cmd":[1]}', "{}"])
def test_unreadable_arguments_give_nothing(arguments: str):
    for name in ("exec_command", "shell", "apply_patch", "view_image", "read_file"):
        assert met("legacy", answered(name, arguments, DONE)) == {}


def test_first_record_with_an_outcome_counts():
    told: dict[str, object] = {"call_id": "c1", "command": ["bash", "-lc", "cat told.py"]}
    asked = call("exec_command", {"cmd": "cat called.py"}, "c1")
    event_first = rollout(
        session("legacy"),
        user("x"),
        asked,
        event("exec_command_end", **told, parsed_cmd=parsed(("read", "told.py"))),
        output("c1", "once"),
        call("exec_command", {"cmd": "cat again.py"}, "c1"),
        output("c1", "twice"),
        event("patch_apply_end", call_id="c1", success=True, changes={"late.py": {}}),
    )
    answer_first = rollout(
        session("legacy"), user("x"), asked, output("c1", "once"), event("exec_command_end", **told)
    )

    assert artifacts(event_first) == {"told.py": ("file", 5)}
    assert artifacts(answer_first) == {"called.py": ("file", 5)}


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("failed to parse function arguments: missing field `command` at line 1", {}),
        ("unsupported call: shell<|channel|>", {}),
        ("exec command rejected by user", {}),
        ("aborted by user after 3.1s", {"make zap": "command"}),
        ("make: failed to parse function arguments: x", {"make zap": "command"}),
    ],
)
def test_call_whose_answer_says_that_nothing_ran_gives_nothing(answer: str, kinds: dict[str, str]):
    assert met("legacy", answered("shell", {"cmd": ["bash", "-lc", "make zap"]}, answer)) == kinds


def test_only_items_count_in_a_newer_file():
    other = [
        answered("exec_command", {"cmd": "cat history.py"}),
        custom("apply_patch", patch_text(add="history.py")),
        event("patch_apply_end", call_id="c7", success=True, changes={"event.py": {}}),
        event("exec_command_end", call_id="c8", command=["cat", "event.py"]),
        event("view_image_tool_call", call_id="c9", path="event.png"),
    ]
    assert met("paginated", *other) == {}


def test_items_do_not_count_in_an_older_file():
    lines = [
        {"type": "FileChange", "id": "c1", "changes": {"a.py": None}, "status": "completed"},
        {"type": "CommandExecution", "id": "c2", "command": ["ls"], "status": "completed"},
        {"type": "UserMessage", "id": "u9", "content": [{"type": "text", "text": "no"}]},
    ]
    told = [event("item_completed", thread_id="x", turn_id="t1", item=line) for line in lines]

    assert met("legacy", *told) == {}
    assert task(rollout(session("legacy"), user("yes"), *told)) == ("yes", "seq:3")


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy"])
@pytest.mark.parametrize(
    ("step", "files"),
    [
        (patch(add="a.py"), ["a.py"]),
        (patch(update="a.py"), ["a.py"]),
        (patch(delete="a.py"), ["a.py"]),
        (patch(move=("a.py", "b.py")), ["a.py", "b.py"]),
        (patch(add="a", update="b", delete="c", move=("d", "e")), ["a", "b", "c", "d", "e"]),
        (patch(add="a.py", done=False), []),
        (patch(update="/elsewhere/a.py"), ["/elsewhere/a.py"]),
        (patch(update="/home/ana/shop/../shop/./x/../a.py"), ["a.py"]),
    ],
)
def test_applied_patch_gives_its_files(form: Form, step: Step, files: list[str]):
    assert met(form, step) == dict.fromkeys(files, "file")


@pytest.mark.parametrize("status", ["failed", "declined", "inProgress", "in_progress", "new"])
def test_refused_patch_gives_nothing(status: str):
    changes: dict[str, object] = {"/home/ana/shop/a.py": {"type": "add"}}

    assert met("paginated", item("FileChange", id="c1", changes=changes, status=status)) == {}
    end = event("patch_apply_end", call_id="c1", changes=changes, success=False, status=status)
    assert met("legacy", custom_call("apply_patch", "x", "c1"), end, output("c1", DONE)) == {}


def test_item_without_a_status_counts_as_completed():
    step = item("FileChange", id="c1", changes={"/home/ana/shop/a.py": {}})

    assert met("paginated", step) == {"a.py": "file"}


@pytest.mark.parametrize(
    "step",
    [
        custom("apply_patch", P),
        custom("applypatch", P),
        answered("apply_patch", {"input": P}, DONE),
        answered("apply_patch", {"patch": P}, DONE),
        answered("shell", {"command": ["apply_patch", P]}, DONE),
        answered("shell", {"command": ["bash", "-lc", HEREDOC]}, DONE),
        answered("exec_command", {"cmd": f"cd /home/ana/shop && {HEREDOC}"}, DONE),
        answered("shell_command", {"command": f"apply_patch '{P}'"}, DONE),
        ran(command=["bash", "-lc", HEREDOC], exit_code=0),
    ],
)
def test_patch_is_recognised_by_any_tool_name(step: Step):
    assert met("legacy", step) | met("paginated", step) == {"a.py": "file"}


def test_command_that_fails_to_apply_a_patch_gives_nothing():
    argv = ["bash", "-lc", HEREDOC]

    assert met("paginated", ran(command=argv, exit_code=1, status="failed")) == {}
    assert met("legacy", answered("shell", {"command": argv}, "error: no such file")) == {}


def test_command_that_does_more_than_apply_a_patch_is_a_command():
    command = f"{HEREDOC}\ncat b.py"

    both = {" ".join(command.split()): "command", "b.py": "file"}
    assert met("legacy", answered("exec_command", {"cmd": command}, "no")) == both
    assert met("legacy", answered("exec_command", {"cmd": command}, DONE)) == both | {
        "a.py": "file"
    }


@pytest.mark.parametrize(
    ("fields", "applied"),
    [
        ({"exit_code": 0}, True),
        ({"exit_code": 0, "aggregated_output": DONE}, True),
        ({"exit_code": 1, "status": "failed", "aggregated_output": f"{DONE}1 failed"}, True),
        ({"exit_code": 0, "aggregated_output": "no such file\n2 passed"}, False),
        ({"exit_code": 1, "status": "failed"}, False),
    ],
)
def test_output_decides_whether_a_patch_among_other_parts_was_applied(
    fields: dict[str, object], *, applied: bool
):
    script = f"apply_patch <<'E' && pytest\n{P}\nE"
    found = met("paginated", ran(command=["bash", "-lc", script], **fields))

    assert found == {" ".join(script.split()): "command"} | ({"a.py": "file"} if applied else {})


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_shown_file_is_recorded_as_a_file(form: Form):
    assert met(form, image("/home/ana/pictures/a.png")) == {"/home/ana/pictures/a.png": "file"}
    assert met(form, turn_context("/home/ana/shop/web"), image("/home/ana/shop/a.png")) == {
        "a.png": "file"
    }


def test_files_that_older_tools_read_are_files():
    step = answered("read_file", {"file_path": "/home/ana/shop/a.py", "offset": 1}, "L1: x")
    assert met("legacy", step) == {"a.py": "file"}

    shown = event("view_image_tool_call", call_id="c1", path="/home/ana/shop/a.png")
    assert met("legacy", call("view_image", {"path": "b.png"}, "c1"), shown) == {"a.png": "file"}


def test_path_equal_to_the_base_is_not_a_file():
    assert met("paginated", item("ImageView", id="c1", path="/home/ana/shop/")) == {}
    assert met("paginated", item("ImageView", id="c1", path="/home/ana/shop/x/..")) == {}


def test_name_over_the_limit_is_counted_and_left_out():
    replay = read(rollout(session(), user("x"), patch(add="d/" * 600 + "a.py"), patch(add="b.py")))

    assert set(replay.checkpoint((), {}).artifacts) == {"b.py"}
    assert replay.state.observations.left_out == 1


def test_control_characters_in_a_name_are_encoded_and_its_file_is_not_hashed():
    data = rollout(session(), user("x"), patch(add="a\nb\u202e.py"), patch(add="c.py"))

    assert set(artifacts(data)) == {"a%0Ab%E2%80%AE.py", "c.py"}
    assert read(data).files() == ("c.py",)
    hashes = {"a%0Ab%E2%80%AE.py": "sha256:1", "c.py": "sha256:2"}
    found = read(data).checkpoint((), hashes).artifacts
    assert [each.hash for _, each in sorted(found.items())] == [None, "sha256:2"]


# --- other tools ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_output_of_another_tool_is_named_by_tool_and_call(form: Form):
    data = rollout(session(form), user("x"), mcp("docs", "find.it", "found\nit"))

    (found,) = checkpoint(data).artifacts.values()

    assert (found.uri, found.kind, found.hash) == (
        *("docs.find.it/c1", "tool_output"),
        sha("found\nit"),
    )


@pytest.mark.parametrize(
    ("step", "uri", "text"),
    [
        (answered("mcp__docs__find", {}, "x"), "docs.find/c1", "x"),
        (answered("find", {}, "x", namespace="mcp__docs"), "docs.find/c1", "x"),
        (answered("find", {}, "x", namespace="mcp__docs__"), "docs.find/c1", "x"),
        (answered("spawn_agent", {}, "x"), "spawn_agent/c1", "x"),
        (answered("mcp__odd", {}, "x"), "mcp__odd/c1", "x"),
        (answered("grep_files", {"pattern": "x"}, "x"), "grep_files/c1", "x"),
        (answered("t", {}, [{"type": "input_text", "text": "a"}, {"text": "b"}]), "t/c1", "a\nb"),
        (answered("t", {}, {"content": "old", "success": True}), "t/c1", "old"),
        (answered("t", {}, "\ud83d"), "t/c1", "\ufffd"),
        (answered("t", {}, ""), "t/c1", None),
        (answered("t", {}, [{"type": "input_image", "image_url": "x"}]), "t/c1", None),
        (answered("t", "not json", "x"), "t/c1", "x"),
        (custom("t", "text", "x"), "t/c1", "x"),
        (answered("a\nb", {}, "x"), "a%0Ab/c1", "x"),
    ],
)
def test_hash_of_a_tool_output_is_the_hash_of_its_text(step: Step, uri: str, text: str | None):
    (found,) = checkpoint(rollout(session("legacy"), user("x"), step)).artifacts.values()

    assert (found.uri, found.kind) == (uri, "tool_output")
    assert found.hash == (None if text is None else sha(text))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"Ok": {"content": [TEXT, {"type": "image", "data": "AA"}, TEXT]}}, "x\nx"),
        ({"Ok": {"content": [TEXT], "structuredContent": {"a": 1}}}, "x"),
        ({"Ok": {"content": []}}, None),
        ({"Err": "no such tool"}, None),
        (None, None),
    ],
)
def test_event_of_an_mcp_tool_counts_before_its_answer(result: object, text: str | None):
    data = rollout(
        session("legacy"),
        user("x"),
        call("find", {}, "c1", namespace="mcp__docs"),
        event("mcp_tool_call_end", call_id="c1", invocation=CALLED, result=result),
        output("c1", "Wall time: 0.1 seconds\nOutput:\nx"),
    )

    (found,) = checkpoint(data).artifacts.values()
    assert (found.uri, found.last_observed_seq) == ("docs.find/c1", 5)
    assert found.hash == (None if text is None else sha(text))


@pytest.mark.parametrize(
    ("kind", "named", "status", "uris"),
    [
        ("McpToolCall", {"server": "a", "tool": "b"}, "failed", ["a.b/c1"]),
        ("McpToolCall", {"server": "a", "tool": "b"}, "inProgress", []),
        ("McpToolCall", {"server": "a", "tool": "b"}, "in_progress", []),
        ("McpToolCall", {"server": "a", "tool": "b"}, "declined", []),
        ("DynamicToolCall", {"tool": "ticket"}, "completed", ["ticket/c1"]),
        ("CollabAgentToolCall", {"tool": "spawn_agent"}, "completed", ["spawn_agent/c1"]),
    ],
)
def test_tool_that_ran_is_named_even_if_it_failed(
    kind: str, named: dict[str, str], status: str, uris: list[str]
):
    step = item(kind, id="c1", status=status, **named)

    assert met("paginated", step) == dict.fromkeys(uris, "tool_output")


@pytest.mark.parametrize(
    "step",
    [
        answered("update_plan", {"plan": []}),
        answered("write_stdin", {"session_id": 1, "chars": "x"}),
        answered("tool_search", {"query": "x"}),
        answered("wait", {"cell_id": "1"}),
        answered("new_context", {}),
        answered("get_context_remaining", {}),
        answered("memory_apply", {}, namespace="mcp__codex_checkpoints"),
        answered("memory_read", {}, namespace="mcp__memory"),
        answered("mcp__memory__memory_apply", {}),
        mcp("memory", "memory.apply", "accepted"),
        mcp("memory", "memory.read", "the view"),
        custom("exec", "const x = 1", "Script completed"),
    ],
)
@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_control_tools_and_our_own_leave_no_artifact(form: Form, step: Step):
    assert met(form, step) == {}


@pytest.mark.parametrize("key", ["path", "file", "file_path", "filepath", "filename"])
@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_tool_whose_arguments_name_a_file_counts_as_a_read(form: Form, key: str):
    replay = read(rollout(session(form), user("x"), mcp("fs", "read", "x", {key: "a.py"})))

    assert replay.files() == ("a.py",)
    assert set(replay.checkpoint((), {"a.py": "sha256:1"}).artifacts) == {"fs.read/c1", "a.py"}


@pytest.mark.parametrize("key", ["paths", "files"])
def test_a_tool_may_name_several_files(key: str):
    arguments = {key: ["a.py", "/home/ana/shop/d/b.py", 3], "query": "c.py"}
    known = {"a.py": "sha256:1", "d/b.py": "sha256:2", "c.py": "sha256:3"}
    replay = read(rollout(session("legacy"), user("x"), answered("t", arguments)))

    assert set(replay.checkpoint((), known).artifacts) == {"t/c1", "a.py", "d/b.py"}


@pytest.mark.parametrize(
    ("path", "now"),
    [
        ("gone.py", {}),
        ("d", {"d": FOLDER_NOW}),
        ("/etc/a.py", {"/etc/a.py": "sha256:1"}),
        ("../a.py", {"/home/ana/a.py": "sha256:1"}),
        ("~/a.py", {"~/a.py": "sha256:1"}),
    ],
)
def test_path_that_is_not_a_file_inside_the_base_now_was_not_read(path: str, now: dict[str, str]):
    replay = read(rollout(session("legacy"), user("x"), answered("t", {"path": path})))

    assert set(replay.checkpoint((), now).artifacts) == {"t/c1"}


def test_possible_read_evicts_nothing():
    named = item("McpToolCall", id="c1", server="a", tool="b", arguments={"paths": ["x", "y"]})
    replay = read(rollout(session(), user("x"), *many(255), named))

    found = replay.checkpoint((), {"y": "sha256:1"}).artifacts
    assert len(found) == 256
    assert {"y", "a.b/c1", "00001.png"} <= set(found)
    assert not {"x", "00000.png"} & set(found)


# --- code mode in older files --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "expected", "unread"),
    [
        ("await tools.exec_command({cmd: 'ls -l'})", {"ls -l": "command"}, 0),
        ('tools.exec_command({"cmd": `cat a.py`, workdir: "lib"})', {"lib/a.py": "file"}, 0),
        ("tools['view_image']({path: 'a.png'})", {"a.png": "file"}, 0),
        ("tools.mcp__docs__find({q: 1})", {"docs.find/c1": "tool_output"}, 0),
        ("tools.exec_command({cmd: name})", {}, 1),
        ("tools.exec_command({cmd: 'a' + b}); tools.exec_command({cmd: 'c'})", {"c": "command"}, 1),
        ("tools.write_stdin({session_id: 1}); tools.wait()", {}, 0),
        ("tools.update_plan({plan: 'no list'})", {}, 1),
        ("tools.exec({cmd: 'no'})", {}, 0),
        ("// tools.exec_command({cmd: 'no'})\n'tools.exec_command({})'", {}, 0),
        ("tools.apply_patch(`" + patch_text(add="a.py") + "`)", {"a.py": "file"}, 0),
    ],
)
def test_each_literal_call_of_a_script_counts_as_a_call(script: str, expected: Kinds, unread: int):
    data = rollout(
        session("legacy"), user("x"), custom("exec", script, f"Script completed\n{DONE}")
    )

    assert {uri: kind for uri, (kind, _) in artifacts(data).items()} == expected
    assert read(data).state.unread_calls == unread


def test_script_counts_in_older_files_and_its_patch_if_it_succeeded():
    script = "tools.apply_patch(`" + patch_text(add="a.py") + "`)"

    assert met("legacy", custom("exec", script, "Script failed\nno such file")) == {}
    assert met("legacy", custom_call("exec", script, "c1")) == {}
    assert met("paginated", custom("exec", "tools.exec_command({cmd: 'ls'})", "done")) == {}


# --- what is kept --------------------------------------------------------------------------------


def shown(name: str) -> Step:
    return item("ImageView", id="c1", path=f"/home/ana/shop/{name}")


def many(count: int) -> list[Step]:
    """Touch as many files, in as many records."""
    return [shown(f"{n:05}.png") for n in range(count)]


@pytest.mark.parametrize("count", [255, 256, 257, 1000])
def test_most_recently_seen_artifacts_are_kept(count: int):
    found = checkpoint(rollout(session(), user("x"), *many(count))).artifacts

    assert set(found) == {f"{n:05}.png" for n in range(max(0, count - 256), count)}


def test_among_artifacts_of_one_record_the_last_names_are_kept():
    changes = {name: {"type": "add"} for name in [f"/home/ana/shop/{n:03}" for n in range(300)]}
    step = item("FileChange", id="c1", changes=changes, status="completed")
    data = rollout(session(), user("x"), *many(3), step)

    assert set(checkpoint(data).artifacts) == {f"{n:03}" for n in range(44, 300)}


def test_file_seen_again_is_kept_as_the_newest():
    data = rollout(session(), user("x"), *many(200), shown("00000.png"), *many(300)[200:])

    found = checkpoint(data)

    assert "00000.png" in found.artifacts
    assert "00001.png" not in found.artifacts
    assert len(found.artifacts) == 256


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 99])
def test_recent_artifacts_are_distinct_and_newest_first(limit: int):
    changes: dict[str, object] = {"/home/ana/shop/z": {}, "/home/ana/shop/y": {}}
    two = item("FileChange", id="c9", status="completed", changes=changes)
    data = rollout(session(), user("x"), *map(shown, "abab"), two)

    found = checkpoint(data, limits=Limits(max_recent_artifacts=limit))

    assert list(found.recent_artifacts) == ["y", "z", "b", "a"][:limit]
    assert set(found.artifacts) == {"a", "b", "y", "z"}


@pytest.mark.parametrize("limit", [256, 4])
def test_commands_that_only_look_are_evicted_first(limit: int):
    steps = [shown("a"), *(shell(f"ls {n}") for n in range(300)), shell("make"), shell("rg x")]
    found = checkpoint(
        rollout(session(), user("x"), *steps), limits=Limits(max_artifacts_total=limit)
    )

    assert len(found.artifacts) == limit
    assert {"a", "make", "rg x", "ls 299"} <= set(found.artifacts)


def test_looks_and_chores_are_not_recent_artifacts():
    scripts = ("ls", "make", "git diff", "rg x > hits", "git commit -m x", "mkdir b", "npm test")
    steps = [shown("a"), *map(shell, scripts)]
    found = checkpoint(rollout(session(), user("x"), *steps))

    assert list(found.recent_artifacts) == ["npm test", "hits", "make", "a"]
    assert {"ls", "git diff", "git commit -m x"} <= set(found.artifacts)


def test_session_read_in_chunks_keeps_the_same_artifacts():
    steps: list[Step] = [shown("a.png"), shell("make")]
    for n in range(300):
        steps += [shell(f"ls {n}"), shell(f"echo {n} > f{n % 9}"), shell(f"cp a b{n}")]
    data = rollout(session(), user("x"), *steps, *many(20))
    whole, pieces = read(data), Replay()
    for line in data.splitlines(keepends=True):
        pieces.feed(line)
        pieces.checkpoint((), {})

    now = {f"b{n}": FOLDER_NOW for n in range(100)}
    assert pieces.checkpoint((), now) == whole.checkpoint((), now)
    assert "make" in whole.checkpoint((), now).artifacts


def test_later_observation_decides_the_kind_of_a_uri():
    command = ran(command=["bash", "-lc", "a.py"])

    assert met("paginated", command, shown("a.py")) == {"a.py": "file"}
    assert met("paginated", shown("a.py"), command) == {"a.py": "command"}


def test_neither_a_file_nor_a_command_keeps_a_hash_of_its_own():
    steps = (shell("ls"), patch(delete="a.py"), mcp("d", "f", "t"))
    replay = read(rollout(session(), user("x"), *steps))
    known = {"ls": "sha256:1", "a.py": "sha256:2", "d.f/c3": "sha256:3"}

    for hashes, of_file in ((known, "sha256:2"), ({}, None)):
        found = replay.checkpoint((), hashes).artifacts
        assert [found[uri].hash for uri in known] == [None, of_file, sha("t")]


def test_many_pending_calls_drop_the_oldest():
    calls = [call("exec_command", {"cmd": f"echo {n}"}, f"c{n}") for n in range(3000)]

    assert set(met("legacy", *calls, *[output(f"c{n}", "x") for n in (0, 2999)])) == {"echo 2999"}


def test_oldest_form_of_a_call_is_read():
    action = {"type": "exec", "command": ["cat", "a.py"], "working_directory": f"{FOLDER}/d"}
    lines = [
        {"type": "local_shell_call", "call_id": None, "id": "l1", "action": action},
        {"type": "function_call_output", "call_id": "l1", "output": "x"},
    ]
    data = rollout(session("bare"), user("x"), *(raw(to_line(line)) for line in lines))

    assert set(artifacts(data)) == {f"{FOLDER}/d/a.py"}


def test_running_task_shows_its_artifacts_so_far():
    assert set(artifacts(rollout(session(), started(), user("x"), shell("ls")))) == {"ls"}


def test_order_of_keys_in_a_change_does_not_matter():
    changes = {
        f"{FOLDER}/./d/../a.py": {"type": "add", "content": "x\n"},
        f"{FOLDER}/a.py": {"type": "update", "move_path": f"{FOLDER}/moved.py"},
    }

    def seen(order: list[str]) -> object:
        given = {path: changes[path] for path in order}

        def step(writer: Writer) -> None:
            writer.item("FileChange", None, id="c1", changes=given, status="completed")

        found = read(rollout(session("paginated"), user("x"), step))
        return found.checkpoint((), {"a.py": "sha256:7631", "moved.py": None})

    assert seen([*changes]) == seen([*reversed(changes)])
