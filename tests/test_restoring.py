"""Restores through the real doors: what a branch holds, what stays behind, what is written down."""

import hashlib
import json
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.core.restore.events import ORDER, sealed
from codex_checkpoints.core.restore.pack import Deferred
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore.planning import RestoreOptions
from codex_checkpoints.service.restore.restoring import Restored, Restoring
from codex_checkpoints.service.restore.verifying import verify
from codex_checkpoints.storage import records as stamps
from homes import Home, chat, refusal, snapshot, thread
from peer import Peer
from restoring import sections_in
from rollouts import (
    Form,
    assistant,
    based_on,
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

Json = dict[str, Any]

FORMS: tuple[Form, ...] = ("paginated", "legacy", "bare")
MODES = ("soft", "hard")
SAID = "assistant-words"
OUTPUT = "output-words"
LATER = "later-words"
BODY = "body-of-the-file"
TASK = {"source": "user", "ref": "task"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path)


def a_home(root: Path, form: Form = "paginated") -> Home:
    """Hold a session of three turns; its first read one file and planned, its second wrote one."""
    home = Home(root)
    shop = home.user / "shop"
    shop.mkdir()
    (shop / "a.py").write_text(f"one\ntwo {BODY}\nthree\n")
    (shop / "b.py").write_text("b\n")
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


def a_fork(home: Home) -> bytes:
    """Write a session whose history begins with that of the first."""
    data = home.path().read_bytes()
    cut = len(data.splitlines())
    head = session(
        thread=thread(2),
        cwd=str(home.user / "shop"),
        history_base=based_on(thread(1), cut, len(data)),
    )
    return rollout(head, turn(user("In the fork"), assistant("Yes."), name="f1"))


@contextmanager
def restoring(home: Home) -> Generator[tuple[Markers, Restoring]]:
    with home.house() as house:
        parts = house.sessions, stamps.now, stamps.new_id
        yield Markers(*parts), Restoring(*parts)


def restored(home: Home, mode: Any = "hard", turn: str = "2", **wish: Any) -> Restored:  # noqa: ANN401 - a wish's
    with restoring(home) as (markers, restores):
        marker = markers.mark(thread(1), "before the rewrite", turn).marker
        return restores.restore(thread(1), marker.checkpoint_id, RestoreOptions(mode, **wish))


def branch(home: Home, done: Restored) -> Path:
    (path,) = home.root.glob(f"sessions/**/rollout-*{done.record.session_id}.jsonl")
    return path


def records(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def ours(home: Home) -> str:
    """Return everything that was written down of restores: all of our files but checkpoints."""
    files = [path for path in home.state.rglob("*.jsonl") if path.is_file()]
    return "\n".join(path.read_text() for path in files)


def without_seq(checkpoint: Json) -> Json:
    return {key: value for key, value in checkpoint.items() if key != "seq"}


def shown(home: Home, session: str, *more: str) -> Json:
    done = home.run("show", session, *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- what a branch is ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", MODES)
def test_a_branch_begins_with_the_state_of_the_turn_and_the_source_is_untouched(
    tmp_path: Path, form: Form, mode: str
):
    home = a_home(tmp_path, form)
    before = home.path().read_bytes()
    source = shown(home, thread(1), "--at", "2")

    done = restored(home, mode)

    assert without_seq(shown(home, done.record.session_id)) == without_seq(source)
    assert home.path().read_bytes() == before
    head = records(branch(home, done))[0]["payload"]
    assert head["originator"] == "codex-checkpoints"
    assert head["forked_from_id"] == thread(1)
    assert head["history_mode"] == ("paginated" if form == "paginated" else "legacy")
    assert head["source"] in {"cli", "vscode"}


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_a_soft_branch_holds_the_lines_of_the_source_up_to_the_turn(tmp_path: Path, form: Form):
    home = a_home(tmp_path, form)

    done = restored(home, "soft", "2")

    source = home.path().read_bytes().splitlines()
    own = branch(home, done).read_bytes().splitlines()
    assert own[1:] == source[1 : len(own)]
    assert json.loads(own[-1])["payload"]["type"] == "task_complete"
    assert LATER.encode() not in b"".join(own)
    assert (done.record.context_reset, done.pack, done.record.pack) == (False, None, None)
    assert done.record.deferred == ()


def test_a_soft_branch_of_a_fork_is_one_sequence_without_a_second_head(home: Home):
    home.put(a_fork(home), 2)
    with restoring(home) as (markers, restores):
        marker = markers.mark(thread(2), "fork").marker
        done = restores.restore(thread(2), marker.checkpoint_id, RestoreOptions("soft"))

    lines = records(branch(home, done))
    assert [line["type"] for line in lines].count("session_meta") == 1
    ordinals = [line["ordinal"] for line in lines]
    assert ordinals == list(range(len(ordinals)))
    source = shown(home, thread(2))
    assert without_seq(shown(home, done.record.session_id)) == without_seq(source)


def test_a_hard_branch_holds_the_pack_and_nothing_of_the_conversation(home: Home):
    done = restored(home)

    path = branch(home, done)
    text = path.read_text()
    head, replaced, started, _, complete = records(path)
    assert [line["ordinal"] for line in records(path)] == [0, 1, 2, 3, 4]
    items = replaced["payload"]["replacement_history"]
    assert [item["content"][0]["text"] for item in items] == [done.pack]
    assert done.pack is not None
    assert sections_in(done.pack)[0][0] == "[NOTICE]"
    for planted in (SAID, OUTPUT, LATER, BODY, "Fix the login"):
        assert planted not in text
        assert planted not in ours(home)
    assert "And the logout" in text  # the task is state
    assert (started["payload"]["type"], complete["payload"]["type"]) == (
        "task_started",
        "task_complete",
    )
    ids = {head["payload"]["context_window"]["window_id"], replaced["payload"]["window_id"]}
    assert len(ids) == 2
    assert done.record.context_reset is True
    assert done.record.tokens.before == 90_000
    assert (done.record.tokens.after or 0) < 1_000


def test_a_hard_branch_is_called_by_its_label_and_never_by_the_first_message(home: Home):
    done = restored(home)
    (row,) = [each for each in home.json("sessions") if each["sessionId"] == done.record.session_id]
    assert row["title"] == "before the rewrite"
    assert row["task"] == "And the logout"
    assert row["forkedFrom"] == thread(1)


@pytest.mark.parametrize("turn", ["1", "2"])
def test_a_hard_branch_is_called_by_its_label_then_by_the_name_of_its_source(home: Home, turn: str):
    home.json("rename", thread(1), "Doors")

    assert title(home, restored(home, turn=turn)) == "before the rewrite: Doors"


def test_a_first_message_that_is_the_task_may_stand_in_the_name(home: Home):
    assert title(home, restored(home, turn="1")) == "before the rewrite: Fix the login"


def title(home: Home, done: Restored) -> str:
    rows = home.json("sessions")
    return next(each["title"] for each in rows if each["sessionId"] == done.record.session_id)


@pytest.mark.parametrize("mode", MODES)
def test_a_preview_is_what_comes_and_writes_nothing(home: Home, mode: str):
    name = home.json("mark", thread(1), "--label", "x", "--turn", "2")["checkpointId"]
    before = snapshot(home.root / "sessions", home.state / "sessions")
    wish = ("restore", thread(1), name, "--mode", mode)

    preview = home.json(*wish, "--dry-run")

    assert snapshot(home.root / "sessions", home.state / "sessions") == before
    assert not (home.state / "audit.jsonl").exists()
    done = home.json(*wish)
    new = {"operationId", "sessionId", "restoredAt", "resume", "dryRun", "lines"}
    assert {key: preview[key] for key in preview if key not in new} == {
        key: done[key] for key in done if key not in new
    }
    assert [preview[key] for key in ("operationId", "sessionId", "restoredAt", "resume")] == (
        [None] * 4
    )
    assert done["resume"] == f"codex resume {done['sessionId']}"
    assert done["sourceTurn"] == {"sessionId": thread(1), "turnId": "t2"}
    assert done["restoredAt"].endswith("Z")


def test_the_same_restore_twice_differs_in_ids_and_times_alone(home: Home):
    with restoring(home) as (markers, restores):
        marker = markers.mark(thread(1), "x", "2").marker
        first, second = (
            restores.restore(thread(1), marker.checkpoint_id, RestoreOptions("hard"))
            for _ in range(2)
        )

    assert first.pack == second.pack
    assert first.record.seed == second.record.seed
    assert first.record.included == second.record.included
    assert first.record.session_id != second.record.session_id
    assert len(home.json("restores", thread(1))) == 2


# --- what goes over ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_notes_of_the_time_go_over_and_later_ones_do_not(home: Home, mode: str, tmp_path: Path):
    fact = {"kind": "fact", "key": "port", "value": "8080", "evidence": TASK}
    early = {"updateId": "u1", "seq": 5, "turnId": "t1", "at": "2026-11-20T10:00:00.000Z"}
    late = {"updateId": "u2", "seq": 30, "turnId": "t3", "at": "2026-11-20T11:00:00.000Z"}
    home.remember(
        [
            early | {"payload": fact, "hashes": {}},
            late | {"payload": fact | {"key": "late"}, "hashes": {}},
        ]
    )

    done = restored(home, mode, "1")

    name = done.record.session_id
    assert [note["id"] for note in home.json("notes", name)] == ["port"]
    payload = tmp_path / "own.json"
    payload.write_text(json.dumps(fact | {"key": "own"}))
    home.json("apply", name, str(payload))
    assert [note["id"] for note in home.json("notes", name)] == ["own", "port"]
    assert [note["id"] for note in home.json("notes", thread(1))] == ["late", "port"]


@pytest.mark.parametrize("mode", MODES)
def test_markers_and_pins_go_over(home: Home, mode: str):
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
    (told,) = [each for each in home.audited() if each["type"] == "StateTransferred"]
    assert told["markers"] == len(copied)
    assert home.json("pin", done.record.session_id) == [{"uri": "a.py", "start": 1, "end": 1}]
    again = home.json(
        "restore", done.record.session_id, copied[-1]["checkpointId"], "--mode", "hard"
    )
    assert again["sourceSessionId"] == own


def test_files_and_lines_are_named_with_what_happened_to_them(home: Home):
    done = restored(home)

    files = {each.uri: each for each in done.record.references.files}
    assert (files["a.py"].touched, files["a.py"].sent_to_model) == (False, True)
    assert (files["b.py"].touched, files["b.py"].sent_to_model) == (True, False)
    data = (home.user / "shop/a.py").read_bytes()
    assert files["a.py"].size == len(data)
    assert files["a.py"].hash == "sha256:" + hashlib.sha256(data).hexdigest()
    (chunk,) = done.record.references.chunks
    first_two = b"".join(data.splitlines(keepends=True)[:2])
    assert chunk.chunk_id == "a.py#L1-L2"
    assert chunk.hash == "sha256:" + hashlib.sha256(first_two).hexdigest()
    assert any(each.kind == "patch" for each in done.record.references.system)


def test_a_pinned_content_may_enter_the_pack_and_no_record(home: Home):
    home.json("pin", thread(1), "a.py#L2-L2")

    done = restored(home)

    assert BODY in (done.pack or "")
    assert BODY not in ours(home)


def test_the_window_takes_the_last_messages_of_the_user_along(home: Home):
    done = restored(home, window=2)

    assert "Fix the login" in (done.pack or "")
    assert "Fix the login" not in ours(home)


@pytest.mark.parametrize("budget", [0, 1, 60])
def test_a_small_budget_never_fails_and_says_what_was_left_out(home: Home, budget: int):
    done = restored(home, budget=budget)

    record = done.record
    assert -(-len((done.pack or "").encode()) // 4) <= budget
    assert record.deferred
    assert {"pack_truncated"} <= {each.code for each in record.warnings}
    assert "PackTruncated" in [event["type"] for event in home.audited()]
    assert without_seq(shown(home, record.session_id)) == without_seq(
        shown(home, thread(1), "--at", "2")
    )


def test_a_budget_that_no_record_could_hold_is_one_that_holds_everything(home: Home):
    marker = home.json("mark", thread(1), "--label", "here")["checkpointId"]

    done = home.json("restore", thread(1), marker, "--mode", "hard", "--budget", str(10**30))

    assert [each for each in done["deferred"] if each["reason"] == "budget"] == []


def test_a_preview_tells_what_a_pack_of_any_budget_would_hold(home: Home):
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


def test_the_budget_and_who_is_asking_come_from_the_settings(home: Home):
    home.config('restoreBudgetTokens = 80\nuserId = "ana"\norgId = "shop"\n')

    done = restored(home)

    assert done.record.pack is not None
    assert done.record.pack.budget == 80
    assert {(event["userId"], event["orgId"]) for event in home.audited()} == {("ana", "shop")}


def test_drift_and_missing_files_since_the_marker_are_told(home: Home):
    with restoring(home) as (markers, restores):
        marker = markers.mark(thread(1), "x", "2").marker
        (home.user / "shop/a.py").write_text("another")
        (home.user / "shop/b.py").unlink()
        done = restores.restore(thread(1), marker.checkpoint_id, RestoreOptions("hard"))

    told = {event["type"]: event for event in home.audited()}
    assert told["DriftDetected"]["uri"] == "a.py"
    assert told["DriftDetected"]["then"] != told["DriftDetected"]["now"]
    assert told["ArtifactMissing"]["uri"] == "b.py"
    assert {each.code for each in done.record.warnings} >= {"drift", "missing_files"}


@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_was_missing_before_the_marker_is_told(home: Home, mode: str):
    (home.user / "shop/b.py").unlink()

    done = restored(home, mode).record

    (told,) = [event for event in home.audited() if event["type"] == "ArtifactMissing"]
    assert (told["uri"], told["then"]) == ("b.py", "unknown:")
    assert [(each.code, each.count) for each in done.warnings] == [("missing_files", 1)]


def test_a_file_that_the_session_deleted_or_moved_is_not_missing(home: Home):
    head = session(cwd=str(home.user / "shop"))
    away = turn(user("Away with it"), patch(delete="b.py"), patch(move=("old.py", "a.py")))
    home.put(rollout(head, *three_turns(), away))
    (home.user / "shop/b.py").unlink()

    done = restored(home, turn="4").record

    assert {each.uri for each in done.references.files} == {"a.py", "b.py", "old.py"}
    assert (done.missing, done.warnings) == ((), ())


def test_of_files_in_a_folder_that_is_not_here_nothing_is_said(home: Home):
    shutil.rmtree(home.user / "shop")

    assert restored(home).record.missing == ()


def test_a_pinned_file_that_is_gone_is_told(home: Home):
    (home.user / "shop/rules.md").write_text("one rule\n")
    home.json("pin", thread(1), "rules.md")
    (home.user / "shop/rules.md").unlink()

    done = restored(home)

    assert (done.pack or "").endswith("\n[PINNED]\n- pinned: rules.md (not there)\n")
    assert Deferred("pinned", "rules.md", "missing") in done.record.deferred
    assert [(each.code, each.count) for each in done.record.warnings] == [("missing_files", 1)]
    (told,) = [event for event in home.audited() if event["type"] == "ArtifactMissing"]
    assert told["uri"] == "rules.md"


@pytest.mark.parametrize(
    ("pin", "why", "words"),
    [
        ("big.txt#L3-L4", "bound", "too large to be read"),
        ("a.py#L90-L99", "no_lines", "it has no such lines"),
        ("out.txt", "unreadable", "not to be read"),
    ],
)
def test_a_pinned_file_that_is_there_is_never_said_to_be_missing(
    home: Home, pin: str, why: str, words: str
):
    home.config("hashLimitBytes = 1024\n")
    (home.user / "shop/big.txt").write_text("line\n" * 1000)
    (home.user / "shop/out.txt").write_text("leads elsewhere soon\n")
    home.json("pin", thread(1), pin)
    (home.user / "elsewhere.txt").write_text("not of this folder\n")
    (home.user / "shop/out.txt").unlink()
    (home.user / "shop/out.txt").symlink_to(home.user / "elsewhere.txt")

    done = restored(home)

    assert f"({words})\n" in (done.pack or "")
    assert [(each.id, each.reason) for each in done.record.deferred] == [
        ("step:s1", "filtered"),
        (pin, why),
    ]
    assert done.record.missing == ()
    assert "ArtifactMissing" not in {event["type"] for event in home.audited()}


def test_a_pinned_file_known_by_size_and_time_alone_is_told(home: Home):
    home.config("hashLimitBytes = 1024\n")
    (home.user / "shop/big.txt").write_text("line\n" * 1000)
    home.json("pin", thread(1), "big.txt")

    done = restored(home)

    told = [event for event in home.audited() if event["type"] == "FallbackUsed"]
    assert [(each["fallback"], each["uri"]) for each in told] == [("weak_hash", "big.txt")]
    assert ("weak_hashes", 1) in [(each.code, each.count) for each in done.record.warnings]


def test_a_marker_whose_turn_was_rolled_back_is_restored_all_the_same(tmp_path: Path):
    home = a_home(tmp_path, "legacy")
    with restoring(home) as (markers, _):
        name = markers.mark(thread(1), "x", "3").marker.checkpoint_id
    state = shown(home, thread(1), "--at", "3")
    head = session("legacy", thread=thread(1), cwd=str(home.user / "shop"))
    home.put(rollout(head, *three_turns(), rollback(1), turn(user("otherwise"))))

    done = home.json("restore", thread(1), name, "--mode", "hard")

    assert [each["code"] for each in done["warnings"]] == ["detached_marker"]
    assert without_seq(shown(home, done["sessionId"])) == without_seq(state)


def test_a_compacted_source_is_restored_to_a_turn_before_it(home: Home):
    head = session(cwd=str(home.user / "shop"))
    home.put(rollout(head, *three_turns(), compacted("m", []), turn(user("after"))))

    done = restored(home, "soft", "2")

    assert "compacted" not in {line["type"] for line in records(branch(home, done))}


# --- refusals ------------------------------------------------------------------------------------


def test_a_marker_that_is_not_there_is_refused_and_told(home: Home):
    with restoring(home) as (_, restores):
        before = snapshot(home.root / "sessions")
        met = refusal(lambda: restores.restore(thread(1), "m9", RestoreOptions("hard")))

    assert met.code == "unknown_checkpoint"
    assert snapshot(home.root / "sessions") == before
    assert [event["type"] for event in home.audited()] == ["RestoreRequested", "RestoreFailed"]
    assert home.audited()[-1]["code"] == "unknown_checkpoint"


TYPED = "what-was-typed"


def whose(home: Home) -> list[tuple[str, str | None, str | None]]:
    return [
        (each["type"], each["sourceSessionId"], each["checkpointId"]) for each in home.audited()
    ]


def failed(session: str | None, checkpoint: str | None = None) -> list[object]:
    return [(kind, session, checkpoint) for kind in ("RestoreRequested", "RestoreFailed")]


@pytest.mark.parametrize("name", ["id", "beginning", "path"])
def test_a_refused_restore_stands_in_the_audit_under_the_whole_id_of_its_session(
    home: Home, name: str
):
    named = {"id": thread(1), "beginning": thread(1)[:-1], "path": str(home.path())}[name]

    done = home.run("restore", named, TYPED, "--mode", "hard")

    assert done.stderr.startswith(b"unknown_checkpoint")
    assert whose(home) == failed(thread(1))
    assert home.json("audit", "--session", thread(1)) == home.audited()
    assert home.json("audit", "--session", thread(1)[:-1]) == home.audited()
    assert TYPED not in ours(home)


def test_a_restore_that_fails_behind_its_marker_names_it_by_its_whole_id(home: Home):
    marker = home.json("mark", thread(1), "--label", "x", "--turn", "3")["checkpointId"]
    head = session(thread=thread(1), cwd=str(home.user / "shop"))
    home.put(rollout(head, *three_turns()[:2]))

    done = home.run("restore", thread(1)[:-1], marker[:-1], "--mode", "hard")

    assert done.stderr.startswith(b"unknown_turn")
    assert whose(home) == failed(thread(1), marker)


@pytest.mark.parametrize(
    ("named", "code"),
    [(f"{TYPED}-9", "unknown_session"), (thread(1)[:8], "ambiguous_session")],
)
def test_a_restore_of_no_session_here_ends_in_the_audit_without_what_was_typed(
    home: Home, named: str, code: str
):
    home.put(chat("another", 2), 2)

    done = home.run("restore", named, TYPED, "--mode", "soft", "--json")

    assert json.loads(done.stdout)["error"]["code"] == code
    assert whose(home) == failed(None)
    assert home.audited()[-1]["code"] == code
    assert TYPED not in ours(home)
    assert home.json("verify")["findings"] == []


@pytest.mark.parametrize("there", [True, False])
def test_of_a_path_outside_the_home_a_refused_restore_stores_nothing(
    home: Home, tmp_path: Path, there: bool
):
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


def test_a_session_whose_file_cannot_be_read_has_its_whole_id_in_the_audit(home: Home):
    home.path().unlink()
    home.put(b"no such packing", 2, form=".jsonl.zst")

    done = home.run("restore", thread(2)[:-1], TYPED, "--mode", "soft")

    assert done.stderr.startswith(b"unreadable_source")
    assert whose(home) == failed(thread(2))


def test_a_source_that_cannot_be_read_is_refused_and_leaves_nothing(home: Home):
    home.put(a_fork(home), 2)
    name = home.json("mark", thread(2), "--label", "x")["checkpointId"]
    home.path().unlink()
    before = snapshot(home.root / "sessions")

    done = home.run("restore", thread(2), name, "--mode", "soft", "--json")

    assert json.loads(done.stdout)["error"]["code"] == "unreadable_source"
    assert snapshot(home.root / "sessions") == before
    assert [event["type"] for event in home.audited()] == ["RestoreRequested", "RestoreFailed"]
    assert {path.name for path in (home.state / "sessions").iterdir()} == {thread(2)}


def test_a_turn_that_is_gone_from_the_source_is_refused(home: Home):
    name = home.json("mark", thread(1), "--label", "x", "--turn", "3")["checkpointId"]
    head = session(cwd=str(home.user / "shop"))
    home.put(rollout(head, *three_turns()[:2]))

    done = home.run("restore", thread(1), name, "--mode", "hard", "--json")

    assert json.loads(done.stdout)["error"]["code"] == "unknown_turn"


def test_a_target_that_is_taken_is_refused(home: Home):
    home.put(chat("taken", 7), 7)
    ids = iter(["operation", thread(7)])
    with home.house() as house:
        marker = Markers(house.sessions, stamps.now, stamps.new_id).mark(thread(1), "x").marker
        restores = Restoring(house.sessions, stamps.now, lambda: next(ids))
        met = refusal(
            lambda: restores.restore(thread(1), marker.checkpoint_id, RestoreOptions("soft"))
        )

    assert met.code == "conflict"
    assert home.audited()[-1]["type"] == "RestoreFailed"


@pytest.mark.parametrize(
    ("more", "problem"),
    [(("--window", "6"), "window"), (("--window", "-1"), "window")],
)
def test_a_wish_that_cannot_be_is_refused(home: Home, more: tuple[str, ...], problem: str):
    done = home.run("restore", thread(1), "m", "--mode", "hard", *more, "--json")

    error = json.loads(done.stdout)["error"]
    assert error["code"] == "invalid_payload"
    assert error["facts"]["problems"][0].startswith(problem)


# --- what is written down ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_events_come_in_their_order_under_one_operation(home: Home, mode: Any):  # noqa: ANN401 - a mode
    done = restored(home, mode, reason="because of SECRET-REASON")

    told = home.audited()
    assert tuple(event["type"] for event in told) == ORDER[mode]
    assert {event["operationId"] for event in told} == {done.record.operation_id}
    assert [event["step"] for event in told] == list(range(len(told)))
    assert {event["sourceSessionId"] for event in told} == {thread(1)}
    assert told[0]["sessionId"] is None
    assert told[-1]["sessionId"] == done.record.session_id
    assert all(event["at"].endswith("Z") for event in told)
    assert "SECRET-REASON" not in (home.state / "audit.jsonl").read_text()
    size = told[2]["branchBytes"]
    data = branch(home, done).read_bytes()
    assert (size, told[2]["branchDigest"]) == (
        len(data),
        "sha256:" + hashlib.sha256(data).hexdigest(),
    )
    assert told[1]["sourceDigest"] == (
        "sha256:" + hashlib.sha256(home.path().read_bytes()).hexdigest()
    )


def test_the_record_lies_with_the_branch_and_with_the_source(home: Home):
    done = restored(home)

    folder = home.state / "sessions"
    own, its = (
        (folder / name / "restores.jsonl").read_bytes()
        for name in (thread(1), done.record.session_id)
    )
    assert own == its
    assert json.loads(own)["operationId"] == done.record.operation_id
    assert not (home.state / "restoring").exists()


def test_restores_are_listed_and_told_also_when_both_sessions_are_gone(home: Home):
    done = restored(home)
    name = done.record.operation_id
    (listed,) = home.json("restores", thread(1))
    details = home.json("restore-details", name)
    assert listed["sessionId"] == done.record.session_id
    assert (listed["branchAvailable"], listed["sourceAvailable"]) == (True, True)
    assert details["pack"] == done.pack
    assert details["headline"].startswith("Restored “before the rewrite”")
    assert len(details["included"]) + len(details["deferred"]) > 3

    home.path().unlink()
    branch(home, done).unlink()

    gone = home.json("restore-details", name[:30])
    assert (gone["branchAvailable"], gone["sourceAvailable"]) == (False, False)
    assert gone["pack"] is None
    assert gone["included"] == details["included"]
    assert home.json("restores", thread(1)) == home.json("restores")
    assert home.run("restore-details", "01a20000", "--json").returncode == 1


def test_the_audit_is_asked_by_session_and_by_operation(home: Home):
    first, second = restored(home), restored(home, "soft")

    all_of_them = home.json("audit")

    assert all_of_them == home.audited()
    one = home.json("audit", "--operation", first.record.operation_id)
    assert {event["operationId"] for event in one} == {first.record.operation_id}
    branches = home.json("audit", "--session", second.record.session_id)
    assert {event["operationId"] for event in branches} == {second.record.operation_id}
    assert home.json("audit", "--session", thread(1)) == all_of_them


def test_verify_finds_a_changed_event_a_changed_record_and_changed_files(home: Home):
    done = restored(home)
    clean = home.json("verify")
    assert (clean["findings"], clean["files"], clean["records"]) == ([], 2, 2)
    with branch(home, done).open("ab") as file:
        file.write(b"{}\n")  # its user went on
    assert home.json("verify")["findings"] == []

    audit = home.state / "audit.jsonl"
    audit.write_text(audit.read_text().replace('"turns":2', '"turns":3'))
    record = home.state / "sessions" / thread(1) / "restores.jsonl"
    record.write_text(record.read_text().replace("requested by the user", "out of the blue"))
    path = branch(home, done)
    path.write_bytes(path.read_bytes().replace(b"before the rewrite", b"after the rewrite."))

    found = {each["code"] for each in home.json("verify")["findings"]}
    assert found == {"changed_line", "changed_record", "changed_branch"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end", ["source", "branch"])
@pytest.mark.parametrize("damage", ["gone", "emptied", "torn"])
def test_verify_finds_a_record_that_one_session_has_lost(
    home: Home, mode: str, end: str, damage: str
):
    done = restored(home, mode).record
    assert home.json("verify")["findings"] == []
    name = done.source_session_id if end == "source" else done.session_id
    path = home.state / "sessions" / name / "restores.jsonl"
    match damage:
        case "gone":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
        case _:
            path.write_bytes(path.read_bytes()[:-20])

    found = home.json("verify")["findings"]

    told = {"operationId": done.operation_id, "sessionId": name, "line": None}
    assert found == [{"code": "missing_record"} | told]


@pytest.mark.parametrize("lost", ["last line", "operation", "audit", "both records"])
def test_verify_finds_what_audit_and_records_do_not_tell_alike(home: Home, lost: str):
    done, other = restored(home).record, restored(home, "soft").record
    audit = home.state / "audit.jsonl"
    kept = audit.read_bytes().splitlines(keepends=True)
    ids = {done.operation_id, other.operation_id}
    match lost:
        case "last line":
            audit.write_bytes(b"".join(kept[:-1]))
            ids = {other.operation_id}
        case "operation":
            audit.write_bytes(b"".join(x for x in kept if done.operation_id.encode() not in x))
            ids = {done.operation_id}
        case "audit":
            audit.unlink()
        case _:
            for path in home.state.rglob("restores.jsonl"):
                path.unlink()

    report = home.json("verify")

    code = "missing_record" if lost == "both records" else "missing_lines"
    assert {each["code"] for each in report["findings"]} == {code}
    assert {each["operationId"] for each in report["findings"]} == ids
    assert report["files"] == (0 if lost == "both records" else 4)


def test_verify_finds_that_the_end_of_a_restore_that_failed_was_taken_away(home: Home):
    restored(home)
    assert home.run("restore", thread(1), "m9", "--mode", "hard").returncode == 1
    assert home.json("verify")["findings"] == []
    audit = home.state / "audit.jsonl"
    *kept, end = audit.read_bytes().splitlines(keepends=True)
    audit.write_bytes(b"".join(kept))

    report = home.json("verify")

    told = json.loads(end)
    assert told["type"] == "RestoreFailed"
    where = {"operationId": told["operationId"], "sessionId": None, "line": None}
    assert report["findings"] == [{"code": "missing_lines"} | where]


def test_verify_says_nothing_of_a_restore_that_is_going_on(home: Home):
    found: list[object] = []

    def look() -> str:
        # Each of its events takes the time of day, so this is asked between any two of them.
        with home.house() as other:
            found.append(verify(other.sessions).findings)
        return stamps.now()

    with home.house() as house:
        marker = Markers(house.sessions, stamps.now, stamps.new_id).mark(thread(1), "x")
        name = marker.marker.checkpoint_id
        Restoring(house.sessions, look, stamps.new_id).restore(
            thread(1), name, RestoreOptions("hard")
        )
        with pytest.raises(Refusal):
            Restoring(house.sessions, look, stamps.new_id).restore(
                thread(1), "m9", RestoreOptions("soft")
            )

    assert len(found) > 8
    assert not any(found)
    assert home.json("verify")["findings"] == []


def test_verify_compares_session_files_also_without_the_audit(home: Home):
    done = restored(home)
    (home.state / "audit.jsonl").unlink()
    for path in (branch(home, done), home.path()):
        path.write_bytes(path.read_bytes().replace(b"codex", b"kodex", 1))

    found = {each["code"] for each in home.json("verify")["findings"]}

    assert found == {"missing_lines", "changed_branch", "changed_source"}


def test_verify_says_nothing_where_a_session_was_deleted_put_away_or_never_made(home: Home):
    gone, kept = restored(home).record, restored(home, "soft").record
    home.json("delete", gone.session_id)
    shutil.rmtree(home.state / "sessions" / gone.session_id)
    assert home.run("restore", thread(1), "m9", "--mode", "hard").returncode == 1
    assert home.json("verify")["findings"] == []

    home.json("archive", kept.session_id)
    assert home.json("verify")["findings"] == []
    home.path().unlink()
    shutil.rmtree(home.state / "sessions" / thread(1))
    assert home.json("verify")["findings"] == []


def test_verify_goes_by_the_audit_where_a_record_does_not_say_how_much_it_compared(home: Home):
    done = restored(home).record
    for path in home.state.rglob("restores.jsonl"):
        line = json.loads(path.read_bytes())
        earlier = {key: line[key] for key in line if key not in {"branchBytes", "sourceBytes"}}
        path.write_text(json.dumps(sealed(earlier)) + "\n")
    assert (home.json("verify")["findings"], home.json("verify")["files"]) == ([], 2)

    home.path().write_bytes(home.path().read_bytes().replace(b"codex", b"kodex", 1))

    (found,) = home.json("verify")["findings"]
    assert (found["code"], found["operationId"]) == ("changed_source", done.operation_id)


def test_a_chain_of_five_branches_reads_back_to_the_first_session(home: Home):
    names, done = [thread(1)], restored(home, "soft", "1")
    names.append(done.record.session_id)
    with restoring(home) as (markers, restores):
        for _ in range(4):
            marker = markers.marks(names[-1])[-1].marker
            done = restores.restore(names[-1], marker.checkpoint_id, RestoreOptions("soft"))
            names.append(done.record.session_id)

    assert [each.session_id for each in done.record.chain] == names[-2:0:-1]
    tree = home.json("lineage", names[3])
    assert tree["root"] == thread(1)
    assert [(node["id"], node["depth"]) for node in tree["nodes"]] == [
        (name, depth) for depth, name in enumerate(names)
    ]
    assert tree["nodes"][2]["link"]["kind"] == "restore"
    assert tree["nodes"][2]["link"]["turnId"] == "t1"
    assert tree["nodes"][0]["windows"][0]["number"] == 0
    home.path().unlink()
    without = home.json("lineage", names[3])
    assert [node["available"] for node in without["nodes"]] == [False, True, True, True, True, True]
    assert (
        home.json("restore-details", done.record.operation_id)["chain"][-1]["sessionId"]
        == (names[1])
    )


def test_a_soft_branch_of_a_hard_branch_keeps_its_state(home: Home):
    hard = restored(home)
    head = session(cwd=str(home.user / "shop"))
    later = rollout(head, turn(user("Work on"), patch(add="c.py"), name="n1"))
    lines = later.replace(b'"ordinal":', b'"ordinal":1').splitlines(keepends=True)[1:]
    with branch(home, hard).open("ab") as file:
        file.writelines(lines)  # its user worked on
    name = home.json("mark", hard.record.session_id, "--label", "later")["checkpointId"]

    soft = home.json("restore", hard.record.session_id, name, "--mode", "soft")

    source = shown(home, hard.record.session_id)
    assert shown(home, soft["sessionId"]) == source
    assert source["task"]["text"] == "Work on"
    assert {"a.py", "b.py", "c.py"} <= source["artifacts"].keys()


def test_a_source_of_branches_is_not_deleted_and_a_branch_is(home: Home):
    hard = restored(home)
    name = home.json("marks", hard.record.session_id)[0]["checkpointId"]
    soft = home.json("restore", thread(1), name, "--mode", "soft")
    own = home.json("marks", soft["sessionId"])[0]["checkpointId"]
    last = home.json("restore", soft["sessionId"], own, "--mode", "soft")

    refused = home.run("delete", soft["sessionId"], "--json")
    error = json.loads(refused.stdout)["error"]
    assert (error["code"], error["facts"]["reason"]) == ("conflict", "referred_to")
    assert home.json("delete", last["sessionId"])["deleted"] is True
    assert home.json("delete", soft["sessionId"])["deleted"] is True


def test_restores_over_the_wire_are_those_of_the_command_line(home: Home):
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
        verified = peer.call("checkpoints/verify", {})
        wrong = peer.error("checkpoints/restore", wish | {"mode": "merge"})

    assert preview["pack"] == done["pack"] == details["pack"]
    assert listed["items"] == home.json("restores")
    assert told["items"] == home.audited()
    assert tree == home.json("lineage", done["sessionId"])
    assert verified == home.json("verify")
    assert wrong["data"]["code"] == "invalid_payload"
