"""The tool calls with literal arguments in a code-mode script: `tools.<name>(<literal>)`.

A legacy rollout has only the text of such a script.  The text is scanned, not run: calls with a
literal argument are returned, others are counted.
"""

import math
import re
from typing import Final

from codex_checkpoints.values import frozen

DEEPEST: Final = 64
"""The deepest nesting of objects and arrays, far below Python's stack."""

# No pattern here can match a text in two ways, so a failure costs no more than a match.
SPACE: Final = re.compile(
    r"[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)?",
)
NAME: Final = re.compile(r"(?![0-9])[\w$]+")
TEMPLATE_TEXT: Final = re.compile(r"[^`\\$]*(?:(?:\$(?!\{)|\\.)[^`\\$]*)*", re.DOTALL)

_DOUBLE: Final = re.compile(r'"(?P<body>[^"\\\n\r]*(?:\\(?:\r\n|.)[^"\\\n\r]*)*)"', re.DOTALL)
_SINGLE: Final = re.compile(r"'(?P<body>[^'\\\n\r]*(?:\\(?:\r\n|.)[^'\\\n\r]*)*)'", re.DOTALL)
_TEMPLATE: Final = re.compile(rf"`(?P<body>{TEMPLATE_TEXT.pattern})`", re.DOTALL)
_KEY: Final = re.compile(rf"{NAME.pattern}|0|[1-9][0-9]{{0,14}}")
_CONSTANTS: Final[dict[str, object]] = {"true": True, "false": False, "null": None}
_NUMBER: Final = re.compile(
    r"(?P<based>0[xX][0-9a-fA-F]{1,13}|0[oO][0-7]{1,17}|0[bB][01]{1,53})(?![\w$.])"
    r"|(?:(?:0|[1-9](?:_?[0-9])*)(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)"
    r"(?:[eE][+-]?[0-9]+)?(?![\w$.])",
)
_EXACT: Final = 2**53
_LAST_POINT: Final = 0x10FFFF

_ESCAPE: Final = re.compile(
    r"\\(?:u\{(?P<point>[0-9a-fA-F]+)\}|u(?P<unit>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})"
    r"|(?P<nul>0(?![0-9]))|(?P<bad>[ux0-9])|(?P<gone>\r\n|[\n\r\u2028\u2029])|(?P<other>.))",
    re.DOTALL,
)
_SHORT: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class NotLiteralError(Exception):
    """There is no literal here, or one that JSON cannot hold."""


class Reader:
    """Reads literals and the tokens around them; `at` is the current offset."""

    def __init__(self, source: str, at: int) -> None:
        self.source = source
        self.at: int = at

    def takes(self, token: str) -> bool:
        """Skip a token and the space before it if it comes next; return whether it did."""
        self._skip_space()
        found = self.source.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def expect(self, token: str) -> None:
        """Skip a token that must come next."""
        if not self.takes(token):
            raise NotLiteralError

    def value(self, depth: int = DEEPEST) -> object:
        """Read the next literal."""
        self._skip_space()
        if depth == 0 and self.source.startswith(("{", "["), self.at):
            raise NotLiteralError
        if self.takes("{"):
            return self._object(depth)
        if self.takes("["):
            return self._array(depth)
        if self.source.startswith(('"', "'", "`"), self.at):
            return self.string()
        if self.takes("-"):
            return -self._number()
        word = NAME.match(self.source, self.at)
        if word is not None and word[0] in _CONSTANTS:
            self.at = word.end()
            return _CONSTANTS[word[0]]
        return self._number()

    def string(self) -> str:
        """Read a string, or a template without code."""
        self._skip_space()
        plain = _DOUBLE.match(self.source, self.at) or _SINGLE.match(self.source, self.at)
        if string := plain:
            body = string["body"]
        elif string := _TEMPLATE.match(self.source, self.at):
            # A template holds LF for every line break in the source.
            body = string["body"].replace("\r\n", "\n").replace("\r", "\n")
        else:
            raise NotLiteralError
        self.at = string.end()
        text = _ESCAPE.sub(_meant, body)
        if _SURROGATE.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def name(self) -> str | None:
        """Read the next name, if there is one."""
        self._skip_space()
        name = NAME.match(self.source, self.at)
        self.at = name.end() if name else self.at
        return name[0] if name else None

    def _object(self, depth: int) -> dict[str, object]:
        members: dict[str, object] = {}
        while not self.takes("}"):
            key = self._key()
            self.expect(":")
            members[key] = self.value(depth - 1)
            if not self.takes(","):
                self.expect("}")
                break
        return members

    def _key(self) -> str:
        self._skip_space()
        if key := _KEY.match(self.source, self.at):
            self.at = key.end()
            name = key[0]
        elif self.source.startswith("`", self.at):
            raise NotLiteralError
        else:
            name = self.string()
        # That key sets the prototype of an object; it is no member.
        if name == "__proto__":
            raise NotLiteralError
        return name

    def _array(self, depth: int) -> list[object]:
        values: list[object] = []
        while not self.takes("]"):
            values.append(self.value(depth - 1))
            if not self.takes(","):
                self.expect("]")
                break
        return values

    def _number(self) -> int | float:
        self._skip_space()
        number = _NUMBER.match(self.source, self.at)
        if number is None:
            raise NotLiteralError
        self.at = number.end()
        # JavaScript has only doubles, and writes whole ones without a fraction.
        value = float(int(number[0], 0) if number["based"] else number[0])
        if math.isinf(value):
            raise NotLiteralError
        return int(value) if value.is_integer() and value <= _EXACT else value

    def _skip_space(self) -> None:
        while space := SPACE.match(self.source, self.at):
            self.at = space.end()


