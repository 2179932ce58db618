"""Read calls and their outputs: the scripts, patches and dialogs that digest and recall quote."""

from __future__ import annotations

import orjson

from codex_checkpoints.core.digest.cutting import GAP
from codex_checkpoints.core.digest.ignoring import PATCHED
from codex_checkpoints.core.digest.outcomes import patch_in
from codex_checkpoints.core.rollout import shell
from codex_checkpoints.core.rollout.fields import (
    Json,
    list_of,
    load,
    object_of,
    text_of,
    texts_of,
    words_of,
)
from codex_checkpoints.core.rollout.items import CommandRun, Item, ToolCall
from codex_checkpoints.values import evolve

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
OURS = frozenset({"memory_read", "memory_apply", "memory_recall"})
SILENT = OURS | {"update_plan", "write_stdin", "wait"}
DIALOG = "request_user_input"


def script_of(item: Item) -> str | None:
    """Return the script of a command's call."""
    if not isinstance(item, ToolCall) or not item.is_command:
        return None
    arguments = object_of(item.arguments)
    command = arguments.get("command", arguments.get("cmd"))
    words = words_of(command)
    return shell.script_of(words) if words is not None else text_of(command)


def script_run(item: Item) -> str | None:
    """Return the script of a command's call, or of the command that ran."""
    return shell.script_of(item.argv) if isinstance(item, CommandRun) else script_of(item)


def output_of(payload: Json) -> str:
    """Return the text of an output as it is recorded; very old files have it in an object."""
    output = payload.get("output")
    if isinstance(output, str):
        return output
    return "\n".join(texts_of(object_of(output).get("content", output)))


def patched_in(text: str) -> tuple[str, ...]:
    """Return the files that a patch names."""
    return tuple(dict.fromkeys((old or new).strip() for old, new in PATCHED.findall(text)))


def calls_in(call: ToolCall) -> list[str]:
    """Return the commands and patches of a code-mode script, none where one is not literal.

    Of other calls the arguments stand: they may name a file that is never quoted.
    """
    # The module takes time to load, and many sessions have no such script.
    from codex_checkpoints.core.rollout import javascript  # noqa: PLC0415

    calls, unread = javascript.literal_calls(str(call.arguments))
    inner = (evolve(call, name=each.name, arguments=each.argument) for each in calls)
    found = [
        patch_in(each.arguments) or script_of(each) or written(each.arguments)
        for each in inner
        if each.arguments and each.name not in SILENT
    ]
    return [] if unread else found


def chosen_in(asked: Json, told: Json) -> str:
    """Return what the user chose in a dialog, a line a question; nothing of secret ones."""
    answers, lines = object_of(told.get("answers")), list[str]()
    for question in map(object_of, list_of(asked.get("questions"))):
        chosen = words_of(object_of(answers.get(text_of(question.get("id")) or "")).get("answers"))
        if chosen and not question.get("isSecret"):
            # In one line, and first what is the user's: the question could hold such a line, too.
            line = (
                f"chosen: {', '.join(chosen)} (asked: {text_of(question.get('question')) or '?'})"
            )
            lines.append(" ".join(line.split()))
    return "\n".join(lines)


def secrets_of(asked: Json) -> frozenset[str | None]:
    """Return the ids of the secret questions of a dialog."""
    questions = map(object_of, list_of(asked.get("questions")))
    return frozenset(text_of(each.get("id")) for each in questions if each.get("isSecret"))


def without_answers(told: str, ids: frozenset[str | None]) -> str:
    """Return what a dialog told, without the answers to some of its questions."""
    answers = object_of(json_in(told).get("answers"))
    return written({"answers": {each: answers[each] for each in answers if each not in ids}})


def quoted_lines(arguments: str) -> str:
    """Return the lines of the command in the arguments of a call, and then the other arguments.

    They are as JSON writes them: so the next call is written as well.
    """
    given = json_in(arguments)
    key = next((key for key in ("command", "cmd", "input", "patch") if key in given), "")
    words = words_of(given.get(key))
    script = words[-1] if words else text_of(given.get(key))
    if script is None:
        return arguments
    others = (f"{other}={written(given[other])}" for other in given if other != key)
    return "\n".join([*map(written, script.split("\n")), " ".join(others)])


def written(value: object) -> str:
    """Return a value as JSON writes it, a text without its quotation marks."""
    try:
        line = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # too deep
        return GAP.strip()
    return line[1:-1] if isinstance(value, str) else line


def json_in(text: str) -> Json:
    """Return the JSON object of a text; empty where it is none."""
    return object_of(load(text.encode(errors="replace"))) if text.startswith("{") else {}
