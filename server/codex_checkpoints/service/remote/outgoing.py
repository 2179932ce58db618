"""Reads the data of a session to send: its resolved lines, redacted, with an account of them.

The chain of rollouts is flattened: the lines of the bases up to their cuts, then the session's own.
The head is the session's, without its reference to a base; the heads in between become quiet
records, so that positions and ordinals stay.
"""

from __future__ import annotations

import fnmatch
import gc
import os
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

import orjson
from attrs import frozen

from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.fields import load, object_of
from codex_checkpoints.core.portable.pack import to_bytes
from codex_checkpoints.core.portable.pack_export import packed
from codex_checkpoints.core.portable.redacted_lines import (
    PRIVATE_KEY,
    LineRedactor,
    LongText,
    quiet_line,
)
from codex_checkpoints.core.portable.said_reader import SaidReader
from codex_checkpoints.service.packs import contents_of
from codex_checkpoints.service.reading.session_file import Fingerprint, bases_below
from codex_checkpoints.service.reading.session_row import row_of
from codex_checkpoints.service.refusal import Refusal, keeping, reading_file
from codex_checkpoints.service.remote.unchanged import inputs_of
from codex_checkpoints.service.restore.branch_copy import (
    CopiedPart,
    part_of,
    parts_below,
    whole_history,
)
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.remote.spool import SaidWriter, Spool, Spooled, SpooledSaid

MOST_SECRETS = 20
"""A session with more secrets needs a person's consent."""

_MOST_PLACES = 10

_LARGE = 1 << 24
"""From this size on a state needs more memory than a collection needs time."""


@frozen
class Outgoing:
    """The data of one session to send: `size` bytes of `history`, which end with `prefix`.

    `inputs` is a digest of its sources, `own` the session's own file as it was read.  `is_cut`: it
    has later lines, which are left out.  `title`, `task`, `cwd`, `branch` and `repository` are
    redacted, and so are `records`.  `said` are the texts for a search, None for a remote without an
    index.
    """

    row: Row
    inputs: str
    own: CopiedPart
    is_cut: bool
    history: Spooled
    said: SpooledSaid | None
    lines: int
    size: int
    prefix: str
    secrets: dict[str, int]
    left_out: dict[str, int]
    longest: tuple[LongText, ...]
    lost_summary: bool
    records: bytes
    seq_shift: int
    title: str | None
    task: str | None
    cwd: str | None
    branch: str | None
    repository: str | None

    @property
    def session_id(self) -> str:
        """Return the id of the session."""
        return self.row.session_id


def outgoing(  # noqa: PLR0913 - a session, and how it leaves
    sessions: Sessions,
    session: str,
    homes: Collection[str],
    spool: Spool,
    *,
    allow_redacted: bool = False,
    lines: int | None = None,
    indexed: bool = False,
) -> Outgoing:
    """Read a session, its notes and its markers in their outgoing form, into a spool.

    `homes` are home folders here; no record names them.  `lines` cuts the history.  `indexed`: the
    remote has an index of texts.

    Refuses as `find`, `unreadable_source`, `never_pushed` for a folder in `neverPush`,
    `secret_text` for a private key, and for more than `MOST_SECRETS` secrets unless they are
    allowed, and `storage_error`.  Raises `Cancelled`.
    """
    row = sessions.own(session)
    _refuse_never_pushed(sessions.settings.never_push, row, homes)
    inputs = inputs_of(sessions, row)  # before reading: the session may grow meanwhile
    with reading_file(row), keeping("redacted lines", row.session_id):
        parts = _parts(sessions, row)
        redactor, reading = LineRedactor(), Fingerprint()
        kept = SaidWriter(spool)
        collector = (
            SaidReader(Ignoring(sessions.settings.digest_ignore), kept.add) if indexed else None
        )
        whole = whole_history(sessions.catalogue.reader, parts)
        leaving = _redacted_lines(sessions, row, islice(whole, lines), redactor)
        history = spool.add(_counted(leaving, reading, collector))
        said = (
            None
            if collector is None
            else kept.close(collector.numbers(), without_copies=collector.typed)
        )
        collector = None
        if reading.size >= _LARGE:
            gc.collect()  # its state has cycles, and is as large as the next one
        is_cut = next(whole, None) is not None
        opened = sessions.catalogue.read(row, redactor.lines)
        row = row_of(row.rollout, opened)
        now = opened.now()
        pack, _ = packed(contents_of(sessions, row, opened, {}, now.seq if is_cut else None), homes)
    _, git_branch, git_url = orjson.loads(row.git) if row.git else (None, None, None)
    texts = (sessions.title(row), row.task, row.folder or None, git_branch)
    title, task, cwd, branch = map(redactor.text, texts)
    repository = redactor.url(git_url)
    _refuse_secrets(row, redactor, allow_redacted=allow_redacted)
    return Outgoing(
        row,
        inputs,
        parts[-1],
        is_cut,
        history,
        said,
        redactor.lines,
        reading.size,
        reading.digest.removeprefix("sha256:"),
        redactor.kinds,
        dict(sorted(redactor.left_out.items())),
        redactor.longest,
        redactor.lost_summary,
        to_bytes(pack),
        now.scale.shift,
        title,
        task,
        cwd,
        branch,
        repository,
    )


