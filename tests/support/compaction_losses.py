"""Losses of the compactions of a session, in one call, and each in one word."""

from collections.abc import Iterable, Mapping, Sequence

from codex_checkpoints.core.losses.file_activity import Loss
from codex_checkpoints.core.losses.loss_report import LossReport
from derived_state import accepted, read_with


def losses(
    data: bytes,
    updates: Iterable[Mapping[str, object]] = (),
    *,
    pieces: Sequence[int] = (),
) -> tuple[Loss, ...]:
    """Return what the compactions of a file lost."""
    return read_with(LossReport(accepted(updates)), data, pieces).losses()


def lost_by_name(loss: Loss) -> dict[str, bool | None]:
    """Return what was there by its name, and whether it is lost."""
    task = {} if loss.task is None else {f"task {loss.task.text}": loss.task.lost}
    steps = {f"step {each.text}": each.lost for each in loss.open_plan_steps}
    files = {f"{each.change} {each.uri}": each.lost for each in loss.edited_files}
    commands = {f"run {each.command}": each.lost for each in loss.failing_commands}
    return task | steps | files | commands


def read_again(loss: Loss) -> tuple[int, int, int]:
    """Return the reads behind a compaction, those of unchanged files, and what these printed."""
    return loss.reads, loss.rereads_unchanged, loss.bytes
