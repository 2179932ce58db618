"""Read the places in a session file line by line, with nothing but `json`.

The tests know by hand what a checkpoint holds; which `seq` Codex gave to a record they look up
here, in a way that shares nothing with the product's readers.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class SessionFile:
    """One session file, with the part of another that it builds on (`history_base`)."""

    def __init__(self, path: Path, base: "SessionFile | None" = None) -> None:
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
        self.meta: Record = lines[0]["payload"]
        own = [(line.get("ordinal", number), line) for number, line in enumerate(lines, 1)]
        inherited: list[tuple[int, Record]] = []
        if base is not None:
            end = self.meta["history_base"]["end_ordinal_exclusive"]
            inherited = [(seq, record) for seq, record in base.records if seq < end]
        self.records: list[tuple[int, Record]] = inherited + own

    @property
    def seq(self) -> int:
        """The number of the last record."""
        return self.records[-1][0]

    def user_message(self, text: str) -> str:
        """The reference of what the user said: the item's id, in legacy files `seq:<seq>`."""
        for seq, record in reversed(self.records):
            payload = record["payload"]
            if payload.get("type") == "user_message" and payload["message"] == text:
                return f"seq:{seq}"
            item = _item(record, "UserMessage")
            if item and [part.get("text") for part in item["content"]] == [text]:
                return item["id"]
        raise LookupError(f"the user never said {text!r}")

    def outcome(self, call_id: str) -> int:
        """The number of the record that tells first how a call went."""
        for seq, record in self.records:
            payload = record["payload"]
            item = payload.get("item", {})
            legacy = payload.get("call_id") == call_id and payload["type"].endswith(
                ("_end", "_output")
            )
            if item.get("id") == call_id or (legacy and "ordinal" not in record):
                return seq
        raise LookupError(f"{call_id} has no outcome")

    def command(self, script: str) -> int:
        """The number of the record about a command (code mode gives ids of its own)."""
        return next(
            seq
            for seq, record in self.records
            if (item := _item(record, "CommandExecution")) and item["command"][-1] == script
        )

    def change(self, path: Path) -> int:
        """The number of the last record about a changed file."""
        return next(
            seq
            for seq, record in reversed(self.records)
            if (item := _item(record, "FileChange")) and str(path) in item["changes"]
        )


def _item(record: Record, kind: str) -> Record:
    item = record["payload"].get("item", {})
    return (
        item if record["payload"].get("type") == "item_completed" and item["type"] == kind else {}
    )


def content_hash(path: Path) -> str:
    """The hash of a file as a checkpoint writes it."""
    return hash_of(path.read_text(encoding="utf-8"))


def hash_of(text: str) -> str:
    """The hash of a file with this text."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