def _counted(
    lines: Iterable[bytes], reading: Fingerprint, texts: SaidReader | None
) -> Iterator[bytes]:
    """Yield lines unchanged; add their bytes to a count and a hash, and collect their texts."""
    for line in lines:
        reading.add(line)
        if texts is not None:
            texts.feed(line)
        yield line
    if texts is not None:
        texts.close()


def _redacted_lines(
    sessions: Sessions, row: Row, lines: Iterable[bytes], redactor: LineRedactor
) -> Iterator[bytes]:
    """Yield the lines of a history in their outgoing form, each with its LF.

    Raises `UnreadableSource`, at the end also for a file that changed since it was planned.
    """
    own = sessions.catalogue.reader.first_line(row.path).rstrip(b"\r\n")
    for number, line in enumerate(lines, 1):
        sessions.progress.step()
        if number == 1:
            leaving = _resolved_head(own, line)
        elif b'"session_meta"' in line and object_of(load(line)).get("type") == "session_meta":
            leaving = quiet_line(line)
        else:
            leaving = line
        yield redactor.redacted(leaving) + b"\n"


def is_never_pushed(globs: Iterable[str], row: Row, homes: Iterable[str]) -> bool:
    """Return whether a session is in a folder that a glob names, or in one below it."""
    return _never_pushed_by(globs, row, homes) is not None


def _never_pushed_by(globs: Iterable[str], row: Row, homes: Iterable[str]) -> str | None:
    folders = [_plain(folder) for folder in (row.folder, row.base) if folder]
    above = {each for folder in folders for each in _with_those_above(folder)}
    for glob in globs:
        wanted = {_plain(_in_home(glob, home)) for home in homes}
        if any(fnmatch.fnmatchcase(each, pattern) for each in above for pattern in wanted):
            return glob
    return None


def _refuse_never_pushed(globs: Iterable[str], row: Row, homes: Iterable[str]) -> None:
    glob = _never_pushed_by(globs, row, homes)
    if glob is not None:
        message = f"session {row.session_id} is in a folder that is never pushed"
        hint = f"The setting neverPush has {glob!r}."
        raise Refusal(
            "never_pushed", message, {"sessionId": row.session_id, "glob": glob, "hint": hint}
        )


def _plain(path: str) -> str:
    return os.path.normcase(os.path.normpath(path))


def _in_home(glob: str, home: str) -> str:
    return home + glob[1:] if glob == "~" or glob.startswith("~/") else glob


def _with_those_above(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _parts(sessions: Sessions, row: Row) -> tuple[CopiedPart, ...]:
    """Return the files of a history, the most distant base first; raises `UnreadableSource`."""
    reader, locate = sessions.catalogue.reader, sessions.catalogue.chains.locator(row.path)
    _, problems = bases_below(reader, row.path, locate)
    if problems:
        raise _not_whole(row, "a file that its history begins with is missing")
    sessions.progress.expect(sessions.catalogue.chains.weight(row))
    parts = (*parts_below(reader, row.path, locate), part_of(reader, row.path))
    for part in (parts[0], parts[-1]):
        head = head_of(reader.first_line(part.path))
        if head is None or head.bare:
            raise _not_whole(row, "an old Codex wrote it, without a head that others can read")
    return parts


def _not_whole(row: Row, reason: str) -> Refusal:
    message = f"session {row.session_id} cannot be pushed: {reason}"
    return Refusal("unreadable_source", message, {"sessionId": row.session_id, "reason": reason})


def _resolved_head(own: bytes, first: bytes) -> bytes:
    """Return the head of a session without its base, with the ordinal of the first line."""
    record = object_of(load(own))
    payload = object_of(record.get("payload"))
    if "history_base" not in payload:
        return own
    ordinal = object_of(load(first)).get("ordinal")
    payload = {key: value for key, value in payload.items() if key != "history_base"}
    numbered = {} if ordinal is None else {"ordinal": ordinal}
    return orjson.dumps({**record, **numbered, "payload": payload})


def _refuse_secrets(row: Row, redactor: LineRedactor, *, allow_redacted: bool) -> None:
    facts: dict[str, object] = {
        "sessionId": row.session_id,
        "kinds": redactor.kinds,
        "places": [f"#{each.line} {each.kind}" for each in redactor.secrets[:_MOST_PLACES]],
    }
    keys = [each for each in redactor.secrets if each.kind == PRIVATE_KEY]
    if keys:
        message = f"session {row.session_id} holds a private key, in line {keys[0].line}"
        hint = "A session with a private key is never pushed."
        raise Refusal("secret_text", message, {**facts, "hint": hint})
    count = len(redactor.secrets)
    if count > MOST_SECRETS and not allow_redacted:
        kinds = ", ".join(f"{number} {kind}" for kind, number in redactor.kinds.items())
        message = f"session {row.session_id} holds {count} secrets ({kinds})"
        hint = "--allow-redacted pushes it with all of them redacted."
        raise Refusal("secret_text", message, {**facts, "hint": hint})
