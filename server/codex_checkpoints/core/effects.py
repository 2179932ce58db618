"""Reads the effects of a call that ended: files, commands, and the rows of its patches.

This is the only account of files: the checkpoint, the digest, the changes, the timeline, the losses
and the search for files all use it.  A move to itself is an update; a file that one patch deletes
and adds again counts as rewritten; the rows of a patch that moves a file belong to its new name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex import tools
from codex_checkpoints.core.agents.codex.call_texts import patch_in
from codex_checkpoints.core.agents.codex.items import (
    answered_whole,
    outcome_in,
    outcome_of,
    printed_whole,
    seconds_in,
)
from codex_checkpoints.core.events import (
    EDITS,
    UNKNOWN,
    Action,
    CallEnded,
    CommandRun,
    FilesChanged,
    Outcome,
    Seen,
    ToolCall,
    ToolResult,
)
from codex_checkpoints.core.paths import uri_of
from codex_checkpoints.core.shell import javascript, posix

_HEADER: Final = re.compile(r"\*\*\* (?:Add|Update|Delete) File:(.*)")


@frozen
class Touched:
    """The effect of a call on one file; its patch lists the rows of the file under `name`.

    `rewrites`: it replaces the whole content.  `moved_from` and `moved_to` are uris, the other
    end of a move.  `onto` is the uri of the target of a copy or a move by a command: if it is a
    folder, it is not a file of that name.  `added` is the hash of the whole text of a file that a
    patch added.
    """

    uri: str
    name: str
    action: Action
    rewrites: bool = False
    moved_from: str | None = None
    moved_to: str | None = None
    onto: str | None = None
    added: str | None = None

    @property
    def edits(self) -> bool:
        """Return whether the file was changed."""
        return self.action in EDITS


@frozen
class Run:
    """A command that ended, in the folder that its call names; `seconds` if they were looked up.

    Nothing is known about the outcome of one command among several of a code-mode script.
    """

    script: str
    outcome: Outcome
    folder: str | None
    seconds: float | None = None


class Effects:
    """The effects of a call that ended, each read on first use."""

    def __init__(self, ended: CallEnded) -> None:
        """Read nothing yet."""
        self.ended = ended

    @cached_property
    def seen(self) -> tuple[Seen, ...]:
        """Everything that it touched, as the call names it."""
        return seen_in(self.ended.call, self.ended.texts, shortened=self.ended.shortened)

    @cached_property
    def outcome(self) -> Outcome:
        """How its command ended; unknown if a script of code mode made several calls."""
        return outcome_in_call(self.ended.call, self.ended.texts)

    def uri_of(self, name: str, folder: str | None) -> str | None:
        """Return the uri of a file that the call names; `folder` is the one of the call."""
        ended = self.ended
        found = uri_of(name, folder=folder, turn_folder=ended.folder, base=ended.base)
        return None if found is None else found.uri

    @cached_property
    def named(self) -> tuple[tuple[Seen, str], ...]:
        """The files that it touched with their uris, also those that count on a condition."""
        named = ((each, self.uri_of(each.name, each.folder)) for each in self.seen if each.is_file)
        return tuple((each, uri) for each, uri in named if uri is not None)

    @cached_property
    def files(self) -> tuple[Touched, ...]:
        """The files that it certainly touched, in its order."""
        return tuple(self._touched())

    def _touched(self) -> Iterator[Touched]:
        # An effect that counts only if something exists there now is not certain.
        files = [
            (each, uri)
            for each, uri in self.named
            if each.only_if is None or each.only_if[0] == "no folder"
        ]
        rewritten = {self.uri_of(name, None) for name in self.ended.rewritten}
        added = {uri for each, uri in files if each.action == "add"}
        again = {uri for each, uri in files if each.action == "delete" and uri in added}
        source: tuple[Seen, str] | None = None
        for each, uri in files:
            onto = None if each.only_if is None else self.uri_of(each.only_if[1], each.folder)
            if each.action == "move" and source is None:
                source = each, uri
            elif each.action == "move" and source is not None:
                (first, start), source = source, None
                if start == uri:
                    yield Touched(uri, first.name, "update", onto=onto)
                else:
                    yield Touched(start, each.name, "move", moved_to=uri, onto=onto)
                    yield Touched(uri, first.name, "move", moved_from=start, onto=onto)
            elif each.action == "add" and (uri in again or uri in rewritten):
                yield Touched(uri, each.name, "update", rewrites=True, added=each.hash)
            elif uri not in again:
                rewrites = each.action in {"add", "delete"}
                yield Touched(uri, each.name, each.action, rewrites, onto=onto, added=each.hash)
        if source is not None:  # the other end's name cannot be kept
            yield Touched(source[1], source[0].name, "move")

    @cached_property
    def edits(self) -> tuple[Touched, ...]:
        """The files that it certainly changed."""
        if not any(each.action in EDITS for each in self.seen):
            return ()  # most commands only look, and a uri takes time
        return tuple(each for each in self.files if each.edits)

    @cached_property
    def may_have_changed_more(self) -> bool:
        """Whether it ran a command that may have changed files without naming them."""
        return any(each.more for each in self.seen)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The commands that ended with it, without running ones.

        A person's own commands are left out as well: they verify nothing for the agent.
        """
        call = self.ended.call
        if isinstance(call, CommandRun):
            found = Run(posix.script_of(call.argv), self.outcome, call.folder)
            counts = found.outcome.failed is not None and not call.by_user
            return (found,) if counts else ()
        if not isinstance(call, ToolCall):
            return ()
        commands = tools.commands_of(call)
        runs = tuple(
            Run(posix.script_of(each.argv), self.outcome, each.folder) for each in commands
        )
        return runs if call.is_script or self.outcome.failed is not None else ()

    @property
    def seconds(self) -> float | None:
        """How long its command took, if that is recorded."""
        call = self.ended.call
        return call.seconds if isinstance(call, CommandRun) else seconds_in(self.ended.texts)

    @cached_property
    def printed_file(self) -> tuple[str | None, str | None]:
        """The text of the file that it only printed, and its hash if the text is complete."""
        if not tools.are_one_cat(self.seen):
            return None, None
        call = self.ended.call
        if isinstance(call, CommandRun):
            return self.outcome.printed, printed_whole(self.outcome)
        return outcome_in(self.ended.texts).printed, answered_whole(self.ended.texts)

    @cached_property
    def rows(self) -> dict[str, list[str]]:
        """The rows of the hunks that it has for each file, by the path in the call."""
        found: dict[str, list[str]] = {}
        call = self.ended.call
        if isinstance(call, FilesChanged):
            for each in call.changes:
                content = each.content or ""
                sign = "-" if each.kind == "delete" else "+"
                diff = each.diff or "".join(f"{sign}{row}\n" for row in content.splitlines())
                begin = 0 if content else max(0, diff.find("@@"))  # the text before is a heading
                found[each.path] = diff[begin:].removesuffix("\n").split("\n") if diff else []
        elif isinstance(call, ToolCall | CommandRun):
            current: list[str] | None = None
            for row in _patches_of(call).split("\n"):
                header = _HEADER.match(row)
                if header is not None:
                    current = found.setdefault(header[1].strip(), [])
                elif row.startswith("*** End Patch"):
                    current = None
                elif current is not None and not row.startswith("***"):
                    current.append(row)
        return found

    @cached_property
    def contents(self) -> dict[str, str]:
        """The whole text of each file that it added or deleted, by the path in the call."""
        call = self.ended.call
        changes = call.changes if isinstance(call, FilesChanged) else ()
        return {each.path: each.content for each in changes if each.content is not None}


def seen_in(
    call: ToolCall | ToolResult, texts: tuple[str, ...], *, shortened: bool
) -> tuple[Seen, ...]:
    """Return everything that a call touched; the hash of a shortened text is not known."""
    if isinstance(call, ToolCall):
        seen = tools.called(call, texts, shortened=shortened)
    else:
        seen = tools.seen_by(call, shortened=shortened)
    return tuple(evolve(each, hash=None) for each in seen) if shortened else seen


def outcome_in_call(call: ToolCall | ToolResult, texts: tuple[str, ...]) -> Outcome:
    """Return how the command of a call ended; unknown for other calls."""
    if isinstance(call, CommandRun):
        return outcome_of(call)
    return tools.answer_to(call, texts) if isinstance(call, ToolCall) else UNKNOWN


def _patches_of(item: ToolCall | CommandRun) -> str:
    """Return the patches of a call; of a code-mode script, only the literal ones."""
    if isinstance(item, CommandRun):
        return patch_in({"": list(item.argv)})
    if not item.is_script:
        return patch_in(item.arguments)
    calls, _ = javascript.literal_calls(str(item.arguments))
    return "\n".join(patch_in(each.argument) for each in calls)
