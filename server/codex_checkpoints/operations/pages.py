"""Returns pages for people: the sections that terminal and editor draw, and their text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from attrs import frozen

from codex_checkpoints.core.digest.render import Digest as SessionDigest
from codex_checkpoints.core.losses.file_activity import Loss
from codex_checkpoints.core.restore.lineage import Node
from codex_checkpoints.core.restore.records import caution_text
from codex_checkpoints.operations import checkpoint, connect, digests, packs
from codex_checkpoints.operations.services import Services
from codex_checkpoints.sections import connect as connect_pages
from codex_checkpoints.sections.checkpoint import checkpoint_page
from codex_checkpoints.sections.compaction import compaction_page
from codex_checkpoints.sections.digest import digest_page
from codex_checkpoints.sections.doctor import doctor_page
from codex_checkpoints.sections.lines import page_lines
from codex_checkpoints.sections.losses import losses_page
from codex_checkpoints.sections.model import Link as PageLink
from codex_checkpoints.sections.model import Page, PageLine, line
from codex_checkpoints.sections.model import Part as PagePart
from codex_checkpoints.sections.model import Section as PageSection
from codex_checkpoints.sections.packs import import_page
from codex_checkpoints.sections.record import record_page
from codex_checkpoints.sections.restore import restore_page
from codex_checkpoints.sections.terminal import Screen
from codex_checkpoints.service.history import lineages
from codex_checkpoints.service.history.compaction_losses import losses_of
from codex_checkpoints.service.history.digests import Digests, Recalled
from codex_checkpoints.service.history.windows import undone_in
from codex_checkpoints.service.progress import Steps, on_another_thread
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore import listing
from codex_checkpoints.service.restore.listing import Listed
from codex_checkpoints.wire import BadParams


@frozen
class PageParams:
    """A page by its kind, and its subject.

    `losses`, `digest` and `checkpoint` need `sessionId`, the last two take a turn; `record` needs
    `sessionId` and `name`, the reference; `compaction` and `restore` need `name`, the id of the
    compaction or the operation; `import` needs `name`, the whole path of a pack, and takes
    the `folder` of the new session; `connect`, `disconnect` and `doctor` need nothing.
    """

    kind: str
    session_id: str | None = None
    turn_id: str | None = None
    name: str | None = None
    folder: str | None = None
    work_done_token: int | str | None = None


@frozen
class ShownPage:
    """A page: its title, the lines below it, its sections, its commands, and all of it as text.

    The sections hold every sentence; a client draws them as they are.  `text` is the output of the
    command line, for the clipboard.  `sessionIds` are the sessions whose changes change the page.
    """

    title: str
    about: tuple[PageLine, ...]
    sections: tuple[PageSection, ...]
    actions: tuple[PageLink, ...]
    text: str
    session_ids: tuple[str, ...]


@frozen
class _Made:
    """A page, its text if that is not the text of its sections, and its sessions."""

    page: Page
    session_ids: tuple[str, ...] = ()
    text: str | None = None


def page(services: Services, params: PageParams) -> Steps[ShownPage]:
    """Return a page."""
    if params.kind in {"connect", "disconnect"}:
        made = _Made((yield from _connect(services, removes=params.kind == "disconnect")))
    else:
        make = _PAGES.get(params.kind)
        if make is None:
            kinds = ", ".join(("connect", "disconnect", *_PAGES))
            raise BadParams([f"must be one of {kinds} @ params.kind"])
        made = make(services, params)
    found, text = made.page, made.text
    if text is None:
        text = "".join(f"{each}\n" for each in page_lines(found, Screen()))
    return ShownPage(
        found.title, found.about, found.sections, found.actions, text, made.session_ids
    )


def _connect(services: Services, *, removes: bool) -> Steps[Page]:
    params = connect.ConnectParams(dry_run=True, remove=removes)
    report = yield from on_another_thread(partial(connect.connect, services.where, params))
    return connect_pages.changes_page(report, removes=removes)


def losses(services: Services, session: str, found: tuple[Loss, ...] | None = None) -> Page:
    """Return the page of the losses of a session; `found` are they, if they are known already."""
    sessions = services.sessions
    session_id = sessions.find(session).session_id
    undone = undone_in(sessions, session).values()
    losses = losses_of(sessions, session) if found is None else found
    return losses_page(losses, _named(services, session_id), session_id, frozenset(undone))


def _losses(services: Services, params: PageParams) -> _Made:
    session_id = services.sessions.find(_session(params)).session_id
    return _Made(losses(services, session_id), (session_id,))


def _doctor(services: Services, _params: PageParams) -> _Made:
    return _Made(doctor_page(connect.doctor(services, connect.DoctorParams())))


def digest(services: Services, session_id: str, found: SessionDigest) -> Page:
    """Return the page of a digest."""
    return digest_page(found, _named(services, session_id), session_id)


def _digest(services: Services, params: PageParams) -> _Made:
    session_id = services.sessions.find(_session(params)).session_id
    found = digests.digest(services, digests.DigestParams(session_id, params.turn_id))
    return _Made(digest(services, session_id, found), (session_id,), found.text)


def _checkpoint(services: Services, params: PageParams) -> _Made:
    session_id = services.sessions.find(_session(params)).session_id
    shown = checkpoint.view(services, checkpoint.ViewParams(session_id, params.turn_id))
    state = checkpoint.show(services, checkpoint.ShowParams(session_id, params.turn_id))
    about = _named(services, session_id)
    files = frozenset(each.uri for each in state.recent if each.kind == "file")
    made = checkpoint_page(shown.text, about, session_id, files, state.plan_origin)
    return _Made(made, (session_id,), shown.text)


_MOST_PIECES = 4
"""The most pieces of a record on its page; each has at most 8,000 characters."""


def record(services: Services, found: Recalled, text: str | None = None) -> Page:
    """Return the page of a record; `text` is more of it than `found` holds."""
    return record_page(found, _named(services, found.session_id), text)


def _record(services: Services, params: PageParams) -> _Made:
    session, ref = _session(params), _name(params)
    digests = Digests(services.sessions)
    found = digests.recall(session, ref, 0)
    text = found.text
    for _ in range(_MOST_PIECES - 1):
        if len(text) < found.total:
            text += digests.recall(session, ref, len(text)).text
    return _Made(record(services, found, text))


def _compaction(services: Services, params: PageParams) -> _Made:
    sessions = services.sessions
    made = sessions.compactions.find(_name(params))
    ids = (made.source.session_id, made.session_id)
    current = sessions.catalogue.current()
    names = {each: sessions.title(current[each]) for each in ids if each in current}
    undone = sessions.compactions.is_undone(made)
    return _Made(compaction_page(made, names, undone=undone), ids)


def restore(services: Services, operation: str) -> tuple[Page, Listed]:
    """Return the page of a restore, and its record."""
    listed = listing.details(services.sessions, operation)
    record = listed.record
    sides = (
        (record.session_id, listed.branch_available),
        (record.source_session_id, listed.source_available),
    )
    there = next((session_id for session_id, available in sides if available), None)
    nodes: dict[str, Node] = {}
    if there is not None:
        nodes = {each.id: each for each in lineages.lineage(services.sessions, there).nodes}
    state = record.seed
    if state is None and listed.source_available:
        turn = record.source_turn
        with contextlib.suppress(Refusal):  # the turn is gone from it
            state = services.sessions.show(turn.session_id, turn.turn_id).checkpoint
    warnings = tuple(caution_text(each, record) for each in record.warnings)
    return restore_page(listed, warnings, nodes, state), listed


def _restore(services: Services, params: PageParams) -> _Made:
    made, listed = restore(services, _name(params))
    return _Made(made, (listed.record.session_id, listed.record.source_session_id))


def _import(services: Services, params: PageParams) -> _Made:
    would = packs.make(services, packs.ImportParams(_name(params), params.folder, dry_run=True))
    return _Made(import_page(packs.arriving(would)))


_PAGES: dict[str, Callable[[Services, PageParams], _Made]] = {
    "losses": _losses,
    "doctor": _doctor,
    "digest": _digest,
    "checkpoint": _checkpoint,
    "record": _record,
    "compaction": _compaction,
    "restore": _restore,
    "import": _import,
}


def _session(params: PageParams) -> str:
    if params.session_id is None:
        raise BadParams([f"needed for the kind {params.kind} @ params.sessionId"])
    return params.session_id


def _name(params: PageParams) -> str:
    if params.name is None:
        raise BadParams([f"needed for the kind {params.kind} @ params.name"])
    return params.name


def _named(services: Services, session_id: str) -> PageLine:
    """Return the name of a session, as a link to it."""
    row = services.sessions.catalogue.current().get(session_id)
    if row is None:
        return line("Session ", session_id)
    name = services.sessions.title(row) or "(no message yet)"
    return line("Session ", PagePart(name, link=PageLink("session", session_id, None)))
