"""Runs the tools of the MCP server.

A tool acts on the session that Codex names in `_meta` of each call; no argument of the model can
name another one.  A refusal is a result with `isError`, which the model reads.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping

import orjson
from attrs import asdict

from codex_checkpoints import assembly
from codex_checkpoints.core.fields import Json
from codex_checkpoints.doors.mcp.tools import (
    APPLY,
    FEWEST_ANCHORS,
    MOST_ANCHORS,
    MOST_LINES,
    READ,
    RECALL,
)
from codex_checkpoints.doors.pages.log import LogLine
from codex_checkpoints.operations.notes import AnchorsParams, anchors, apply_bytes
from codex_checkpoints.operations.services import Services
from codex_checkpoints.places import Places, places_of
from codex_checkpoints.service.connect.delivery_log import hand_over, note_call
from codex_checkpoints.service.history.digests import Digests
from codex_checkpoints.service.notes import ANCHORS
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.sessions import session_of
from codex_checkpoints.storage import records

logger = logging.getLogger(__name__)

LONGEST_WINDOW_ID = 128


class HomeTools:
    """The tools for one Codex home, which is opened at the first call."""

    def __init__(self, codex_home: str | None, state_dir: str | None) -> None:
        self._folders = (codex_home, state_dir)
        self._services: Services | None = None
        self._calls: Mapping[str, Callable[[Services, str, Json, Json], Json]] = {
            APPLY: _apply,
            READ: _read,
            RECALL: _recall,
        }

    def __contains__(self, name: str) -> bool:
        """Return whether a tool exists."""
        return name in self._calls

    def call(self, name: str, arguments: Json, meta: Json) -> Json:
        """Call a tool for the session that `meta` names; return its result or refusal."""
        session = "no session"
        try:
            services = self._open()
            session = session_of(services.sessions.catalogue, meta.get("threadId"))
            result = self._calls[name](services, session, arguments, meta)
            if name != READ:  # which has a receipt for the view that it gives
                note_call(services.sessions.records, session, name, records.now())
        except Refusal as refusal:
            logger.info("%s of %s refused: %s", name, session, refusal.code)
            return _refused(refusal.code, refusal.message, refusal.facts)
        except Exception as error:  # noqa: BLE001 - a defect in one call is not the end
            # A traceback could hold the text of a session.
            logger.error("%s of %s: %s", name, session, type(error).__name__)  # noqa: TRY400
            return _refused("internal", f"internal error ({type(error).__name__})", {})
        logger.info("%s of %s done", name, session)
        return result

    def close(self) -> None:
        """Save the states that would be slow to read again."""
        if self._services is not None:
            self._services.sessions.close()

    def _open(self) -> Services:
        if self._services is None:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(LogLine("%(levelname)s %(name)s %(message)s"))
            logging.basicConfig(handlers=[handler], level=logging.INFO)
            where = _places(self._folders)
            self._services = Services(where, assembly.assemble(where))
            self._services.sessions.projections.follows = True
            for problem in self._services.problems:
                logger.warning("config.toml: %s", problem)
        return self._services


def _places(folders: tuple[str | None, str | None]) -> Places:
    try:
        return places_of(os.environ, os.path.expanduser("~"), *folders)
    except ValueError as error:
        hint = "Name the folders with --codex-home and --state-dir, in UTF-8."
        raise Refusal("unknown_session", str(error), {"rule": "session", "hint": hint}) from error


def _apply(services: Services, session: str, arguments: Json, _meta: Json) -> Json:
    applied = apply_bytes(services, session, orjson.dumps(arguments))
    text = f"Accepted at seq {applied.seq}."
    if applied.shortened:
        text += f" Shortened: {', '.join(applied.shortened)}."
    if applied.evicted:
        gone = ", ".join(f"{each.kind} {each.id}" for each in applied.evicted)
        text += f" No longer kept: {gone}."
    accepted = {
        "accepted": True,
        "seq": applied.seq,
        "id": applied.id,
        "kind": applied.kind,
        "shortened": list(applied.shortened),
        "evicted": [asdict(each, recurse=False) for each in applied.evicted],
    }
    return _result(text, accepted)


def _read(services: Services, session: str, arguments: Json, meta: Json) -> Json:
    limit = _limit(arguments)
    window = meta.get("windowId")
    known = window if isinstance(window, str) and len(window) <= LONGEST_WINDOW_ID else None
    view = hand_over(services.sessions, session, READ, known, records.now())
    found = [
        asdict(each, recurse=False)
        for each in anchors(services, AnchorsParams(session, limit)).items
    ]
    digest = _digest(services, session, arguments)
    lines = [
        view.text,
        *([f"\n{digest}\n"] if digest else []),
        "[ANCHORS]\n",
        *(f"- {orjson.dumps(each).decode()}\n" for each in found),
    ]
    result: dict[str, object] = {"view": view.text, "anchors": found, "seq": view.of.checkpoint.seq}
    return _result("".join(lines), result | ({"digest": digest} if digest else {}))


def _digest(services: Services, session: str, arguments: Json) -> str:
    tokens = arguments.get("digest", 0)
    if type(tokens) is not int:
        raise _invalid("digest must be a whole number of tokens")
    return Digests(services.sessions).digest(session, None, tokens).text if tokens else ""


def _limit(arguments: Json) -> int:
    limit = arguments.get("limit", ANCHORS)
    unknown = arguments.keys() - {"limit", "digest"}
    if unknown or type(limit) is not int or not FEWEST_ANCHORS <= limit <= MOST_ANCHORS:
        span = f"{FEWEST_ANCHORS} to {MOST_ANCHORS}"
        raise _invalid(f"only digest and limit, a whole number from {span}, may be given")
    return limit


def _invalid(problem: str, hint: str = "Call it without arguments.") -> Refusal:
    facts = {"rule": "shape", "hint": hint, "problems": [problem]}
    return Refusal("invalid_payload", f"the arguments do not fit: {problem}", facts)


# --- memory.recall -------------------------------------------------------------------------------


def _recall(services: Services, session: str, arguments: Json, _meta: Json) -> Json:
    ref, query = arguments.get("ref"), arguments.get("query")
    offset, limit = arguments.get("offset", 0), arguments.get("limit", 20)
    unknown = arguments.keys() - {"ref", "query", "offset", "limit"}
    if unknown or type(offset) is not int or type(limit) is not int:
        raise _invalid("only ref or query, offset and limit may be given", _ONE_OF)
    if offset < 0 or not 1 <= limit <= MOST_LINES:
        raise _invalid(f"offset must be 0 or more, limit 1 to {MOST_LINES}", _ONE_OF)
    digests = Digests(services.sessions)
    if isinstance(ref, str) and query is None:
        found = digests.recall(session, ref, offset, rolled_back=False)
        fields = ("ref", "kind", "turn", "text", "offset", "total")
        record = {name: getattr(found, name) for name in fields}
        return _result(f"{found.ref} {found.heading}\n{found.text}", record)
    if not isinstance(query, str) or ref is not None:
        raise _invalid("ref or query must be given, one of them, as a text", _ONE_OF)
    hits = [
        {"ref": each.ref, "turn": each.turn, "kind": each.kind, "line": each.line}
        for each in digests.search(session, query, limit, rolled_back=False)
    ]
    lines = [f"{each['ref']} {each['kind']}: {each['line']}" for each in hits]
    return _result("\n".join(lines) or "No line contains it.", {"hits": hits})


_ONE_OF = 'Call it with {"ref": "#120"} or with {"query": "a text"}.'


# --- results -------------------------------------------------------------------------------------


def _result(text: str, structured: Json) -> Json:
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": False,
    }


def _refused(code: str, message: str, facts: Mapping[str, object]) -> Json:
    """Return the refused request, the rule, and how to satisfy it (DSC-36)."""
    rest = {name: fact for name, fact in facts.items() if name not in {"rule", "hint"}}
    rule, hint = facts.get("rule"), facts.get("hint")
    refusal = {"accepted": False, "code": code, "rule": rule, "message": message, "hint": hint}
    text = f"Refused, {code}: {message}." + (f" {hint}" if hint else "")
    return {**_result(text, {**refusal, "facts": rest}), "isError": True}
