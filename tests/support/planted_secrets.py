"""A session with a secret, an image and an encrypted text in every kind of record."""

from collections.abc import Iterator
from itertools import pairwise

from codex_checkpoints.core.checkpoint.redaction import MARK
from rollouts import (
    Form,
    assistant,
    compacted,
    event,
    image,
    mcp,
    patch,
    plan,
    reasoning,
    record,
    response,
    rollout,
    session,
    shell,
    tokens,
    turn,
    turn_context,
    user,
)
from secret_examples import SECRETS

TOKEN = "ghp" + "_" + "a1B2" * 9
"""It has the form of a key, and it is none."""


def everything(secret: str = TOKEN, form: Form = "paginated", **head: object) -> bytes:
    """Write a session that holds a secret in every kind of record."""
    return rollout(
        session(
            form,
            base_instructions={"text": f"be {secret}"},
            git={"branch": f"b-{secret}", "repository_url": f"https://ana:{secret}@example.com/x"},
            **head,  # type: ignore[arg-type]
        ),
        turn(
            user(f"why {secret}?", images=1),
            turn_context(cwd=f"/home/ana/{secret}"),
            reasoning(f"hm {secret}"),
            shell(f"echo {secret}", f"out {secret}"),
            patch(add=f"{secret}.py", content=f"x = '{secret}'\n"),
            plan((f"use {secret}", False)),
            mcp("server", "tool", f"got {secret}", {"q": secret}),
            image(f"/home/ana/{secret}.png"),
            assistant(f"done {secret}"),
            tokens(100),
        ),
        compacted(f"summary {secret}", [{"type": "message", "role": "user", "content": secret}]),
        event("error", message=f"failed {secret}"),
        response("web_search_call", action={"query": secret}),
        response("reasoning", summary=[], encrypted_content=f"gAAAA{secret}"),
        record("world_state", {"state": {"k": [secret]}}),
        record("unknown_of_tomorrow", {"x": {secret: [secret, {"y": secret}]}}),
    )


def every_form(**head: object) -> bytes:
    """Write a session that holds a secret of every form: in a prompt, a result and an answer.

    There is no private key in it, since a push refuses it.
    """
    steps = (
        turn(user(f"a {text}"), shell("env", text), assistant(f"so {text}"), name=f"n{number}")
        for number, text in enumerate(text for text, _ in _PUSHED)
    )
    return rollout(session(**head), *steps)  # type: ignore[arg-type]


_PUSHED = [(text, left) for _, text, left in SECRETS if "PRIVATE KEY" not in text]

_SHORTEST = 6


def planted() -> list[str]:
    """Return the secrets of `every_form`, without those that a word may hold by chance."""
    found = {part for text, left in _PUSHED for part in _taken(text, left)}
    return sorted(part for part in found if len(part) >= _SHORTEST)


def _taken(text: str, left: str) -> Iterator[str]:
    """Yield the parts of a text in whose place a `•` is left."""
    start = 0
    kept = left.replace(MARK, "•").split("•")
    for before, after in pairwise(kept):
        start += len(before)
        end = text.find(after, start) if after else len(text)
        yield text[start:end]
        start = end
