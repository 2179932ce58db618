"""The tool calls that a code-mode script spells out: `tools.<name>(<literal>)`.

Code mode leaves only the text of its script in a legacy rollout. Here that text is scanned, not
run: a call whose argument is a literal is read, any other is counted. What a literal is, is for
`javascript_literal`; whether the script got as far as a call, and what came of it, for the caller.
"""

import re
from typing import Final

from codex_checkpoints.core.rollout.javascript_literal import (
    SPACE,
    TEMPLATE_TEXT,
    NotLiteralError,
    Reader,
)
from codex_checkpoints.values import frozen


@frozen
class LiteralCall:
    """A call whose argument the script spells out; no argument at all reads as None."""

    name: str
    argument: object


# A string or a regular expression that has no end takes the rest of its line: were it tried and
# given up, a hostile script could have the same text tried from every character on.
_TOKEN: Final = re.compile(
    rf"(?P<space>{SPACE.pattern})"
    r"""|"[^"\\\n\r]*(?:\\(?:\r\n|.)[^"\\\n\r]*)*"?|'[^'\\\n\r]*(?:\\(?:\r\n|.)[^'\\\n\r]*)*'?"""
    r"|[\w$]+|\.\.\.|\+\+|--|.",
    re.DOTALL,
)
_EXPRESSION: Final = re.compile(
    r"/[^\\/\[\n\r]*(?:(?:\\.|\[[^\]\\\n\r]*(?:\\.[^\]\\\n\r]*)*\]?)[^\\/\[\n\r]*)*/?"
)
_BEFORE_AN_EXPRESSION: Final = re.compile(
    "await|case|delete|do|else|in|instanceof|new|of|return|throw|typeof|void|yield"
)


def literal_calls(source: str) -> tuple[tuple[LiteralCall, ...], int]:
    """Read the literal calls of a script in the order of its text, and count the others."""
    scan = _Scan(source)
    scan.run()
    return tuple(scan.calls), scan.unread


class _Scan:
    """One pass over the tokens of a script.

    `before` is the last token that is neither space nor comment; it tells a division from a
    regular expression, and the object `tools` from a property of that name.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.at: int = 0
        self.before = ""
        self.braces: list[str] = []
        self.calls: list[LiteralCall] = []
        self.unread = 0

    def run(self) -> None:
        """Go through the script, stepping over what only looks like code."""
        while token := _TOKEN.match(self.source, self.at):
            self.at = token.end()
            if token["space"] is None:
                before, self.before = self.before, token[0]
                self._take(token[0], before)

    def _take(self, token: str, before: str) -> None:
        match token:
            case "/" if not _ends_a_value(before):
                self._step_over(_EXPRESSION, self.at - 1)
                self.before = ")"
            case "`":
                self._template()
            case "{":
                self.braces.append(token)
            case "}":
                if self.braces and self.braces.pop() == "${":
                    self._template()
            case "tools" if before != ".":
                self._tool()
            case _:
                pass

    def _template(self) -> None:
        """Step over the text of a template, up to its end or to code inside it."""
        # The code in `${…}` runs like any other, so it is scanned; its brace leads back here.
        self._step_over(TEMPLATE_TEXT, self.at)
        if self.source.startswith("${", self.at):
            self.at += 2
            self.before = "{"
            self.braces.append("${")
        else:
            self.at += 1
            self.before = "`"

    def _step_over(self, pattern: re.Pattern[str], start: int) -> None:
        found = pattern.match(self.source, start)
        self.at = found.end() if found else self.at

    def _tool(self) -> None:
        """Read or count the call that the word `tools` may begin."""
        reader = Reader(self.source, self.at)
        try:
            name = _called(reader)
            if name is None:
                return
            # Where the argument is no literal the scan goes on inside it: it may hold calls.
            self.at, self.before = reader.at, "("
            argument = _only_argument(reader)
        except NotLiteralError:
            self.unread += 1
            return
        self.calls.append(LiteralCall(name, argument))
        self.at, self.before = reader.at, ")"


def _ends_a_value(token: str) -> bool:
    """Tell whether a slash after this token divides."""
    if _BEFORE_AN_EXPRESSION.fullmatch(token):
        return False
    last = token[-1:]
    return token in {"++", "--"} or last.isalnum() or last in set("_$)]}\"'`")


def _called(reader: Reader) -> str | None:
    """Read `.name(` or `["name"](`; None when no tool is called here."""
    member = reader.takes("?.") or reader.takes(".")
    if reader.takes("["):
        # A computed name may be any tool's, and it is hardly looked up without being called.
        name = reader.string()
        reader.expect("]")
    else:
        name = reader.name() if member else None
    reader.takes("?.")
    return name if reader.takes("(") else None


def _only_argument(reader: Reader) -> object:
    """Read one literal, or none, and the parenthesis that closes the call."""
    if reader.takes(")"):
        return None
    argument = reader.value()
    reader.takes(",")
    reader.expect(")")
    return argument
