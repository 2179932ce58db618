"""The lines of an install, key by key (CKP-18, WIN-6, JUN-46; codex-interop, recipes)."""

import pytest

from codex_checkpoints.core.agents.codex.history.items import replacement_of
from codex_checkpoints.core.agents.codex.history.tokens import Calibration, context
from codex_checkpoints.core.agents.codex.history.windows import Chain, begun
from codex_checkpoints.core.agents.codex.parsing import item_of
from codex_checkpoints.core.compaction.replacement_lines import (
    Naming,
    NewSession,
    RecordLine,
    SourceSession,
    TurnTime,
    compacted,
    in_place,
    new_session,
    token_count,
)
from codex_checkpoints.core.events import Tokens
from codex_checkpoints.core.fields import Json, list_of, object_of
from history_items import user

ITEMS = [user("fix the login"), user("handoff\n")]
AT = TurnTime("2026-11-20T09:46:08.372Z", 1_795_167_968_372)
NAMING = Naming("Fix the login", "TURN", "ITEM")
HEAD: Json = {
    "id": "SOURCE",
    "cwd": "/home/ana/shop",
    "originator": "codex_cli_rs",
    "cli_version": "0.169.0",
    "source": "cli",
    "model_provider": "openai",
    "history_mode": "paginated",
    "base_instructions": {"text": "be kind"},
    "git": {"branch": "main"},
}
ZERO = {
    "input_tokens": 0,
    "cached_input_tokens": 0,
    "cache_write_input_tokens": 0,
    "output_tokens": 0,
    "reasoning_output_tokens": 0,
    "total_tokens": 0,
}


def made(head: Json = HEAD) -> NewSession:
    source = SourceSession("SOURCE", "/home/ana/shop", head, 258_400)
    return new_session(ITEMS, source, NAMING, AT, ("NEW", "A", "B"))


def test_record_holds_the_whole_replacement_the_last_text_and_the_chain() -> None:
    line = compacted(ITEMS, Chain("a", "b", "c", 2))

    assert line == RecordLine(
        "compacted",
        {
            "message": "handoff\n",
            "replacement_history": ITEMS,
            "window_number": 2,
            "first_window_id": "a",
            "previous_window_id": "b",
            "window_id": "c",
        },
    )
    assert replacement_of(line.payload) == tuple(ITEMS)


def test_unknown_windows_are_left_out() -> None:
    payload = compacted([], Chain(number=2).opened("d")).payload

    assert list(payload) == ["message", "replacement_history", "window_number", "window_id"]
    assert compacted([], Chain()).payload == {"message": "", "replacement_history": []}


def test_token_count_of_the_new_window_follows_the_record_in_place() -> None:
    last: Json = {
        "type": "token_count",
        "info": {
            "total_token_usage": {**ZERO, "input_tokens": 900, "total_tokens": 1000, "odd": 1.5},
            "last_token_usage": {**ZERO, "total_tokens": 400},
            "model_context_window": 258_400,
        },
        "rate_limits": {"primary": {"used_percent": 12.0}},
    }
    chain = begun("a").opened("b")

    assert in_place(ITEMS, chain, 77, last) == (
        compacted(ITEMS, chain),
        RecordLine(
            "event_msg",
            {
                "type": "token_count",
                "info": {
                    "total_token_usage": {**ZERO, "input_tokens": 900, "total_tokens": 1000},
                    "last_token_usage": {**ZERO, "total_tokens": 77},
                    "model_context_window": 258_400,
                },
                "rate_limits": None,
            },
        ),
    )


@pytest.mark.parametrize("last", [None, {"type": "token_count", "info": None}])
def test_without_an_earlier_report_the_totals_begin_at_zero(last: Json | None) -> None:
    payload = token_count(5, last).payload

    info = object_of(payload["info"])
    assert (info["total_token_usage"], info["model_context_window"]) == (ZERO, None)
    report = item_of("event_msg", payload, bare=False)
    assert isinstance(report, Tokens)
    found = context(report, 0, Calibration(), stale=False)
    assert (found.tokens, found.source) == (5, "estimated")


