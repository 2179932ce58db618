"""Restores through the real doors: the branch, the deferred parts, the records."""

import json
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bookkeeping import ORDER, faults
from codex_checkpoints.core.fields import digest_of
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.restore.restore import RestoreResult, RestoreWork
from homes import Home, chat, go_on, refusal, snapshot, thread
from peer import Peer
from restore_values import sections_in
from restores import MODES, marked, put_fork, restore, state
from rollouts import (
    Form,
    assistant,
    compacted,
    patch,
    plan,
    rollback,
    rollout,
    session,
    shell,
    tokens,
    turn,
    user,
)
from updates import fact

Json = dict[str, Any]

FORMS: tuple[Form, ...] = ("paginated", "legacy", "bare")
SAID = "assistant-words"
OUTPUT = "output-words"
LATER = "later-words"
BODY = "body-of-the-file"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path)


def a_home(root: Path, form: Form = "paginated") -> Home:
    """Hold a session of three turns; its first read one file and planned, its second wrote one."""
    home = Home(root)
    shop = home.user / "shop"
    shop.mkdir()
    (shop / "a.py").write_text(f"one\ntwo {BODY}\nthree\n")
    (shop / "b.py").write_text("x\n")
    head = session(form, thread=thread(1), cwd=str(shop))
    home.put(rollout(head, *three_turns()))
    return home


def three_turns() -> tuple[Any, ...]:
    return (
        turn(
            user("Fix the login"),
            plan(("read", True), ("repair", False)),
            shell("sed -n 1,2p a.py", OUTPUT, reads=["a.py"], call="read"),
            assistant(SAID),
        ),
        turn(user("And the logout"), patch(add="b.py", call="edit"), tokens(90_000)),
        turn(user(LATER), assistant("Done.")),
    )


def restored(home: Home, mode: Any = "hard", turn: str = "2", **wish: Any) -> RestoreResult:  # noqa: ANN401 - as `restore`
    with home.house() as house:
        name = marked(house.sessions, turn=turn, label="before the rewrite")
        return restore(house.sessions, name, mode, **wish)


def branch(home: Home, done: RestoreResult) -> Path:
    (path,) = home.root.glob(f"sessions/**/rollout-*{done.record.session_id}.jsonl")
    return path


