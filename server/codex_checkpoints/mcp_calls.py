"""What the tools of the MCP door do, and what they return.

A tool acts on the session that calls it.  Codex names that in `_meta` of each call, where a model
cannot reach; no argument can name another one.  Whatever a tool will not or cannot do is a result
with `isError`, which a model reads and can act on.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping

import orjson

from codex_checkpoints import assembly, stamps
from codex_checkpoints.assembly import House, Places
from codex_checkpoints.mcp_messages import Json
from codex_checkpoints.mcp_tools import APPLY, FEWEST_ANCHORS, MOST_ANCHORS, READ
from codex_checkpoints.presentation.terminal import LogLine
from codex_checkpoints.service.handover import Receiver, hand_over
from codex_checkpoints.service.notes import ANCHORS, Notes
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.session_names import session_of

logger = logging.getLogger(__name__)

LONGEST_WINDOW_ID = 128


class Calls:
    """The tools over one Codex home, which is opened when the first is called."""

    def __init__(self, codex_home: str | None, state_dir: str | None) -> None:
        """Name the folders as on the command line."""
        self._folders = (codex_home, state_dir)
        self._house: House | None = None
        self._calls: Mapping[str, Callable[[House, str, Json, Json], Json]] = {
            APPLY: _apply,
            READ: _read,
        }

    def __contains__(self, name: str) -> bool:
        """Tell whether there is such a tool."""
        return name in self._calls

    def call(self, name: str, arguments: Json, meta: Json) -> Json:
        """Call a tool for the session that `meta` names; a refusal is a result, too."""
        session = "no session"
        try:
            house = self._open()
            session = session_of(house.sessions.catalogue, meta.get("threadId"))
            result = self._calls[name](house, session, arguments, meta)
        except Refusal as refusal:
            logger.info("%s of %s refused: %s", name, session, refusal.code)
            return _refused(refusal.code, refusal.message, refusal.facts)
        except Exception as error:  # noqa: BLE001 - a defect in one call is not the end
            # A traceback could hold the text of a session.
            logger.error("%s of %s: %s", name, session, type(error).__name__)  # noqa: TRY400
            return _refused("internal", f"a defect of ours, {type(error).__name__}", {})
        logger.info("%s of %s done", name, session)
        return result

    def close(self) -> None:
        """Save what would be slow to read again."""
        if self._house is not None:
            self._house.sessions.close()

    def _open(self) -> House:
        if self._house is None:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(LogLine("%(levelname)s %(name)s %(message)s"))
            logging.basicConfig(handlers=[handler], level=logging.INFO)
            self._house = assembly.assemble(_places(self._folders))
            for problem in self._house.problems:
                logger.warning("config.toml: %s", problem)
        return self._house


def _places(folders: tuple[str | None, str | None]) -> Places:
    try:
        return assembly.places(os.environ, os.path.expanduser("~"), *folders)
    except ValueError as error:
        hint = "Name the folders with --codex-home and --state-dir, in UTF-8."
        raise Refusal("unknown_session", str(error), {"rule": "session", "hint": hint}) from error


# --- memory.apply --------------------------------------------------------------------------------


def _apply(house: House, session: str, arguments: Json, _meta: Json) -> Json:
    applied = _notes(house).apply(session, orjson.dumps(arguments))
    said = f"Accepted at seq {applied.seq}."
    if applied.shortened:
        said += f" Shortened: {', '.join(applied.shortened)}."
    accepted = {
        "accepted": True,
        "seq": applied.seq,
        "id": applied.id,
        "kind": applied.kind,
        "shortened": list(applied.shortened),
    }
    return _result(said, accepted)


# --- memory.read ---------------------------------------------------------------------------------


def _read(house: House, session: str, arguments: Json, meta: Json) -> Json:
    limit = _limit(arguments)
    window = meta.get("windowId")
    known = window if isinstance(window, str) and len(window) <= LONGEST_WINDOW_ID else None
    view = hand_over(house.sessions, session, Receiver(READ, known, stamps.now()))
    anchors = [
        {"source": each.source, "ref": each.ref, "text": each.text, "seq": each.seq}
        for each in _notes(house).anchors(session, limit)
    ]
    lines = [view.text, "[ANCHORS]\n", *(f"- {_line(each)}\n" for each in anchors)]
    told = {"view": view.text, "anchors": anchors, "seq": view.of.checkpoint.seq}
    return _result("".join(lines), told)


def _notes(house: House) -> Notes:
    return Notes(house.sessions, stamps.now, stamps.new_id)


def _line(anchor: Mapping[str, object]) -> str:
    return orjson.dumps(anchor).decode()


def _limit(arguments: Json) -> int:
    limit = arguments.get("limit", ANCHORS)
    unknown = arguments.keys() - {"limit"}
    if unknown or type(limit) is not int or not FEWEST_ANCHORS <= limit <= MOST_ANCHORS:
        span = f"{FEWEST_ANCHORS} to {MOST_ANCHORS}"
        problem = f"only limit, a whole number from {span}, may be given"
        facts = {"rule": "shape", "hint": "Call it without arguments.", "problems": [problem]}
        raise Refusal("invalid_payload", f"the arguments do not fit: {problem}", facts)
    return limit


# --- results -------------------------------------------------------------------------------------


def _result(text: str, structured: Json) -> Json:
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": False,
    }


def _refused(code: str, message: str, facts: Mapping[str, object]) -> Json:
    """Say what was refused, by which rule, and how to satisfy it (DSC-36)."""
    rest = {name: fact for name, fact in facts.items() if name not in {"rule", "hint"}}
    rule, hint = facts.get("rule"), facts.get("hint")
    said = {"accepted": False, "code": code, "rule": rule, "message": message, "hint": hint}
    text = f"Refused, {code}: {message}." + (f" {hint}" if hint else "")
    return {**_result(text, {**said, "facts": rest}), "isError": True}
