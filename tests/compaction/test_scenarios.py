"""Long and odd sessions, compacted: the state that must survive."""

import json
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.core.agents.codex.history.item_kinds import kind_of
from codex_checkpoints.core.agents.codex.own_messages import DIGEST_LINE
from codex_checkpoints.core.checkpoint.records import from_bytes
from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.core.fields import texts_of
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.request import Compacted, CompactionRequest
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.notes import Notes
from codex_checkpoints.service.sessions.sessions import Sessions
from homes import Home, thread
from long_session import LAST, SUMMARY, long_session

WORK = "I looked at every file of it. " * 400
HOOKS = ("preCompact", "postCompact")


def compact(sessions: Sessions, into: Into = "new") -> Compacted:
    return Compacting(sessions, outside({})).compact(
        CompactionRequest(thread(1), into=into, force=True)
    )


def texts(done: Compacted) -> list[str]:
    return ["".join(texts_of(item["content"])) for item in done.replacement]


@pytest.mark.parametrize("into", ["new", "in-place"])
def test_task_edits_plan_and_valid_facts_survive_thousands_of_records(
    home: Home, into: Into
) -> None:
    home.put(long_session())
    newest = f"part{LAST}.py"
    with home.house() as house:
        sessions = house.sessions
        notes = Notes(sessions)
        evidence = {"source": "file", "ref": newest}
        fact = {"kind": "fact", "key": "port", "value": "8080", "evidence": evidence}
        notes.apply(thread(1), json.dumps({**fact, "dependsOn": [{"uri": newest}]}).encode())
        decision = {
            "kind": "decision",
            "decisionId": "d1",
            "decision": "Keep the parts apart",
            "rationale": "They are tested apart",
            "evidence": {"source": "user", "ref": "task"},
        }
        notes.apply(thread(1), json.dumps(decision).encode())

        done = compact(sessions, into)

        made = str(done.session_id)
        history = Histories(sessions).history(made).items
        checkpoint = from_bytes(sessions.show(made).data)
    assert history == done.replacement
    assert [kind_of(item) for item in history[-2:]] == ["user", "handoff"]
    *_, last, handoff = texts(done)
    assert last == f"Round {LAST}: go on with part {LAST}."
    for told in (
        *(f"Round {LAST}", f"Do part {LAST + 1}", "make test", "8080", "Keep the parts apart"),
        *(f"part{number}.py" for number in range(LAST - 3, LAST + 1)),
    ):
        assert told in handoff
    assert checkpoint.task is not None
    assert checkpoint.task.text.startswith(f"Round {LAST}")
    view, _, digest = handoff.partition(DIGEST_LINE)
    assert SUMMARY not in str(history[:-1]) + view
    assert f" {SUMMARY}\n" in digest.partition("[EARLIER_SUMMARY]\n")[2]


def test_one_compaction_has_all_its_effects_in_order(home: Home) -> None:
    data = r.rollout(
        r.session(), r.turn(r.turn_context(), r.user("Fix it."), r.assistant(WORK), r.tokens(9_000))
    )
    path, audit = home.put(data), home.state / "audit.jsonl"
    hook, seen = home.user / "hook.sh", home.user / "seen"
    look = f"cat > /dev/null; cat '{path}' '{audit}' 2> /dev/null | wc -lc >> '{seen}'"
    hook.write_text(f"#!/bin/sh\n{look}\n")
    hook.chmod(0o755)
    home.config("".join(f'[[hooks.{each}]]\ncommand = ["{hook}"]\n' for each in HOOKS))
    with home.house() as house:
        sessions = house.sessions
        was = Histories(sessions).history(thread(1))

        done = compact(sessions, "in-place")

        now = Histories(sessions).history(thread(1))
        (listed,) = sessions.summaries.page().items
    assert (was.baseline is None, now.baseline) == (False, None)
    assert now.items == done.replacement
    installed, observed = audit.read_bytes().splitlines(keepends=True)
    assert json.loads(installed)["type"] == "CompactionInstalled"
    assert json.loads(observed)["type"] == "CompactionObserved"
    after = path.read_bytes()
    assert seen.read_text().split() == [
        *(str(data.count(b"\n")), str(len(data))),
        *(str(after.count(b"\n") + 1), str(len(after) + len(installed))),
    ]
    for handle in (b"response_id", b"encrypted_content", b"latest_token_usage_record"):
        assert handle not in after[len(data) :]
    assert (was.context.source, now.context.source) == ("reported", "estimated")
    assert listed.context_tokens == now.context.tokens


def test_undone_messages_do_not_survive_a_compaction(home: Home) -> None:
    said = [
        r.turn(r.user(text), r.assistant(WORK)) for text in ("Fix the login.", "Drop the table.")
    ]
    cut_off = (r.started("cut"), r.user("And the logout."), r.assistant(WORK), r.aborted("cut"))
    home.put(r.rollout(r.session(form="legacy"), *said, r.rollback(1), *cut_off))
    with home.house() as house:
        *told, handoff = texts(compact(house.sessions))

    assert told == ["Fix the login.", "And the logout."]
    assert "Drop the table." not in handoff


def test_compaction_works_for_any_model_or_provider(home: Home) -> None:
    steps = r.turn(r.turn_context(model="llama-99:1t"), r.user("Fix it."), r.assistant(WORK))
    home.put(r.rollout(r.session(model_provider="ollama"), steps))
    with home.house() as house:
        done = compact(house.sessions)
        (path,) = home.root.glob(f"sessions/**/rollout-*-{done.session_id}.jsonl")

    head: Any = json.loads(path.read_bytes().splitlines()[0])["payload"]
    assert (head["model_provider"], done.determinism) == ("ollama", "deterministic")


def test_unusable_stored_checkpoint_is_rebuilt(home: Home) -> None:
    stored: list[bytes] = []
    said = [r.turn(r.user(text), r.assistant(WORK)) for text in ("Fix it.", "And that.")]
    for steps in (said[:1], said):
        home.put(r.rollout(r.session(), *steps))
        home.run("watch", "--once")
        stored.append(home.checkpoint().read_bytes())
    behind, clean = stored
    other = clean.replace(b'"schemaVersion":1', b'"schemaVersion":9')

    for spoilt in (None, b'\xff{"seq":', other, behind):
        home.checkpoint().unlink()
        if spoilt is not None:
            home.checkpoint().write_bytes(spoilt)
        with home.house() as house:
            done = compact(house.sessions)
            begun = house.sessions.compactions.began(str(done.session_id))
        assert home.checkpoint().read_bytes() == clean
        assert begun is not None
        assert begun.seed == from_bytes(clean)
