"""Reads calls and outputs: the scripts, patches and dialogs that digest and recall quote."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from attrs import evolve

from codex_checkpoints.core.agents.codex.call_texts import OURS, json_in, script_of, written
from codex_checkpoints.core.digest.ignored_files import PATCHED
from codex_checkpoints.core.effects import patch_in
from codex_checkpoints.core.events import CommandRun, Outcome, ToolCall, ToolResult
from codex_checkpoints.core.fields import (
    Json,
    list_of,
    object_of,
    text_of,
    texts_of,
    words_of,
)
from codex_checkpoints.core.shell import javascript, posix
from codex_checkpoints.core.shell.script import BEGIN, split, writes_into

_GOALS = {"create_goal", "get_goal", "goal_objective", "update_goal"}  # it is a request
SILENT = OURS | _GOALS | {"update_plan", "write_stdin", "wait"}
_ANEW: Final = frozenset({">", ">|", "&>", ">&"})
_REFUSED: Final = re.compile(
    "(?:error: |apply_patch verification failed|Failed to |Invalid |patch rejected|execution error"
    "|unsupported (?:custom tool )?call: |rejected by user|aborted)"
)
"""The first words of an answer to a patch that was not applied."""

_OPENS_TEXT: Final = re.compile(r"<<|@['\"]\s*$")
"""A line that begins a heredoc, or a text of several lines in PowerShell."""

_HEADING: Final = re.compile(r"\*\*\* ((?:Add|Update|Delete) File|Move to): (.+)")


_NOTIFICATION: Final = re.compile(
    r"\s*<subagent_notification>(.*)</subagent_notification>\s*", re.DOTALL
)


def written_anew(item: ToolCall | ToolResult) -> frozenset[str]:
    """Return the files that the redirections in a command's script overwrite."""
    script = posix.script_of(item.argv) if isinstance(item, CommandRun) else script_of(item)
    redirects = (each for part in split(script or "") or () for each in writes_into(part))
    return frozenset(each.target.text for each in redirects if each.operator in _ANEW)


def is_refusal(outcome: Outcome) -> bool:
    """Return whether the answer to a patch says that the patch was not applied."""
    text = outcome.printed or ""
    return "Success." not in text and bool(outcome.failed or _REFUSED.match(text))


def patched_in(text: str) -> tuple[str, ...]:
    """Return the files that a patch names."""
    return tuple(dict.fromkeys((old or new).strip() for old, new in PATCHED.findall(text)))


def files_of_patch(
    lines: str, name: Callable[[str], str]
) -> tuple[str, list[tuple[tuple[str, ...], str]]]:
    """Return the text around the patch in the lines of a call, and the patch by file.

    Each file comes with its names, as `name` returns them, and with its headings and rows.
    """
    around, files = list[str](), list[tuple[list[str], list[str]]]()
    inside = closes = False
    for line in lines.split("\n"):
        if BEGIN in line:
            inside, closes = True, bool(around) and _OPENS_TEXT.search(around[-1]) is not None
            if closes:
                around.pop()
        elif line.startswith("*** End Patch"):
            inside = False
        elif inside:
            if heading := _HEADING.match(line):
                files += [] if files and heading[1] == "Move to" else [([], [])]
                named = name(heading[2].strip())
                files[-1][0].append(named)
                files[-1][1].append(f"*** {heading[1]}: {named}")
            elif files:
                files[-1][1].append(line)
        elif closes:
            closes = False  # the line that ends the text
        else:
            around.append(line)
    return "\n".join(around), [(tuple(names), "\n".join(rows)) for names, rows in files]


def calls_in(call: ToolCall) -> list[str]:
    """Return the commands and patches of a code-mode script, none if any is not literal.

    For other calls return the arguments, since they may name a file that is never quoted.
    """
    # The import is slow, and many sessions have no such script.
    calls, unread = javascript.literal_calls(str(call.arguments))
    inner = (evolve(call, name=each.name, arguments=each.argument) for each in calls)
    found = [
        patch_in(each.arguments) or script_of(each) or written(each.arguments)
        for each in inner
        if each.arguments and each.name not in SILENT
    ]
    return [] if unread else found


def chosen_in(asked: Json, told: Json) -> str:
    """Return the user's choices in a dialog, one line per question, without secret questions."""
    answers, lines = object_of(told.get("answers")), list[str]()
    for question in map(object_of, list_of(asked.get("questions"))):
        chosen = words_of(object_of(answers.get(text_of(question.get("id")) or "")).get("answers"))
        if chosen and not question.get("isSecret"):
            # One line, the user's choice first: a question could contain a line of the same form.
            line = (
                f"chosen: {', '.join(chosen)} (asked: {text_of(question.get('question')) or '?'})"
            )
            lines.append(" ".join(line.split()))
    return "\n".join(lines)


def quoted_lines(arguments: str) -> tuple[str, str]:
    """Return the lines of the command or patch in the arguments of a call, and the other arguments.

    The lines are unescaped, the other arguments are JSON.
    """
    given = json_in(arguments)
    key = next((key for key in ("command", "cmd", "input", "patch") if key in given), "")
    words = words_of(given.get(key))
    script = words[-1] if words else text_of(given.get(key))
    if script is None:
        return arguments, ""
    others = (each for each in given if each not in {key, "justification"})
    return script.rstrip("\n"), " ".join(f"{each}={written(given[each])}" for each in others)


def texts_handed_over(arguments: str) -> tuple[str, str] | None:
    """Return the short arguments of a call and the lines of the long ones, None without long ones.

    Editing tools pass the text of a file.  The replaced text (`old_string`) is left out.
    """
    given = json_in(arguments)
    long = {key: value for key, value in given.items() if "\n" in (text_of(value) or "")}
    if not long:
        return None
    short = " ".join(f"{key}={written(given[key])}" for key in given if key not in long)
    return short, "\n".join(str(long[key]) for key in long if not key.startswith("old"))


def notification_in(payload: Json) -> Json:
    """Return the notification in a message about an ended subagent; empty if there is none."""
    found = _NOTIFICATION.fullmatch("\n".join(texts_of(payload.get("content"))))
    return {} if found is None else json_in(found[1].strip())
