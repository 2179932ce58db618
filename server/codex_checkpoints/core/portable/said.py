"""The texts of a pushed session that a search of the remote finds, and their words.

These are whole prompts, answers and commands, and the paths of files that were read or changed.
A store indexes their *words*: runs of letters and digits without case.  So a search finds a word
from its beginning, or from a capital inside it: `tokens` and `per` are found in `maxTokensPer`.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

SAID: Final = 1
"""The version of the collected texts and their words, incremented with each change."""

SAID_KINDS: Final = ("user", "assistant", "command", "file")

LONGEST_TEXT: Final = 32_768
"""Code points of one text; a longer one is cut between lines, or in a long line."""

_LONGEST_WORD = 64
_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@frozen
class Said:
    """A text of a session: the number of its record, its turn, and its `kind` of `SAID_KINDS`.

    `turn` is null for a turn that was rolled back, and before the first one.
    """

    seq: int
    turn: int | None
    turn_id: str | None
    kind: str
    at: str | None
    text: str


def words_in(text: str) -> frozenset[str]:
    """Return the words of a text, each also from every capital inside it."""
    found = set[str]()
    for run in set(_WORD.findall(text)):
        found.add(run.casefold()[:_LONGEST_WORD])
        if len(run) <= _LONGEST_WORD:
            found.update(run[each.start() :].casefold() for each in _HUMP.finditer(run))
    return frozenset(found)


def words_of_query(text: str) -> tuple[str, ...]:
    """Return the words with which a search begins, in order; none without a letter or a digit."""
    return tuple(sorted({each.casefold()[:_LONGEST_WORD] for each in _WORD.findall(text)}))


def has_words(text: str, words: tuple[str, ...]) -> bool:
    """Return whether each of these is the beginning of a word of a text."""
    known = words_in(text)
    return all(any(each.startswith(word) for each in known) for word in words)
