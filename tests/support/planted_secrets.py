"""A session with a secret, an image and an encrypted text in every kind of record."""

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
