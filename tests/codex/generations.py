"""One small session as several generations of Codex wrote it: the same story, other lines.

Somebody has the login fixed and asks about the logout; the model runs a command, makes a plan and
talks at length.  What differs is what surrounds that, as it was seen in files of each version.
"""

import json
from collections.abc import Mapping

from rollouts import (
    FOLDER,
    THREAD,
    WINDOW,
    Step,
    Writer,
    assistant,
    call,
    complete,
    environment,
    event,
    injected,
    output,
    plan,
    record,
    rollout,
    session,
    shell,
    started,
    turn_context,
    user,
)

FIRST, SECOND = "Fix the login, größer 日本 🙂", "And the logout as well, please."
WORK = "I read it all, and this is what I saw. " * 200
GENERATIONS = ("0.169", "0.140", "0.98", "0.44")
"""Those that Codex still resumes; the oldest form, `bare`, it does not."""

FULL = WINDOW + 12_000
"""More tokens than the window holds."""


def written_by(generation: str, used: int = 9_000) -> bytes:
    """Write the session; its last call of the model used so many tokens."""
    match generation:
        case "0.169":
            begin = session(model_provider="scripted")
            return rollout(begin, *_tasks(used))
        case "0.140":
            begin = _head("0.140.0", model_provider="scripted")
            return rollout(begin, *_tasks(used))
        case "0.98":
            begin = _head("0.98.0", model_provider="scripted")
            return rollout(begin, *_without_tasks("shell_command", "make test", used))
        case "0.44":
            begin = _head("0.44.0", instructions=None)
            return rollout(begin, *_without_tasks("shell", ["bash", "-lc", "make test"], used))
        case _:
            first, second = (user(FIRST), *_DONE, assistant(WORK)), (user(SECOND), assistant(WORK))
            return rollout(session(form="bare"), environment(), *first, *second)


_CONTEXT = (
    injected("<permissions instructions>\nall\n</permissions instructions>", role="developer"),
    environment(),
)
_PLAN = plan(("Read it", True), ("Fix it", False))
_DONE = (shell("make test", "ok"), _PLAN)


def _tasks(used: int) -> tuple[Step, ...]:
    """Tell the story in tasks that begin and end, as from some version on."""
    return (
        started(),
        *_CONTEXT,
        turn_context(),
        user(FIRST),
        *_DONE,
        assistant(WORK),
        _used(9_000),
        complete(),
        started(),
        turn_context(),
        user(SECOND),
        assistant(WORK),
        _used(used),
        complete(),
    )


def _without_tasks(tool: str, command: object, used: int) -> tuple[Step, ...]:
    """Tell it as before there were tasks: settings many times, the context at each resume again."""
    told = json.dumps({"output": "ok", "metadata": {"exit_code": 0, "duration_seconds": 0.1}})
    return (
        *_CONTEXT,
        user(FIRST),
        turn_context(),
        event("token_count", info=None, rate_limits=None),
        call(tool, {"command": command}, "call_1"),
        output("call_1", told),
        turn_context(),
        _used(9_000),
        _PLAN,
        turn_context(),
        assistant(WORK),
        _used(9_000),
        *_CONTEXT,
        user(SECOND),
        turn_context(),
        assistant(WORK),
        _used(used),
    )


def _head(version: str, **more: object) -> Step:
    """Begin a file of a version that knew but one form, and so does not name it."""

    def write(writer: Writer) -> None:
        writer.form, writer.thread, writer.folder = "legacy", THREAD, FOLDER
        told: Mapping[str, object] = {
            "id": THREAD,
            "timestamp": "2026-11-20T10:00:00.000Z",
            "cwd": FOLDER,
            "originator": "codex_cli_rs",
            "cli_version": version,
            "source": "cli",
            **more,
        }
        record("session_meta", told)(writer)

    return write


def _used(total: int) -> Step:
    """State what the last call used, with all the fields that Codex wants to see."""
    used = {
        "input_tokens": total - 100,
        "cached_input_tokens": 0,
        "output_tokens": 100,
        "reasoning_output_tokens": 0,
        "total_tokens": total,
    }
    info = {"total_token_usage": used, "last_token_usage": used, "model_context_window": WINDOW}
    return event("token_count", info=info, rate_limits=None)
