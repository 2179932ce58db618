"""Cleans the text of values: secrets redacted, one line, no control characters, cut to a limit.

See (rules, "Text of values"), DSC-51, DSC-52 and DSC-81.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from codex_checkpoints.core.checkpoint.secret_commands import COMMAND_RULES, COMMANDS
from codex_checkpoints.core.checkpoint.secret_rules import GENERAL, KEYS, SecretRule
from codex_checkpoints.core.fields import CONTROLS, digest_of

MARK = "[redacted]"


def redact(text: str) -> str:
    """Replace each secret by `[redacted]` (DSC-81)."""
    parts: list[str] = []
    end = 0
    for start, behind in secrets(text):
        parts += [text[end:start], MARK]
        end = behind
    return "".join(parts) + text[end:] if parts else text


def secrets(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each secret in a text, in order."""
    return [(start, behind) for start, behind, _ in named_secrets(text)]


def named_secrets(text: str) -> list[tuple[int, int, str]]:
    """Return the start and end of each secret in a text, in order, with the name of its rule."""
    lower = text.lower()
    return _found_in(text, _hinted(lower, _programs_in(lower), _HINTS))


def secrets_of_part(text: str) -> tuple[list[tuple[int, int, str]], bool]:
    """Return the secrets of one text of several, as `named_secrets`, and whether it has a hint.

    Only beside a text with a hint may others be secrets that are none by themselves.
    """
    lower = text.lower()
    programs = _programs_in(lower)
    has_hint = bool(programs) or any(hint in lower for _, each in _HINTS_ACROSS for hint in each)
    return _found_in(text, _hinted(lower, programs, _HINTS)), has_hint


def secrets_across(text: str) -> list[tuple[int, int, str]]:
    """Return the secrets that extend over several texts, which are written as JSON in `text`."""
    lower = text.lower()
    rules = _hinted(lower, _programs_in(lower), _HINTS_ACROSS)
    return _found_in(text, [rule for rule in rules if not rule.within])


def _found_in(text: str, rules: list[SecretRule]) -> list[tuple[int, int, str]]:
    """Return the secrets that some rules find."""
    if not rules:
        return []
    pieces = [(start, piece, piece.lower()) for start, piece in _between_marks(text)]
    found: list[tuple[int, int, str]] = []
    while True:
        # An early rule may find a secret only after a later rule has cut out its neighbour.
        known = len(found)
        for rule in rules:
            pieces = [part for piece in pieces for part in _without_secrets(piece, rule, found)]
        if len(found) == known:
            return sorted(found)


def _hinted(lower: str, programs: list[str], all_hints: _Hints) -> list[SecretRule]:
    """Return the rules whose hint and sign a text contains; others find nothing there."""
    # One character is found many times faster than a hint.
    here = {sign for sign in _SIGNS if sign in lower}
    groups = [their for signs, their in all_hints if not signs or not here.isdisjoint(signs)]
    hints = [hint for their in groups for hint in their if hint in lower]
    commands = [COMMANDS[each] for each in programs]
    if not hints:
        return commands
    places = sorted({place for hint in hints for place in _RULES_OF[hint]})
    hinted = [
        rule
        for rule in (SECRET_RULES[place] for place in places)
        if not (rule.signs and here.isdisjoint(rule.signs))
    ]
    needs = {rule.needs for rule in hinted if rule.needs}
    lacking = {each for each in needs if re.search(each, lower) is None}
    return [*commands, *(rule for rule in hinted if rule.needs not in lacking)]


def may_hold_secret(text: str) -> bool:
    """Return whether a text, or JSON text in it, may contain a secret; a quick guess.

    False is certain, unless an escape in the JSON encodes a letter or a `/`.
    """
    lower = text.lower()
    return any(hint in lower for _, hints in _HINTS for hint in hints) or any(
        _programs_in(each) for each in (lower, _ESCAPES.sub(" ", lower))
    )


_ESCAPES = re.compile(r"\\[nrtbf]")


def find_secret(text: str) -> str | None:
    """Return the name of the first rule that finds a secret, or None (DSC-81)."""
    pieces = [(piece, piece.lower()) for piece in text.split(MARK)]
    programs = {each for _, lower in pieces for each in _programs_in(lower)}
    for rule in (*SECRET_RULES, *(COMMANDS[each] for each in sorted(programs))):
        for piece, lower in pieces:
            if any(hint in lower for hint in rule.hints) and rule.pattern.search(piece):
                return rule.name
    return None


def secret_in(text: str) -> str | None:
    """Return the rule of a secret in a text as it is, or in one line, which joins two halves."""
    return find_secret(text) or find_secret(one_line(text))