def test_new_session_names_its_source_and_begins_its_own_windows() -> None:
    session = made()

    assert session.meta == {
        "session_id": "NEW",
        "id": "NEW",
        "forked_from_id": "SOURCE",
        "timestamp": "2026-11-20T09:46:08.372Z",
        "cwd": "/home/ana/shop",
        "originator": "codex-checkpoints",
        "cli_version": "0.169.0",
        "source": "cli",
        "model_provider": "openai",
        "history_mode": "paginated",
        "context_window": {"window_id": "A"},
        "base_instructions": {"text": "be kind"},
    }
    assert session.chain == Chain("A", "A", "B", 1)
    assert session.lines[0] == compacted(ITEMS, session.chain)


def test_new_session_is_named_by_a_task_that_no_model_sees() -> None:
    assert [line.payload for line in made().lines[1:]] == [
        {
            "type": "task_started",
            "turn_id": "TURN",
            "started_at": 1_795_167_968,
            "model_context_window": 258_400,
            "collaboration_mode_kind": "default",
        },
        {
            "type": "item_completed",
            "thread_id": "NEW",
            "turn_id": "TURN",
            "item": {
                "type": "UserMessage",
                "id": "ITEM",
                "content": [{"type": "text", "text": "Fix the login", "text_elements": []}],
            },
            "started_at_ms": 1_795_167_968_372,
            "completed_at_ms": 1_795_167_968_372,
        },
        {
            "type": "task_complete",
            "turn_id": "TURN",
            "last_agent_message": None,
            "started_at": 1_795_167_968,
            "completed_at": 1_795_167_968,
            "duration_ms": 0,
        },
    ]
    assert {line.type for line in made().lines[1:]} == {"event_msg"}


def test_legacy_session_is_named_by_an_event() -> None:
    session = made({**HEAD, "history_mode": "legacy"})

    assert session.meta["history_mode"] == "legacy"
    assert session.lines[2].payload == {
        "type": "user_message",
        "message": "Fix the login",
        "images": [],
        "local_images": [],
        "text_elements": [],
    }


@pytest.mark.parametrize(
    ("told", "listed"),
    [
        ("cli", "cli"),
        ("vscode", "vscode"),
        ("exec", "cli"),
        ("mcp", "cli"),
        ({"custom": "atlas"}, "cli"),
        ({"subagent": "review"}, "cli"),
        (None, "cli"),
    ],
    ids=str,
)
def test_session_that_codex_would_hide_is_listed(told: object, listed: str) -> None:
    assert made({**HEAD, "source": told}).meta["source"] == listed


def test_incomplete_head_becomes_one_that_codex_accepts() -> None:
    session = made({})

    assert session.meta == {
        "session_id": "NEW",
        "id": "NEW",
        "forked_from_id": "SOURCE",
        "timestamp": "2026-11-20T09:46:08.372Z",
        "cwd": "/home/ana/shop",
        "originator": "codex-checkpoints",
        "cli_version": "0.0.0",
        "source": "vscode",
        "history_mode": "legacy",
        "context_window": {"window_id": "A"},
    }


def test_new_session_has_thread_settings_with_its_newest_folder() -> None:
    applied: Json = {"cwd": "/home/ana/old", "model": "gpt-5.5"}
    told: Json = {
        "type": "thread_settings_applied",
        "thread_id": "SOURCE",
        "thread_settings": applied,
    }
    source = SourceSession(
        "SOURCE", "/home/ana/shop", HEAD, None, folder="/home/ana/new", thread_settings=told
    )
    session = new_session(ITEMS, source, NAMING, AT, ("NEW", "A", "B"))

    moved = {**told, "thread_id": "NEW", "thread_settings": {**applied, "cwd": "/home/ana/new"}}
    assert session.lines[-1] == RecordLine("event_msg", moved)
    assert session.meta["cwd"] == "/home/ana/shop"
    assert applied["cwd"] == "/home/ana/old"


def test_session_without_a_title_gets_a_name() -> None:
    source = SourceSession("SOURCE", "/home/ana/shop", HEAD, None)
    session = new_session(ITEMS, source, Naming(" \n", "T", "I"), AT, ("NEW", "A", "B"))

    (part,) = list_of(object_of(session.lines[2].payload["item"])["content"])
    assert object_of(part)["text"] == "Compacted session"