def _meant(escape: re.Match[str]) -> str:
    if escape["bad"]:
        raise NotLiteralError
    if code := escape["point"] or escape["unit"] or escape["byte"]:
        point = int(code, 16)
        if point > _LAST_POINT:
            raise NotLiteralError
        return chr(point)
    if escape["nul"]:
        return "\0"
    return _SHORT.get(escape["other"], escape["other"]) if escape["other"] else ""


@frozen
class LiteralCall:
    """A call with a literal argument, None if it has no argument."""

    name: str
    argument: object


# A string or a regular expression without an end takes the rest of its line.  Otherwise a hostile
# script could have the same text tried again from every character.
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
    """Return the literal calls of a script in the order of its text, and the number of others."""
    scan = _Scan(source)
    scan.run()
    return tuple(scan.calls), scan.unread


class _Scan:
    """One pass over the tokens of a script.

    `before`, the last token that is neither space nor comment, separates a division from a regular
    expression, and the object `tools` from a property of that name.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.at: int = 0
        self.before = ""
        self.braces: list[str] = []
        self.calls: list[LiteralCall] = []
        self.unread = 0

    def run(self) -> None:
        """Scan the script; skip strings, templates, comments and regular expressions."""
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
        """Skip the text of a template, up to its end or to code inside it."""
        # The code in `${…}` is scanned as well; its closing brace leads back here.
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
        """Read or count the call that may follow the word `tools`."""
        reader = Reader(self.source, self.at)
        try:
            name = _called(reader)
            if name is None:
                return
            # If the argument is no literal, the scan continues inside it: it may hold calls.
            self.at, self.before = reader.at, "("
            argument = _only_argument(reader)
        except NotLiteralError:
            self.unread += 1
            return
        self.calls.append(LiteralCall(name, argument))
        self.at, self.before = reader.at, ")"


def _ends_a_value(token: str) -> bool:
    """Return whether a slash after this token is a division."""
    if _BEFORE_AN_EXPRESSION.fullmatch(token):
        return False
    last = token[-1:]
    return token in {"++", "--"} or last.isalnum() or last in set("_$)]}\"'`")


def _called(reader: Reader) -> str | None:
    """Read `.name(` or `["name"](`; None if there is no call."""
    member = reader.takes("?.") or reader.takes(".")
    if reader.takes("["):
        # A computed name may be that of any tool, and is mostly called.
        name = reader.string()
        reader.expect("]")
    else:
        name = reader.name() if member else None
    reader.takes("?.")
    return name if reader.takes("(") else None


def _only_argument(reader: Reader) -> object:
    """Read at most one literal, and the closing parenthesis."""
    if reader.takes(")"):
        return None
    argument = reader.value()
    reader.takes(",")
    reader.expect(")")
    return argument