def _between_marks(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for piece in text.split(MARK):
        yield start, piece
        start += len(piece) + len(MARK)


def _without_secrets(
    piece: tuple[int, str, str], rule: SecretRule, found: list[tuple[int, int, str]]
) -> Iterator[tuple[int, str, str]]:
    """Yield the rest of a piece with its offset and in small letters; add secrets to `found`."""
    at, text, lower = piece
    end = 0
    if any(hint in lower for hint in rule.hints):
        for match in rule.matches(text, lower):
            for start, behind in _found_by(rule, match):
                if start >= end:
                    found.append((at + start, at + behind, rule.name))
                    rest = text[end:start]
                    yield at + end, rest, rest.lower()
                    end = behind
    yield (at + end, text[end:], text[end:].lower()) if end else piece


def _found_by(rule: SecretRule, match: re.Match[str]) -> list[tuple[int, int]]:
    """Return the secret of a match, and the later ones of the same command."""
    spans = [match.span("secret")]
    if rule.repeats:
        begun = match.start()
        command = match.string[begun : match.end() + _REST_OF_COMMAND]
        while True:
            start, behind = (each - begun for each in spans[-1])
            command = command[:start] + "\0" * (behind - start) + command[behind:]
            later = rule.pattern.match(command)
            if later is None:
                break
            spans.append((later.start("secret") + begun, later.end("secret") + begun))
    return sorted(spans)


_REST_OF_COMMAND = 400


_PROGRAM = re.compile("[a-z0-9][a-z0-9_-]*")
_PROGRAMS = frozenset(COMMANDS)
_LONG = 1 << 18


def _programs_in(lower: str) -> list[str]:
    """Return the programs in a text whose command lines may hold secrets."""
    if len(lower) > _LONG:  # a list of all words would take several times its size
        found = {match[0] for match in _PROGRAM.finditer(lower) if match[0] in _PROGRAMS}
        return sorted(found)
    words = _PROGRAM.findall(lower)
    return [] if _PROGRAMS.isdisjoint(words) else sorted(_PROGRAMS.intersection(words))


SECRET_RULES = (*GENERAL, *COMMAND_RULES, *KEYS)
"""The rules in the order in which they apply, after the rules of the programs in a text."""

KINDS_OF_SECRETS = len({each.name for each in (*SECRET_RULES, *COMMANDS.values())})
"""The number of kinds of secrets that are known."""

RULES_DIGEST = digest_of(
    "\n".join(
        f"{rule.source} {rule.flags:d}" for rule in (*SECRET_RULES, *COMMANDS.values())
    ).encode()
)
"""A digest of all rules: it changes if the rules may find other secrets."""

_SIGNS = "-_:=.@/|"
_Hints = tuple[tuple[str, tuple[str, ...]], ...]


def _signs_of(hint: str) -> str:
    """Return characters of which each match of the rules with this hint has one, if any."""
    own = "".join(sign for sign in _SIGNS if sign in hint)
    by_rules = [rule.signs for rule in SECRET_RULES if hint in rule.hints]
    return own[:1] or ("".join(by_rules) if all(by_rules) else "")


def _grouped(rules: Iterable[SecretRule]) -> _Hints:
    """Return the hints of some rules, by the characters that they require."""
    groups: dict[str, list[str]] = {}
    for hint in dict.fromkeys(hint for rule in rules for hint in rule.hints):
        groups.setdefault(_signs_of(hint), []).append(hint)
    return tuple((signs, tuple(hints)) for signs, hints in groups.items())


_HINTS = _grouped(SECRET_RULES)
_HINTS_ACROSS = _grouped(rule for rule in SECRET_RULES if not rule.within)

_RULES_OF = {
    hint: tuple(place for place, rule in enumerate(SECRET_RULES) if hint in rule.hints)
    for _, hints in _HINTS
    for hint in hints
}
"""The positions of the rules with a hint, in order."""


SCANNED = 65_536
"""Code points of a text that `value` reads after its leading white space."""

_RUN = re.compile(f"[{CONTROLS}]+")
_FRONT = re.compile(rf"[\s{CONTROLS}]*+")
_LONE = re.compile(r"[\ud800-\udfff]")


def one_line(text: str) -> str:
    """Replace each run of control characters by one space, and trim the ends (DSC-52)."""
    # Most runs are only line breaks, which are found many times faster.
    line = " ".join(filter(None, text.split("\n")))
    if line.isprintable():  # it has neither
        return line.strip()
    return _whole(_RUN.sub(" ", text)).strip()


def cut(text: str, limit: int) -> str:
    """Shorten to `limit` code points; the last one is `…` if the text was longer (DSC-51)."""
    if limit < 1:
        return ""
    return _whole(text if len(text) <= limit else text[: limit - 1] + "…")


def _whole(text: str) -> str:
    """Replace half a surrogate pair, which cannot be written as UTF-8."""
    return text if text.isascii() or text.isprintable() else _LONE.sub("\ufffd", text)


def value(text: str, limit: int) -> str:
    """Return the text redacted (DSC-81), on one line (DSC-52), and cut (DSC-24, DSC-51).

    Only the first `SCANNED` code points count.  If they shrink below the limit, their last word is
    dropped: it may be the first half of a secret.
    """
    front = _FRONT.match(text)
    start = front.end() if front else 0
    seen = text[start : start + SCANNED]
    line = one_line(redact(seen))
    if len(text) - start > SCANNED and len(line) < limit:
        ends_in_a_word = one_line(seen[-1]) and not line.endswith(MARK)
        line = (line.rpartition(" ")[0].rstrip() if ends_in_a_word else line) + "…"
    return cut(line, limit)