def records(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def ours(home: Home) -> str:
    """Return everything that was written down of restores: all of our files but checkpoints."""
    files = [path for path in home.state.rglob("*.jsonl") if path.is_file()]
    return "\n".join(path.read_text() for path in files)


def shown(home: Home, session: str, turn: str | None = None) -> Json:
    with home.house() as house:
        return state(house.sessions, session, turn)


def told(home: Home, kind: str) -> list[Json]:
    """Return the events of a kind."""
    return [event for event in home.audited() if event["type"] == kind]


def kinds(home: Home) -> list[str]:
    return [event["type"] for event in home.audited()]


# --- what a branch is ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", MODES)
def test_branch_begins_with_the_state_of_the_turn_and_the_source_is_unchanged(
    tmp_path: Path, form: Form, mode: str
):
    home = a_home(tmp_path, form)
    before = home.path().read_bytes()

    done = restored(home, mode)

    assert shown(home, done.record.session_id) == shown(home, thread(1), "2")
    assert home.path().read_bytes() == before
    lines = records(branch(home, done))
    assert [line["type"] for line in lines].count("session_meta") == 1
    assert all({"timestamp", "type", "payload"} <= line.keys() for line in lines)
    head = lines[0]["payload"]
    assert (head["originator"], head["forked_from_id"]) == ("codex-checkpoints", thread(1))
    assert head["history_mode"] == ("paginated" if form == "paginated" else "legacy")
    assert head["source"] in {"cli", "vscode"}


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_soft_branch_holds_the_lines_of_the_source_up_to_the_turn(tmp_path: Path, form: Form):
    home = a_home(tmp_path, form)

    done = restored(home, "soft", "2")

    source = home.path().read_bytes().splitlines()
    own = branch(home, done).read_bytes().splitlines()
    assert own[1:] == source[1 : len(own)]
    assert json.loads(own[-1])["payload"]["type"] == "task_complete"
    assert LATER.encode() not in b"".join(own)
    assert (done.record.context_reset, done.pack, done.record.pack) == (False, None, None)
    assert done.record.deferred == ()


def test_soft_branch_of_a_fork_is_one_sequence_without_a_second_head(home: Home):
    put_fork(home, home.user / "shop")
    with home.house() as house:
        name = marked(house.sessions, thread(2), None)
        done = restore(house.sessions, name, "soft", thread(2))

    lines = records(branch(home, done))
    assert [line["type"] for line in lines].count("session_meta") == 1
    assert [line["ordinal"] for line in lines] == list(range(len(lines)))
    assert shown(home, done.record.session_id) == shown(home, thread(2))


def test_hard_branch_holds_the_pack_and_no_conversation(home: Home):
    done = restored(home, window=0)

    path = branch(home, done)
    text = path.read_text()
    head, replaced, started, _, complete, _ = records(path)
    assert [line["ordinal"] for line in records(path)] == [0, 1, 2, 3, 4, 5]
    items = replaced["payload"]["replacement_history"]
    assert [item["content"][0]["text"] for item in items] == [done.pack]
    assert done.pack is not None
    assert sections_in(done.pack)[0][0] == "[NOTICE]"
    for planted in (SAID, OUTPUT, LATER, BODY, "Fix the login"):
        assert planted not in text
        assert planted not in ours(home)
    assert "And the logout" in text  # the task is state
    ends = [started["payload"]["type"], complete["payload"]["type"]]
    assert ends == ["task_started", "task_complete"]
    assert head["payload"]["context_window"]["window_id"] != replaced["payload"]["window_id"]
    assert (done.record.context_reset, done.record.tokens.before) == (True, 90_000)
    assert (done.record.tokens.after or 0) < 1_000
    windows = home.json("windows", str(done.record.session_id))
    assert windows[-1]["tokensAfter"] == done.record.tokens.after


def test_size_of_a_hard_branch_is_one_count_that_leaves_out_codex_instructions(home: Home):
    head = session(cwd=str(home.user), base_instructions={"text": "Be plain. " * 4_000})
    home.put(rollout(head, turn(user("Fix the login")), tokens(90_000)))
    marker = home.json("mark", thread(1), "--turn", "1", "--label", "here")["checkpointId"]
    beside = "Plus Codex's own instructions, usually 6,000 to 18,000."
    command = ("restore", thread(1), marker, "--mode", "hard")

    preview = home.json(*command, "--dry-run")
    printed = home.run(*command, "--dry-run").stdout.decode()
    done = home.json(*command)

    (size,) = {each["tokensAfter"] for each in (preview, done)}
    assert size < 2_000
    assert f"→ {size:,} tokens. {beside}\n" in printed
    assert preview["besideText"] == done["besideText"] == beside
    branch_id = done["sessionId"]
    (row,) = (each for each in home.json("sessions") if each["sessionId"] == branch_id)
    assert row["contextTokens"] == size
    assert home.json("windows", branch_id)[-1]["tokensAfter"] == size
    details = home.run("restore-details", done["operationId"]).stdout.decode()
    assert beside in details
    assert home.json(*command[:-1], "soft", "--dry-run")["besideText"] is None


@pytest.mark.parametrize(("mode", "source"), [("hard", "estimated"), ("soft", "reported")])
def test_list_shows_the_size_of_a_branch_before_it_continues(home: Home, mode: str, source: str):
    done = restored(home, mode)
    (row,) = (each for each in home.json("sessions") if each["sessionId"] == done.record.session_id)

    assert row["contextTokens"] == done.record.tokens.after
    assert row["contextTokensSource"] == source
    assert row["contextWindow"] == 258_400


@pytest.mark.parametrize(
    ("name", "turn", "title", "task"),
    [
        (None, "2", "before the rewrite", "And the logout"),
        (None, "1", "before the rewrite: Fix the login", "Fix the login"),
        ("Doors", "1", "before the rewrite: Doors", "Fix the login"),
        ("Doors", "2", "before the rewrite: Doors", "And the logout"),
    ],
)
def test_title_of_a_hard_branch_is_its_label_and_the_name_of_its_source(
    home: Home, name: str | None, turn: str, title: str, task: str
):
    if name is not None:
        home.json("rename", thread(1), name)

    done = restored(home, turn=turn).record

    (row,) = [each for each in home.json("sessions") if each["sessionId"] == done.session_id]
    assert (row["title"], row["task"], row["forkedFrom"]) == (title, task, thread(1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [None, "Doors"])
def test_soft_branch_has_its_label_and_the_sources_title_in_every_list(
    tmp_path: Path, form: Form, name: str | None
):
    home = a_home(tmp_path, form)
    if name is not None:
        home.json("rename", thread(1), name)

    done = restored(home, "soft").record
    restored(home, "hard")

    title = f"before the rewrite: {name or 'Fix the login'}"
    (row,) = [each for each in home.json("sessions") if each["sessionId"] == done.session_id]
    assert row["title"] == title
    lines = records(home.root / "session_index.jsonl")
    listed = [(each["id"], each["thread_name"]) for each in lines if each["id"] != thread(1)]
    assert listed == [(done.session_id, title)]


def test_soft_branch_is_made_even_if_the_list_of_names_is_read_only(home: Home):
    (home.root / "session_index.jsonl").mkdir()

    done = restored(home, "soft").record

    assert kinds(home)[-1] == "RestoreCompleted"
    titles = {each["sessionId"]: each["title"] for each in home.json("sessions")}
    assert titles[done.session_id] == "Fix the login"


@pytest.mark.parametrize("mode", MODES)
def test_preview_shows_the_result_and_writes_nothing(home: Home, mode: str):
    name = home.json("mark", thread(1), "--label", "x", "--turn", "2")["checkpointId"]
    before = snapshot(home.root / "sessions", home.state / "sessions")
    wish = ("restore", thread(1), name, "--mode", mode)

    preview = home.json(*wish, "--dry-run")

    assert snapshot(home.root / "sessions", home.state / "sessions") == before
    assert not (home.state / "audit.jsonl").exists()
    done = home.json(*wish)
    new = dict.fromkeys(("operationId", "sessionId", "restoredAt", "resume"))
    assert preview == done | new | {"dryRun": True, "lines": preview["lines"]}
    assert done["resume"] == f"codex resume {done['sessionId']}"
    assert done["sourceTurn"] == {"sessionId": thread(1), "turnId": "t2"}
    assert done["restoredAt"].endswith("Z")


# --- what goes over ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_earlier_notes_are_transferred_and_later_ones_are_not(
    home: Home, mode: str, tmp_path: Path
):
    home.remember([fact("port", seq=5, turn="t1"), fact("late", seq=30, turn="t3")])

    name = restored(home, mode, "1").record.session_id

    def notes(session_id: str) -> list[str]:
        return [note["id"] for note in home.json("notes", session_id)]

    assert notes(name) == ["port"]
    payload = tmp_path / "own.json"
    own = {"kind": "fact", "key": "own", "value": "8080"}
    payload.write_text(json.dumps(own | {"evidence": {"source": "user", "ref": "task"}}))
    home.json("apply", name, str(payload))
    assert (notes(name), notes(thread(1))) == (["own", "port"], ["late", "port"])


@pytest.mark.parametrize("mode", MODES)
def test_markers_and_pins_are_transferred(home: Home, mode: str):
    home.json("pin", thread(1), "a.py#L1-L1")
    home.json("mark", thread(1), "--label", "end")
    done = restored(home, mode)

    copied = home.json("marks", done.record.session_id)

    own = done.record.session_id if mode == "soft" else thread(1)
    later = [] if mode == "soft" else [("end", thread(1))]
    assert [(each["label"], each["sessionId"]) for each in copied] == [
        *later,
        ("before the rewrite", own),
    ]
    (event,) = told(home, "StateTransferred")
    assert event["markers"] == len(copied)
    (pin,) = home.json("pin", done.record.session_id)
    known = {key: pin[key] for key in pin if pin[key] is not None}
    assert known == {"uri": "a.py", "start": 1, "end": 1}
    wish = ("restore", done.record.session_id, copied[-1]["checkpointId"], "--mode", "hard")
    assert home.json(*wish)["sourceSessionId"] == own


def test_files_and_lines_are_named_with_their_flags(home: Home):
    done = restored(home)

    files = {each.uri: each for each in done.record.references.files}
    assert (files["a.py"].touched, files["a.py"].sent_to_model) == (False, True)
    assert (files["b.py"].touched, files["b.py"].sent_to_model) == (True, False)
    data = (home.user / "shop/a.py").read_bytes()
    assert (files["a.py"].size, files["a.py"].hash) == (len(data), digest_of(data))
    (chunk,) = done.record.references.chunks
    first_two = b"".join(data.splitlines(keepends=True)[:2])
    assert (chunk.chunk_id, chunk.hash) == ("a.py#L1-L2", digest_of(first_two))
    assert any(each.kind == "patch" for each in done.record.references.system)


def a_session_with(home: Home, *turns: Any) -> None:  # noqa: ANN401 - as `rollout`
    home.put(rollout(session(thread=thread(1), cwd=str(home.user / "shop")), *turns))


def test_pack_has_the_whole_task_and_the_last_three_messages(home: Home):
    task = "Repair the login. " + "All of this counts. " * 20 + "Never touch tests/."
    said = [f"message {n}" for n in range(3)]
    a_session_with(home, *(turn(user(text), assistant(SAID)) for text in (*said, task)))

    pack = restored(home, turn="4").pack or ""

    assert f"\n[TASK]\n- {task}\n" in pack
    assert f"\n[USER_MESSAGES]\n- message 1\n- message 2\n- {task}\n" in pack
    assert "message 0" not in pack
    assert SAID not in pack
    assert "Never touch tests/." not in ours(home)


def test_window_of_a_compacted_session_continues_in_its_source(home: Home):
    made = home.json("compact", thread(1), "--into", "new", "--force")["sessionId"]
    (path,) = home.root.glob(f"sessions/**/rollout-*{made}.jsonl")
    go_on(path, made, turn(user("Here at last"), assistant("Done."), name="n1"))
    marker = home.json("mark", made, "--label", "x")["checkpointId"]

    pack = home.json("restore", made, marker, "--mode", "hard", "--dry-run")["pack"]

    assert f"\n[USER_MESSAGES]\n- And the logout\n- {LATER}\n- Here at last\n" in pack


def test_evicted_notes_are_deferred_as_evicted(home: Home):
    noted = [fact(f"k{n:02}", "v", seq=3, turn="t1") for n in range(66)]
    updated = home.checkpoint().with_name("updates.jsonl")
    updated.parent.mkdir(parents=True)
    updated.write_text("".join(f"{json.dumps(line)}\n" for line in noted))

    done = restored(home).record

    assert [each.id for each in done.deferred if each.reason == "evicted"] == [
        "fact:k00",
        "fact:k01",
    ]


def test_commands_of_a_pack_have_their_last_exit_code(home: Home):
    checked = (shell("pytest -q", exit_code=1), patch(update="a.py"), shell("pytest -q"))
    hidden = shell("printf KEY=v > .env", exit_code=1)
    a_session_with(home, turn(user("Repair it"), *checked, hidden, shell("npm ci", exit_code=7)))

    done = restored(home, turn="1")

    assert "\n[COMMANDS]\n- exit 7: npm ci\n- exit 0: pytest -q\n" in (done.pack or "")
    assert ".env" not in (done.pack or "")
    (left,) = done.record.deferred
    assert (left.part, left.reason) == ("commands", "filtered")


@pytest.mark.parametrize("form", FORMS)
def test_pack_does_not_continue_the_task_of_an_ended_turn(tmp_path: Path, form: Form):
    pack = restored(a_home(tmp_path, form), turn="1").pack or ""

    assert "- The marked turn was answered, so its task may be done" in pack
    assert "go on with the task" not in pack.lower()


def test_pack_has_a_digest_up_to_the_turn_on_request(home: Home):
    done = restored(home, turn="2", digest_tokens=400)

    pack, _, digest = (done.pack or "").partition("\n[SESSION_DIGEST v1]\n")
    assert SAID in digest
    assert LATER not in digest
    assert SAID not in pack
    assert "[SESSION_DIGEST" not in (restored(home, turn="2").pack or "")
    asked = home.run("restore", thread(1), "x", "--mode", "hard", "--digest-tokens", "40000")
    assert b"32,000" in asked.stderr


@pytest.mark.parametrize("mode", MODES)
def test_files_changed_after_the_turn_are_reported(home: Home, mode: RestoreMode):
    before, after = turn(user("One"), patch(update="a.py")), turn(user("Two"), patch(update="a.py"))
    gone = patch(add="gone.py"), patch(delete="gone.py")
    a_session_with(home, before, after, turn(user("Three"), patch(add="b.py"), *gone))

    done = restored(home, mode, turn="1")

    assert [(each.uri, each.then) for each in done.record.drift] == [
        ("a.py", "unknown:"),
        ("b.py", "unknown:"),
    ]
    assert [(each.code, each.count) for each in done.record.warnings] == [("drift", 2)]
    assert [each["uri"] for each in told(home, "DriftDetected")] == ["a.py", "b.py"]
    if mode == "hard":
        assert " changed)\n- file: b.py (changed after that turn)\n" in (done.pack or "")


def test_file_that_differs_from_the_session_is_reported_even_with_a_later_marker(home: Home):
    a_session_with(home, turn(user("One"), shell("cat a.py", "one\n", reads=["a.py"])))

    (drift,) = restored(home, turn="1").record.drift

    assert drift.uri == "a.py"
    assert (drift.then, drift.now) == (
        digest_of(b"one\n"),
        digest_of((home.user / "shop/a.py").read_bytes()),
    )


def test_pinned_words_are_in_the_pack_and_in_no_record(home: Home):
    home.json("pin", thread(1), "--text", "Ask before you touch tests/")
    later = home.json("recall", thread(1), "--query", LATER)[0]["ref"]
    home.json("pin", thread(1), "--message", later)

    done = restored(home, turn="2", digest_tokens=400)

    assert (done.pack or "").count("- text: Ask before you touch tests/\n") == 1
    assert ("pinned", f"message:{later}", "missing") in [
        (each.part, each.id, each.reason) for each in done.record.deferred
    ]
    assert "Ask before" not in (home.state / "audit.jsonl").read_text()


def test_details_name_differing_files_and_show_local_times(home: Home):
    a_session_with(home, turn(user("One"), patch(add="b.py")), turn(user("Two"), patch(add="c.py")))
    (home.user / "shop/b.py").rename(home.user / "shop/c.py")
    done = restored(home, "soft", turn="1").record

    east = {"TZ": "Asia/Kathmandu"}
    shown = home.run("restore-details", done.operation_id, env=east).stdout.decode()

    assert re.search(r"\nChanged since the marker \(1\)\n.*\n +.* c\.py\n", shown)
    assert re.search(r"\nNo longer there \(1\)\n.*\n +.* b\.py\n", shown)
    (utc, here), *_ = re.findall(r"\nContinue with context, (\S+) \(here (.+)\)\n", shown)
    assert utc == done.restored_at
    ahead = datetime.fromisoformat(f"{here}Z") - datetime.fromisoformat(utc)
    assert round(ahead / timedelta(minutes=15)) == 23, "5 hours 45"


def test_restore_names_its_operation_and_the_command_for_details(home: Home):
    marker = home.json("mark", thread(1), "--label", "x", "--turn", "1")["checkpointId"]

    shown = home.run("restore", thread(1), marker, "--mode", "hard").stdout.decode()

    (listed,) = home.json("restores")
    details = f"codex-checkpoints restore-details {listed['operationId']}"
    assert f"\nDetails: {details}" in shown


def test_restore_says_that_files_are_not_put_back_and_which_differ(home: Home):
    a_session_with(home, turn(user("One")), turn(user("Two"), patch(update="a.py")))
    marker = home.json("mark", thread(1), "--label", "x", "--turn", "1")["checkpointId"]

    shown = home.run("restore", thread(1), marker, "--mode", "soft").stdout.decode()

    assert "Your files are not changed." in shown
    assert "! 1 file changed since the marker's turn: a.py\n" in shown


@pytest.mark.parametrize("mode", MODES)
def test_audit_of_a_branch_has_every_event_of_its_restore(home: Home, mode: RestoreMode):
    (home.user / "shop/b.py").unlink()

    done = restored(home, mode)

    branches = home.json("audit", "--session", done.record.session_id)
    assert [event["type"] for event in branches] == kinds(home)
    (missing,) = (event for event in branches if event["type"] == "ArtifactMissing")
    assert missing["sessionId"] == done.record.session_id


def test_pinned_content_and_last_messages_may_enter_the_pack_and_no_record(home: Home):
    home.json("pin", thread(1), "a.py#L2-L2")

    done = restored(home, window=2)

    for text in (BODY, "Fix the login"):
        assert text in (done.pack or "")
        assert text not in ours(home)


@pytest.mark.parametrize("budget", [0, 1, 60])
def test_small_budget_never_fails_and_lists_omitted_parts(home: Home, budget: int):
    done = restored(home, budget=budget)

    record = done.record
    assert -(-len((done.pack or "").encode()) // 4) <= budget
    assert record.deferred
    assert {"pack_truncated"} <= {each.code for each in record.warnings}
    assert "PackTruncated" in kinds(home)
    assert shown(home, record.session_id) == shown(home, thread(1), "2")


def test_budget_above_any_record_holds_everything(home: Home):
    marker = home.json("mark", thread(1), "--label", "here")["checkpointId"]

    done = home.json("restore", thread(1), marker, "--mode", "hard", "--budget", str(10**30))

    assert [each for each in done["deferred"] if each["reason"] == "budget"] == []


def test_preview_shows_the_contents_of_a_pack_for_any_budget(home: Home):
    name = home.json("mark", thread(1), "--label", "x", "--turn", "2")["checkpointId"]
    wish = ("restore", thread(1), name, "--mode", "hard", "--dry-run")

    lines = home.json(*wish)["lines"]

    for budget in (0, 60, 200, lines[-1]["tokens"]):
        preview = home.json(*wish, "--budget", str(budget))
        held = [line for line in lines if line["tokens"] <= budget]
        assert preview["pack"] == "".join(f"{line['text']}\n" for line in held)
        assert preview["included"] == [
            {"part": line["part"], "id": line["id"]} for line in held if line["part"] is not None
        ]
        assert preview["lines"] == lines
    assert home.json("restore", thread(1), name, "--mode", "soft", "--dry-run")["lines"] == []


@pytest.mark.parametrize("share", [7, 9, 10])
def test_left_out_items_have_one_number_in_the_preview_and_all_reports(home: Home, share: int):
    name = home.json("mark", thread(1), "--label", "x", "--turn", "2")["checkpointId"]
    wish = ("restore", thread(1), name, "--mode", "hard")
    whole = home.json(*wish, "--dry-run")["lines"][-1]["tokens"]
    wish = (*wish, "--budget", str(whole * share // 10))

    preview = home.json(*wish, "--dry-run")
    texts = [home.here(*each).stdout.decode() for each in ((*wish, "--dry-run"), wish)]
    (done,) = home.json("restores", thread(1))
    details = home.here("restore-details", done["operationId"]).stdout.decode()

    count = sum(each["reason"] == "budget" for each in preview["deferred"])
    assert (count == 0) == (share == 10)
    found = [re.findall(r"(\d+) items? left out of the pack", each) for each in (*texts, details)]
    assert found == ([[str(count)]] * 3 if count else [[]] * 3)
    listed = re.findall(r"^Left out of the pack \((\d+)\)$", details, re.MULTILINE)
    assert listed == ([str(count)] if count else [])
    assert f"In the pack ({len(preview['included'])})" in details


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("share", [0, 5, 8, 10])
def test_parts_of_a_report_add_up_to_its_items_and_to_the_preview(
    home: Home, mode: RestoreMode, share: int
):
    (home.user / "shop/long.txt").write_text("line\n" * 2_000)
    for pin in ("a.py#L1-L1", "long.txt", "a.py#L900-L901"):
        home.json("pin", thread(1), pin)
    marker = home.json("mark", thread(1), "--label", "x", "--turn", "2")["checkpointId"]
    wish = ("restore", thread(1), marker, "--mode", mode, "--digest-tokens", "500")
    if mode == "hard":
        whole = home.json(*wish, "--dry-run")["lines"][-1]["tokens"]
        wish = (*wish, "--budget", str(whole * share // 10))
    preview = home.json(*wish, "--dry-run")
    done = home.json(*wish)

    details = home.run("restore-details", done["operationId"]).stdout.decode()

    carried = details.partition("\nCarried over\n")[2].partition("  Excerpts")[0]
    if mode == "soft":
        (total,) = re.findall(r"^ +Items +(\d+)$", carried, re.MULTILINE)
        parts = re.findall(r"^ +(?! |Items).+? {2,}(\d+)$", carried, re.MULTILINE)
        assert int(total) == sum(map(int, parts)) == len(preview["included"])
        return
    ((kept, of),) = re.findall(r"^ +Items in the pack +(\d+) of (\d+)$", carried, re.MULTILINE)
    parts = re.findall(r"(\d+) in the pack, (\d+) left out$", carried, re.MULTILINE)
    assert int(kept) == sum(int(inside) for inside, _ in parts)
    assert int(of) - int(kept) == sum(int(outside) for _, outside in parts)
    items = {(line["part"], line["id"]) for line in preview["lines"] if line["part"] is not None}
    outside = {
        (each["part"], each["id"]) for each in preview["deferred"] if each["reason"] == "budget"
    }
    assert (int(kept), int(of)) == (len(items - outside), len(items | outside))
    assert (f"In the pack ({kept})" in details) == (kept != "0")


@pytest.mark.parametrize("mode", MODES)
def test_vanished_file_of_the_turn_is_named_if_only_later_turns_touched_it(
    home: Home, mode: RestoreMode
):
    made = patch(add="new.py"), patch(delete="new.py"), shell("touch made.py")
    later = patch(delete="README.md"), patch(update="old.py"), patch(move=("from.py", "to.py"))
    a_session_with(home, turn(user("One")), turn(user("Two"), *later, *made))

    done = restored(home, mode, turn="1")

    assert [each.uri for each in done.record.missing] == ["README.md", "from.py", "old.py"]
    assert [each["uri"] for each in told(home, "ArtifactMissing")] == [
        *("README.md", "from.py", "old.py")
    ]
    if mode == "hard":
        assert "- file: README.md (vanished after that turn)\n" in (done.pack or "")


def test_budget_and_user_come_from_the_settings(home: Home):
    home.config('restoreBudgetTokens = 80\nuserId = "ana"\norgId = "shop"\n')

    done = restored(home)

    assert done.record.pack is not None
    assert done.record.pack.budget == 80
    assert {(event["userId"], event["orgId"]) for event in home.audited()} == {("ana", "shop")}


def test_drift_and_missing_files_since_the_marker_are_reported(home: Home):
    with home.house() as house:
        name = marked(house.sessions)
        (home.user / "shop/a.py").write_text("another")
        (home.user / "shop/b.py").unlink()
        done = restore(house.sessions, name, "hard")

    (drift,), (missing,) = told(home, "DriftDetected"), told(home, "ArtifactMissing")
    assert (drift["uri"], missing["uri"]) == ("a.py", "b.py")
    assert drift["then"] != drift["now"]
    assert {each.code for each in done.record.warnings} >= {"drift", "missing_files"}


@pytest.mark.parametrize("mode", MODES)
def test_file_missing_before_the_marker_is_reported(home: Home, mode: str):
    (home.user / "shop/b.py").unlink()

    done = restored(home, mode).record

    (event,) = told(home, "ArtifactMissing")
    assert (event["uri"], event["then"]) == ("b.py", "unknown:")
    assert (done.warnings[0].code, done.warnings[0].count) == ("missing_files", 1)
    assert (done.warnings[1].code, done.not_compared) == ("not_compared", ("a.py",))


def test_file_deleted_or_moved_by_the_session_is_not_missing(home: Home):
    head = session(cwd=str(home.user / "shop"))
    away = turn(user("Away with it"), patch(delete="b.py"), patch(move=("old.py", "a.py")))
    home.put(rollout(head, *three_turns(), away))
    (home.user / "shop/b.py").unlink()

    done = restored(home, turn="4").record

    assert {each.uri for each in done.references.files} == {"a.py", "b.py", "old.py"}
    assert (done.missing, done.not_compared) == ((), ("a.py",))
    assert [each.code for each in done.warnings] == ["not_compared"]


def test_files_in_a_missing_folder_are_not_reported(home: Home):
    shutil.rmtree(home.user / "shop")

    assert restored(home).record.missing == ()


@pytest.mark.parametrize(
    ("pin", "why", "words"),
    [
        ("big.txt#L3-L4", "bound", "too large to be read"),
        ("a.py#L90-L99", "no_lines", "it has no such lines"),
        ("out.txt", "unreadable", "not to be read"),
        ("gone.md", "missing", "not there"),
    ],
)
def test_existing_pinned_file_is_never_reported_as_missing(
    home: Home, pin: str, why: str, words: str
):
    home.config("hashLimitBytes = 1024\n")
    for name in ("big.txt", "out.txt", "gone.md"):
        (home.user / "shop" / name).write_text("line\n" * 1000)
    home.json("pin", thread(1), pin)
    (home.user / "elsewhere.txt").write_text("not of this folder\n")
    for name in ("out.txt", "gone.md"):
        (home.user / "shop" / name).unlink()
    (home.user / "shop/out.txt").symlink_to(home.user / "elsewhere.txt")

    done = restored(home)

    gone = [pin] if why == "missing" else []
    assert f"({words})\n" in (done.pack or "")
    assert [(each.id, each.reason) for each in done.record.deferred] == [
        ("step:s1", "filtered"),
        (pin, why),
    ]
    assert [event["uri"] for event in told(home, "ArtifactMissing")] == gone
    assert [each.count for each in done.record.warnings if each.code == "missing_files"] == (
        [1] if gone else []
    )


def test_pinned_file_known_by_size_and_time_is_reported(home: Home):
    home.config("hashLimitBytes = 1024\n")
    (home.user / "shop/big.txt").write_text("line\n" * 1000)
    home.json("pin", thread(1), "big.txt")

    done = restored(home)

    events = [(each["fallback"], each["uri"]) for each in told(home, "FallbackUsed")]
    assert events == [("weak_hash", "big.txt")]
    assert ("weak_hashes", 1) in [(each.code, each.count) for each in done.record.warnings]


def test_marker_of_a_rolled_back_turn_can_be_restored(tmp_path: Path):
    home = a_home(tmp_path, "legacy")
    with home.house() as house:
        name = marked(house.sessions, turn="3")
    before = shown(home, thread(1), "3")
    head = session("legacy", thread=thread(1), cwd=str(home.user / "shop"))
    home.put(rollout(head, *three_turns(), rollback(1), turn(user("otherwise"))))

    done = home.json("restore", thread(1), name, "--mode", "hard")

    assert [each["code"] for each in done["warnings"]] == ["detached_marker", "not_compared"]
    assert shown(home, done["sessionId"]) == before


def test_compacted_source_can_be_restored_to_an_earlier_turn(home: Home):
    head = session(cwd=str(home.user / "shop"))
    home.put(rollout(head, *three_turns(), compacted("m", []), turn(user("after"))))

    done = restored(home, "soft", "2")

    assert "compacted" not in {line["type"] for line in records(branch(home, done))}


# --- refusals ------------------------------------------------------------------------------------


TYPED = "what-was-typed"


def whose(home: Home) -> list[tuple[str, str | None, str | None]]:
    return [
        (each["type"], each["sourceSessionId"], each["checkpointId"]) for each in home.audited()
    ]


def failed(session: str | None, checkpoint: str | None = None) -> list[object]:
    return [(kind, session, checkpoint) for kind in ("RestoreRequested", "RestoreFailed")]


@pytest.mark.parametrize(
    ("named", "code", "session"),
    [
        (thread(1), "unknown_checkpoint", thread(1)),
        (thread(1)[:-1], "unknown_checkpoint", thread(1)),
        ("path", "unknown_checkpoint", thread(1)),
        (thread(2)[:-1], "unreadable_source", thread(2)),
        (f"{TYPED}-9", "unknown_session", None),
        (thread(1)[:8], "ambiguous_session", None),
    ],
)
def test_audit_of_a_refused_restore_has_the_whole_session_id(
    home: Home, named: str, code: str, session: str | None
):
    """What was typed is kept nowhere."""
    if code == "unreadable_source":
        home.path().unlink()
        home.put(b"no such packing", 2, form=".jsonl.zst")
    elif session is None:
        home.put(chat("another", 3), 3)
    named = str(home.path()) if named == "path" else named
    before = snapshot(home.root / "sessions")

    done = home.run("restore", named, TYPED, "--mode", "hard", "--json")

    assert json.loads(done.stdout)["error"]["code"] == home.audited()[-1]["code"] == code
    assert whose(home) == failed(session)
    if session == thread(1):
        assert home.json("audit", "--session", thread(1)) == home.audited()
        assert home.json("audit", "--session", thread(1)[:-1]) == home.audited()
    assert TYPED not in ours(home)
    with home.house() as house:
        assert faults(house.sessions) == []
    assert snapshot(home.root / "sessions") == before
    assert [path.name for path in home.state.rglob("*.jsonl")] == ["audit.jsonl"]


def test_restore_of_a_missing_turn_names_the_whole_id_of_its_marker(home: Home):
    marker = home.json("mark", thread(1), "--label", "x", "--turn", "3")["checkpointId"]
    head = session(thread=thread(1), cwd=str(home.user / "shop"))
    home.put(rollout(head, *three_turns()[:2]))

    done = home.run("restore", thread(1)[:-1], marker[:-1], "--mode", "hard")

    assert done.stderr.endswith(b" [unknown_turn]\n")
    assert whose(home) == failed(thread(1), marker)


@pytest.mark.parametrize("there", [True, False])
def test_refused_restore_of_an_outside_path_stores_nothing(home: Home, tmp_path: Path, there: bool):
    elsewhere = tmp_path / home.path().name
    if there:
        elsewhere.write_bytes(home.path().read_bytes())
    home.json("sessions")
    before = set(home.root.rglob("*"))

    done = home.run("restore", str(elsewhere), TYPED, "--mode", "soft", "--json")

    error = json.loads(done.stdout)["error"]
    assert error["code"] == ("conflict" if there else "unreadable_source")
    assert set(home.root.rglob("*")) == before
    assert home.json("audit") == []


def test_existing_target_is_refused(home: Home):
    home.put(chat("taken", 7), 7)
    ids = iter(["operation", thread(7)])
    with home.house() as house:
        name = marked(house.sessions)
        met = refusal(lambda: restore(house.sessions, name, "soft", new_id=lambda: next(ids)))

    assert (met.code, kinds(home)[-1]) == ("conflict", "RestoreFailed")


@pytest.mark.parametrize("window", ["6", "-1"])
def test_invalid_request_is_refused(home: Home, window: str):
    done = home.run("restore", thread(1), "m", "--mode", "hard", "--window", window, "--json")

    error = json.loads(done.stdout)["error"]
    assert error["code"] == "invalid_payload"
    assert error["facts"]["problems"][0].startswith("window")


# --- what is written down ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_events_are_in_order_under_one_operation(home: Home, mode: RestoreMode):
    done = restored(home, mode, reason="because of SECRET-REASON")

    events = home.audited()
    assert tuple(kinds(home)) == ORDER[mode]
    assert {event["operationId"] for event in events} == {done.record.operation_id}
    assert [event["step"] for event in events] == list(range(len(events)))
    assert {event["sourceSessionId"] for event in events} == {thread(1)}
    ends = events[0]["sessionId"], events[-1]["sessionId"]
    assert ends == (None, done.record.session_id)
    assert all(event["at"].endswith("Z") for event in events)
    assert "SECRET-REASON" not in (home.state / "audit.jsonl").read_text()
    data = branch(home, done).read_bytes()
    assert (events[2]["branchBytes"], events[2]["branchDigest"]) == (len(data), digest_of(data))
    assert events[1]["sourceDigest"] == digest_of(home.path().read_bytes())


def test_record_is_stored_with_the_branch_and_the_source(home: Home):
    done = restored(home).record

    kept = [home.state / f"sessions/{name}/restores.jsonl" for name in (thread(1), done.session_id)]
    own, its = (path.read_bytes() for path in kept)
    assert own == its
    assert json.loads(own)["operationId"] == done.operation_id
    assert not (home.state / "restoring").exists()


def test_restores_are_listed_even_without_both_sessions(home: Home):
    done = restored(home)
    name = done.record.operation_id
    available = ("sessionId", "branchAvailable", "sourceAvailable")
    (listed,) = home.json("restores", thread(1))
    details = home.json("restore-details", name)
    assert [listed[key] for key in available] == [done.record.session_id, True, True]
    assert details["pack"] == done.pack
    assert details["headline"].startswith("Restored “before the rewrite”")
    assert len(details["included"]) + len(details["deferred"]) > 3

    home.path().unlink()
    branch(home, done).unlink()

    gone = home.json("restore-details", name[:30])
    assert [gone[key] for key in (*available[1:], "pack")] == [False, False, None]
    assert gone["included"] == details["included"]
    assert home.json("restores", thread(1)) == home.json("restores")
    assert home.run("restore-details", "01a20000", "--json").returncode == 1


def test_audit_is_filtered_by_session_and_by_operation(home: Home):
    first, second = restored(home), restored(home, "soft")

    all_of_them = home.json("audit")

    assert all_of_them == home.audited()
    one = home.json("audit", "--operation", first.record.operation_id)
    assert {event["operationId"] for event in one} == {first.record.operation_id}
    branches = home.json("audit", "--session", second.record.session_id)
    assert {event["operationId"] for event in branches} == {second.record.operation_id}
    assert home.json("audit", "--session", thread(1)) == all_of_them


def test_records_agree_with_the_audit_after_delete_archive_and_a_failed_restore(home: Home):
    gone, kept = restored(home).record, restored(home, "soft").record
    home.json("delete", gone.session_id)
    shutil.rmtree(home.state / "sessions" / gone.session_id)
    assert home.run("restore", thread(1), "m9", "--mode", "hard").returncode == 1
    with home.house() as house:
        assert faults(house.sessions) == []

    home.json("archive", kept.session_id)
    with home.house() as house:
        assert faults(house.sessions) == []
    home.path().unlink()
    shutil.rmtree(home.state / "sessions" / thread(1))
    with home.house() as house:
        assert faults(house.sessions) == []


def test_details_say_whether_the_source_still_begins_with_the_restored_bytes(home: Home):
    operation = restored(home).record.operation_id

    def unchanged() -> object:
        return home.json("restore-details", operation)["sourceUnchanged"]

    def warning() -> bool:
        text = home.here("restore-details", operation).stdout.decode()
        return "changed in the source since" in text

    with home.path().open("ab") as file:
        file.write(b"{}\n")  # the session continued
    assert (unchanged(), warning()) == (True, False)
    home.path().write_bytes(home.path().read_bytes().replace(b"codex", b"kodex", 1))
    assert (unchanged(), warning()) == (False, True)
    home.path().unlink()
    assert (unchanged(), warning()) == (None, False)


def test_chain_of_five_branches_leads_back_to_the_first_session(home: Home):
    names, done = [thread(1)], restored(home, "soft", "1")
    names.append(done.record.session_id)
    with home.house() as house:
        markers = Markers(house.sessions)
        for _ in range(4):
            marker = markers.marks(names[-1])[-1].marker
            done = restore(house.sessions, marker.checkpoint_id, "soft", names[-1])
            names.append(done.record.session_id)

    assert [each.session_id for each in done.record.chain] == names[-2:0:-1]
    tree = home.json("lineage", names[3])
    nodes = tree["nodes"]
    assert tree["root"] == thread(1)
    assert [(node["id"], node["depth"]) for node in nodes] == [*zip(names, range(6), strict=True)]
    assert (nodes[2]["link"]["kind"], nodes[2]["link"]["turnId"]) == ("restore", "t1")
    assert nodes[0]["windows"][0]["number"] == 0
    home.path().unlink()
    without = home.json("lineage", names[3])["nodes"]
    assert [node["available"] for node in without] == [False, *[True] * 5]
    details = home.json("restore-details", done.record.operation_id)
    assert details["chain"][-1]["sessionId"] == names[1]


def test_soft_branch_of_a_hard_branch_keeps_its_state(home: Home):
    hard = restored(home)
    name = hard.record.session_id
    go_on(
        branch(home, hard),
        name,
        turn(user("Work on"), patch(add=f"{home.user}/shop/c.py"), name="n1"),
    )
    marker = home.json("mark", name, "--label", "later")["checkpointId"]

    soft = home.json("restore", name, marker, "--mode", "soft")

    source = shown(home, name)
    assert shown(home, soft["sessionId"]) == source
    assert source["task"]["text"] == "Work on"
    assert {"a.py", "b.py", "c.py"} <= source["artifacts"].keys()


def test_restores_over_the_wire_equal_those_of_the_command_line(home: Home):
    name = home.json("mark", thread(1), "--label", "x")["checkpointId"]
    with Peer(home.root) as peer:
        peer.start()
        wish = {"sessionId": thread(1), "checkpointId": name, "mode": "hard"}
        preview = peer.call("checkpoints/restorePreview", wish)
        done = peer.call("checkpoints/restore", wish)
        operation = {"operationId": done["operationId"]}
        details = peer.call("checkpoints/restoreDetails", operation)
        listed = peer.call("checkpoints/restores", {"sessionId": thread(1)})
        told = peer.call("checkpoints/audit", operation)
        tree = peer.call("checkpoints/lineage", {"sessionId": done["sessionId"]})
        wrong = peer.error("checkpoints/restore", wish | {"mode": "merge"})

    assert preview["pack"] == done["pack"] == details["pack"]
    assert listed["items"] == home.json("restores")
    assert told["items"] == home.audited()
    assert tree == home.json("lineage", done["sessionId"])
    assert wrong["data"]["code"] == "invalid_payload"


@pytest.mark.parametrize("mode", MODES)
def test_branch_seen_before_its_record_begins_with_its_initial_state(
    home: Home, monkeypatch: pytest.MonkeyPatch, mode: RestoreMode
) -> None:
    """Another server may follow the home while a restore is between its steps (DSC-75)."""
    early: list[bytes] = []
    record = RestoreWork.record

    def late(work: RestoreWork) -> None:
        if not early:
            other.sessions.refresh()
            early.append(other.sessions.show(work.branch_id).data)
        record(work)

    monkeypatch.setattr(RestoreWork, "record", late)
    with home.house() as other:
        made = restored(home, mode).record.session_id
        followed = other.sessions.show(made).data

    with home.house() as anew:
        assert [followed] == early == [anew.sessions.show(made).data]
