"""Warnings of a compaction's preview that come from Codex's own files."""

import json

import pytest

from homes import Home, thread
from rollouts import assistant, record, response, rollout, session, tokens, turn, user

OURS = "python -P -X utf8 -m codex_checkpoints hook"


def work(number: int, comp_hash: str | None = None, version: str = "0.169.0") -> bytes:
    settings: dict[str, object] = {"turn_id": "t1", "cwd": "/home/ana/shop", "model": "gpt-5.5"}
    if comp_hash is not None:
        settings["comp_hash"] = comp_hash
    return rollout(
        session(thread=thread(number), cli_version=version),
        *(
            turn(user(f"Round {number}{each}."), assistant("I read it all. " * 400))
            for each in "ab"
        ),
        turn(record("turn_context", settings), user("Go on."), assistant("Done."), tokens(19_000)),
    )


def warned(home: Home, *more: str) -> list[str]:
    preview = home.json("compact", thread(1), "--dry-run", *more)
    return [each["code"] for each in preview["contents"]["warnings"]]


def hooks(home: Home, *commands: str) -> None:
    handlers = [{"type": "command", "command": each} for each in commands]
    text = json.dumps({"hooks": {"PreCompact": [{"hooks": handlers}]}})
    (home.root / "hooks.json").write_text(text, encoding="utf-8")


def test_user_hook_in_codexs_configuration_is_skipped_with_a_warning(
    home: Home,
) -> None:
    home.put(work(1))
    ran = home.user / "ran"
    hooks(home, f"touch {ran}", OURS)

    said = home.run("compact", thread(1), "--dry-run").stdout.decode()

    assert warned(home) == ["own_hooks"]
    assert (
        "Your PreCompact hook does not run: Codex runs such hooks only before its own compactions."
        in said
    )
    assert not ran.exists()


def test_our_own_hook_and_unreadable_files_cause_no_warning(home: Home) -> None:
    home.put(work(1))
    hooks(home, OURS)
    (home.root / "config.toml").write_text("[[[", encoding="utf-8")

    assert warned(home) == []


@pytest.mark.parametrize(
    ("version", "comp_hash", "expected"),
    [("0.146.1", "1", True), ("0.146.1", None, False), ("0.169.0", "1", False)],
)
def test_preview_warns_that_codex_may_compact_again_by_its_own_limit(
    home: Home, version: str, comp_hash: str | None, expected: bool
) -> None:
    home.put(work(1, comp_hash, version))

    assert warned(home, "--into", "in-place") == (["compacted_again"] if expected else [])
    assert warned(home) == []


def test_preview_warns_of_web_search_pages_in_the_tokens_in_use(home: Home) -> None:
    search = response("web_search_call", status="completed", action={"type": "search"})
    found = turn(user("Look it up."), search, assistant("Found."), tokens(90_000))
    home.put(work(1) + rollout(session(), found).split(b"\n", 1)[1])

    assert warned(home) == ["web_pages"]
    done = home.json("compact", thread(1), "--dry-run")
    assert done["tokensBefore"] == 90_000
    assert done["tokensBeside"] < 19_000


@pytest.mark.parametrize(
    ("repeats", "words"),
    [
        (1, "1 of your messages repeats a later one and appears once."),
        (2, "2 of your messages repeat a later one and appear once."),
    ],
)
def test_preview_counts_messages_that_repeat_a_later_one(
    home: Home, repeats: int, words: str
) -> None:
    turns = (turn(user("Go on with the totals."), assistant("I read it all. " * 400)),) * repeats
    home.put(
        rollout(
            session(thread=thread(1)),
            *turns,
            turn(user("Go on with the totals."), assistant("Done."), tokens(19_000)),
        )
    )

    warnings = home.json("compact", thread(1), "--dry-run")["contents"]["warnings"]

    assert [(each["count"], each["message"]) for each in warnings] == [(repeats, words)]
