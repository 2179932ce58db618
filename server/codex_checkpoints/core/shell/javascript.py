"""Finds tool calls with literal arguments in a code-mode script: `tools.<name>(<literal>)`.

A legacy rollout has only the text of such a script.  The text is scanned, not run: calls with a
literal argument are returned, others are counted.
"""

import contextlib
import math
import re
from functools import lru_cache
from typing import Final

import orjson
from attrs import frozen

_KEPT: Final = 8
"""Size of the cache of scanned scripts: several readers request the same ones."""

_DEEPEST: Final = 64
"""Maximum nesting of objects and arrays."""

# No pattern here can match a text in two ways, so a failed match is as cheap as a match.
_SPACE: Final = r"[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/)?"
_NAME: Final = r"(?![0-9])[\w$]+"
_DOUBLE: Final = r'"[^"\\\n\r]*(?:\\(?:\r\n|.)[^"\\\n\r]*)*'
_SINGLE: Final = r"'[^'\\\n\r]*(?:\\(?:\r\n|.)[^'\\\n\r]*)*"
_TEMPLATE: Final = r"[^`\\$]*(?:(?:\$(?!\{)|\\.)[^`\\$]*)*"
_STRING: Final = rf"{_DOUBLE}\"|{_SINGLE}'|`{_TEMPLATE}`"
_LITERAL: Final = re.compile(
    rf"(?P<space>{_SPACE})|(?P<string>{_STRING})"
    r"|(?P<number>(?P<based>0[xX][0-9a-fA-F]{1,13}|0[oO][0-7]{1,17}|0[bB][01]{1,53})(?![\w$.])"
    r"|(?:(?:0|[1-9](?:_?[0-9])*+)(?:\.(?:[0-9](?:_?[0-9])*+)?)?|\.[0-9](?:_?[0-9])*+)"
    r"(?:[eE][+-]?[0-9]++)?(?![\w$.]))"
    rf"|(?P<word>{_NAME})|(?P<mark>[{{}}\[\]),:-])",
    re.DOTALL,
)
"""A part of a literal, or the parenthesis after it."""

_KEY: Final = re.compile(rf"{_NAME}|0|[1-9][0-9]{{0,14}}")
_EXACT: Final = 2**53
_LAST_POINT: Final = 0x10FFFF
_ESCAPE: Final = re.compile(
    r"\\(?:u\{(?P<point>[0-9a-fA-F]+)\}|u(?P<unit>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})"
    r"|(?P<nul>0(?![0-9]))|(?P<bad>[ux0-9])|(?P<gone>\r\n|[\n\r\u2028\u2029])|(?P<other>.))",
    re.DOTALL,
)
_SHORT: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _NotLiteralError(Exception):
    """It is not a literal, or JSON cannot represent it."""


def _argument(source: str, at: int) -> tuple[object, int]:
    """Return the only argument of a call, None without one, and the end of the call.

    The literal is converted to JSON, whose parser decides whether it is well-formed.
    """
    pieces: list[str] = []
    last, depth = "", 0
    while found := _LITERAL.match(source, at):
        at, kind, text = found.end(), found.lastgroup, found[0]
        if kind == "space":
            continue
        mark = text if kind == "mark" else "."
        if (
            mark in "}])"
            and pieces[-1:] == [","]
            and pieces[-2:-1] not in ([], [","], ["{"], ["["])
        ):
            pieces.pop()
        if mark == ")":
            break
        if mark == ":":
            pieces[-1:] = [_key(last)]
        depth += (mark in "{[") - (mark in "}]")
        if depth > _DEEPEST:
            raise _NotLiteralError
        last = text
        if kind == "string":
            text = orjson.dumps(_string(text)).decode()
        elif kind == "number":
            text = _number(text, based=found["based"] is not None)
        elif kind == "word":
            text += " "  # two adjacent strings are not one
        pieces.append(text)
    else:
        raise _NotLiteralError
    try:
        return orjson.loads("".join(pieces)) if pieces else None, at
    except orjson.JSONDecodeError as error:
        raise _NotLiteralError from error


def _key(text: str) -> str:
    """Return a key as JSON; `__proto__` sets the prototype and is not a member."""
    if text[:1] in {"'", '"'}:
        name = _string(text)
    elif _KEY.fullmatch(text):
        name = text
    else:
        raise _NotLiteralError
    if name == "__proto__":
        raise _NotLiteralError
    return orjson.dumps(name).decode()


def _string(text: str) -> str:
    """Return the value of a string, or of a template without code, as JSON."""
    body = text[1:-1]
    if text[0] == "`":  # it has LF for every line break in the source
        body = body.replace("\r\n", "\n").replace("\r", "\n")
    meant = _ESCAPE.sub(_meant, body)
    if _SURROGATE.search(meant):
        meant = meant.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return meant


