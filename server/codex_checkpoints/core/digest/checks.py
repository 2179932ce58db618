"""Keeps the last outcome of each command that verified something, for `[CHECKS]`.

`core.shell.commands` alone decides which commands are checks.
"""

from __future__ import annotations

from attrs import Factory, define, evolve

from codex_checkpoints.core.digest.outcomes import telling_lines, tells_of_failure
from codex_checkpoints.core.digest.records import Check, CommandKey
from codex_checkpoints.core.digest.truncate import ends_of
from codex_checkpoints.core.effects import Run
from codex_checkpoints.core.events import Outcome
from codex_checkpoints.core.fields import renew
from codex_checkpoints.core.record_place import RecordPlace
from codex_checkpoints.core.shell.commands import covering, is_check, passed_by
from codex_checkpoints.core.shell.script import BEGIN

MOST = 1024
"""The most commands that are kept, the newest."""


@define
class Checks:
    """The last outcome of each check, and the place of the last pass by folder and program."""

    last: dict[CommandKey, Check] = Factory(dict[CommandKey, Check])
    passed: dict[CommandKey, RecordPlace] = Factory(dict[CommandKey, RecordPlace])
    _refused: dict[str, CommandKey] = Factory(dict[str, CommandKey])
    """By file, the check that reports its newest patch as refused."""

    def ran(self, run: Run, where: RecordPlace, folder: str, edits: int) -> None:
        """Record a command that ended in a folder, after `edits` edits."""
        outcome = run.outcome
        command = ends_of(run.script)
        called_off = (outcome.printed or "").startswith("aborted by user")
        is_patch = run.script.startswith(BEGIN)  # the agent gave a patch to the shell
        failed = bool(outcome.failed) and not called_off
        if is_patch or not is_check(run.script, failed=failed):
            self.last.pop((folder, command), None)
            return
        check = Check(where, command, covering(run.script), outcome, edits, run.seconds, folder)
        lines = self._keep(check)
        if outcome.failed is False and not tells_of_failure(lines):
            for program in passed_by(run.script):
                renew(self.passed, (folder, program), where, MOST)

    def refused(
        self, files: tuple[str, ...], outcome: Outcome, where: RecordPlace, edits: int
    ) -> None:
        """Record a patch that was not applied."""
        command = f"apply_patch {', '.join(files)}"
        self._keep(Check(where, command, (), evolve(outcome, failed=True), edits))
        self._refused.update(dict.fromkeys(files, ("", command)))

    def edited(self, *names: str) -> None:
        """Forget that the newest patch of a file was refused: the file has changed since."""
        for name in names:
            self.last.pop(self._refused.pop(name, ("", "")), None)

    def _keep(self, check: Check) -> tuple[str, ...]:
        """Keep a check with the output lines that report its result; return these lines."""
        # If the result is unknown, the last lines are the most informative.
        lines = telling_lines(check.outcome.printed or "", failed=check.outcome.failed is not False)
        kept = evolve(check, outcome=evolve(check.outcome, printed="\n".join(lines)))
        renew(self.last, check.key, kept, MOST)
        return lines