def _number(text: str, *, based: bool) -> str:
    """Return a number as JSON with a trailing space, so that two numbers stay separate."""
    # JavaScript has only doubles, and writes integral ones without a fraction.
    value = float(int(text, 0) if based else text)
    if math.isinf(value):
        raise _NotLiteralError
    return f"{int(value) if value.is_integer() and value <= _EXACT else value!r} "


def _meant(escape: re.Match[str]) -> str:
    if escape["bad"]:
        raise _NotLiteralError
    if code := escape["point"] or escape["unit"] or escape["byte"]:
        point = int(code, 16)
        if point > _LAST_POINT:
            raise _NotLiteralError
        return chr(point)
    if escape["nul"]:
        return "\0"
    return _SHORT.get(escape["other"], escape["other"]) if escape["other"] else ""


@frozen
class LiteralCall:
    """A call with a literal argument; None if it has no argument."""

    name: str
    argument: object


_GAP: Final = rf"(?:{_SPACE})*+"
_MEMBER: Final = re.compile(
    rf"{_GAP}(?:(?P<dot>\?\.|\.){_GAP})?(?:(?(dot)(?P<name>{_NAME})|(?!))"
    rf"|\[{_GAP}(?P<string>{_STRING}){_GAP}\]|(?P<computed>\[))",
    re.DOTALL,
)
_OPENS: Final = re.compile(rf"{_GAP}(?:\?\.{_GAP})?\(")
_CONSTANT: Final = re.compile(
    rf"{_GAP}(?P<name>{_NAME}){_GAP}={_GAP}(?P<string>{_STRING})(?!{_GAP}[-.+*/%\[(?&|,<>=`])",
    re.DOTALL,
)
"""A constant whose value is only a text, not an expression that contains one."""

_DECLARED: Final = re.compile(rf"{_GAP}(?P<name>{_NAME})")
_NAMED: Final = re.compile(rf"{_GAP}(?P<name>{_NAME}){_GAP}\)")
# A string or a regular expression without an end takes the rest of its line. Otherwise a hostile
# script could make the scan try the same text again from every character.
_TOKEN: Final = re.compile(
    rf"(?P<space>{_SPACE})|{_DOUBLE}\"?|{_SINGLE}'?|[\w$]+|\.\.\.|\+\+|--|.", re.DOTALL
)
_TEMPLATE_TEXT: Final = re.compile(_TEMPLATE, re.DOTALL)
_EXPRESSION: Final = re.compile(
    r"/[^\\/\[\n\r]*(?:(?:\\.|\[[^\]\\\n\r]*(?:\\.[^\]\\\n\r]*)*\]?)[^\\/\[\n\r]*)*/?"
)
_BEFORE_AN_EXPRESSION: Final = re.compile(
    "await|case|delete|do|else|in|instanceof|new|of|return|throw|typeof|void|yield"
)


@lru_cache(_KEPT)
def literal_calls(source: str) -> tuple[tuple[LiteralCall, ...], int]:
    """Return the literal calls of a script, in order, and the number of other calls."""
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
        self.texts: dict[str, str | None] = {}
        """The constants that are texts; None for a name that is bound twice."""

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
            case "const" | "let" | "var" if before != ".":
                self._declared(token)
            case _:
                pass

    def _template(self) -> None:
        """Skip the text of a template up to its end, or to the code inside it."""
        # The code in `${…}` is scanned as well; its closing brace returns to this function.
        self._step_over(_TEMPLATE_TEXT, self.at)
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
        """Read or count the call after the word `tools`."""
        member = _MEMBER.match(self.source, self.at)
        if member is None:
            return
        if member["computed"]:  # it may be any tool's name, and is mostly called
            self.unread += 1
            return
        opens = _OPENS.match(self.source, member.end())
        if opens is None:
            return
        # If the argument is not a literal, the scan continues inside it: it may contain calls.
        self.at, self.before = opens.end(), "("
        try:
            name = member["name"] or _string(member["string"])
            argument, self.at = self._argument()
        except _NotLiteralError:
            self.unread += 1
            return
        self.calls.append(LiteralCall(name, argument))
        self.before = ")"

    def _argument(self) -> tuple[object, int]:
        """Return the only argument of a call and the end of the call."""
        named = _NAMED.match(self.source, self.at)
        text = None if named is None else self.texts.get(named["name"])
        if named is None or text is None:
            return _argument(self.source, self.at)
        return text, named.end()

    def _declared(self, kind: str) -> None:
        """Remember a constant with a text value; the text itself is scanned as usual."""
        declared = _DECLARED.match(self.source, self.at)
        if declared is None:
            return
        found = _CONSTANT.match(self.source, self.at) if kind == "const" else None
        text: str | None = None
        if found is not None and declared["name"] not in self.texts:
            with contextlib.suppress(_NotLiteralError):
                text = _string(found["string"])
        self.texts[declared["name"]] = text


def _ends_a_value(token: str) -> bool:
    """Return whether a slash after this token is a division."""
    if _BEFORE_AN_EXPRESSION.fullmatch(token):
        return False
    last = token[-1:]
    return token in {"++", "--"} or last.isalnum() or last in set("_$)]}\"'`")
