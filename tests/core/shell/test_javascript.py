"""The tool calls that a code-mode script spells out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.shell.javascript import LiteralCall, literal_calls
from growth import takes_linear_time

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text().filter(lambda key: key != "__proto__"), inner, max_size=3)
    ),
    max_leaves=10,
)
NOISE = st.lists(
    st.sampled_from(["tools", ".", "f", "(", ")", "[", "]", "{", "}", "`", "${", "'", '"', "\\"])
    | st.sampled_from(["/", "//", "/*", "*/", "\n", "a:", "1", ",", "?.", " ", "=", "return"])
    | st.sampled_from(["\\u", "-", "++", "...", "const a", "let"]),
).map("".join)


def test_calls_keep_the_order_of_the_text():
    script = """
        const p = await tools.apply_patch("*** Begin Patch\\n*** End Patch");
        const [a, b] = await Promise.all([
          tools.exec_command({cmd: 'ls', "workdir": "/d", yield_time_ms: 1_000,}),
          tools.exec_command({cmd: `git
diff`, 'tty': false}),
        ]);
        text(a.output); // tools.no({})
    """

    assert literal_calls(script) == (
        (
            LiteralCall("apply_patch", "*** Begin Patch\n*** End Patch"),
            LiteralCall("exec_command", {"cmd": "ls", "workdir": "/d", "yield_time_ms": 1000}),
            LiteralCall("exec_command", {"cmd": "git\ndiff", "tty": False}),
        ),
        0,
    )


@pytest.mark.parametrize(
    ("before", "argument", "is_read"),
    [
        ("const patch = `a\nb`;", "patch", True),
        ("const patch = 'a\\nb'\n", " patch ", True),
        ("const patch = `a${b}`;", "patch", False),
        ("const patch = 'a\\n' + 'b';", "patch", False),
        ("const patch = ['a', 'b'].join('x');", "patch", False),
        ("let patch = 'a\\nb';", "patch", False),
        ("const patch = 'a\\nb'; { const patch = 'c' }", "patch", False),
        ("const patch = 'a\\nb'; for (const patch of all) {}", "patch", False),
        ("const patch = 'a\\nb';", "other", False),
        ("const patch = 'a\\nb';", "patch.trim()", False),
    ],
)
def test_constant_text_counts_as_a_literal(before: str, argument: str, *, is_read: bool):
    found = literal_calls(f"{before} await tools.apply_patch({argument})")

    assert found == (((LiteralCall("apply_patch", "a\nb"),), 0) if is_read else ((), 1))


LITERALS: list[tuple[str, object]] = [
    ("", None),
    ("\u00a0\ufeff/* none */ ", None),
    ("-1.5e3", -1500),
    ("- 0", 0),
    ("0x1F", 31),
    ("0b11", 3),
    ("1_000", 1000),
    (".5", 0.5),
    ("1e300", 1e300),
    ("12345678901234567890", 1.2345678901234567e19),
    ("[1, [], {}, 'a',]", [1, [], {}, "a"]),
    (
        "{a: 1, 'b c': 2, \"d\": 3, 4: 5, $_é: 6, a: 7}",
        {"a": 7, "b c": 2, "d": 3, "4": 5, "$_é": 6},
    ),
    ("{a: /* b */ 1, // c\n}", {"a": 1}),
    (r"'\n\t\r\b\f\v\0\'\"\\\a'", "\n\t\r\b\f\v\0'\"\\a"),
    (r"'\x41\u0042\u{43}\u{1f600}'", "ABC😀"),
    (r"'\ud83d\ude00'", "😀"),
    (r"'\ud83dx\ude00'", "\ufffdx\ufffd"),
    ("'a\\\nb\\\r\nc'", "abc"),
    ("'a\u2028b'", "a\u2028b"),
    ("`a\r\nb\rc$d$`", "a\nb\nc$d$"),
    (r"`\`\${a}`", "`${a}"),
    ("'tools.f()'", "tools.f()"),
    ("[" * 64 + "]" * 64, json.loads("[" * 64 + "]" * 64)),
]


@pytest.mark.parametrize(("source", "value"), LITERALS)
def test_literal_is_read_as_its_value(source: str, value: object):
    calls, unread = literal_calls(f"tools.f({source})")

    assert (json.dumps(calls[0].argument), len(calls), unread) == (json.dumps(value), 1, 0)


@pytest.mark.parametrize(
    "source",
    [
        "x",
        "NaN",
        "1n",
        "010",
        "1__0",
        "1e999",
        "0x" + "f" * 14,
        "-'a'",
        "1, 2",
        "...x",
        "({a: 1})",
        "'a' + 'b'",
        "['a'].join()",
        "[1,,2]",
        "{a}",
        "{[a]: 1}",
        "{`a`: 1}",
        "{1.5: 1}",
        "{...a}",
        "{__proto__: {}}",
        "{a: 1 b: 2}",
        "tr ue",
        "nu/**/ll",
        "`${a}`",
        "String.raw`a`",
        "/a/",
        r"'\1'",
        r"'\u12'",
        r"'\xg'",
        r"'\u{110000}'",
        "[" * 65 + "]" * 65,
    ],
)
def test_argument_that_is_not_a_literal_is_counted(source: str):
    assert literal_calls(f"tools.f({source})") == ((), 1)


@pytest.mark.parametrize(
    "source",
    ["tools[name]({})", "tools[`a${b}`]({})", "tools['a' + b]({})", "tools?.[name]({})"],
)
def test_computed_name_is_counted(source: str):
    assert literal_calls(source) == ((), 1)


@pytest.mark.parametrize(
    "source",
    [
        "tools.f(1)",
        'tools["f"](1)',
        "tools[`f`] (1)",
        "tools\n  .f // so\n  (1)",
        "tools?.f?.(1)",
        "tools?.['f']?.(1)",
        "[...tools.f(1)]",
        "`a ${tools.f(1)} tools.g(2) ${`${{a: {}}.a}`} b` ",
        "if (x) { y = `}` } tools.f(1)",
        "x = a / tools.f(1) / b",
        "x = a[0] / tools.f(1) / 'b'.length",
        "x = /[/'\"`]\\/(/g.test(a); tools.f(1)",
        "return /'/.test(tools.f(1))",
        "x = 'it\\'s' + \"\\\"\"; tools.f(1)",
        "x = 'no end\ntools.f(1)",
        "}} tools.f(1)",
    ],
)
def test_call_is_found_anywhere_in_code(source: str):
    assert literal_calls(source) == ((LiteralCall("f", 1),), 0)


@pytest.mark.parametrize(
    "source",
    [
        "'tools.f(1)'",
        '"\\"tools.f(1)"',
        "'a \\\n tools.f(1)'",
        "`tools.f(1)`",
        "`\\${tools.f(1)}`",
        "// tools.f(1)",
        "/* tools.f(1)\n*/",
        "x = /tools.f(1)/",
        "return /[/]tools.f(1)/",
        "/tools.f(1)/.test(x)",
        "my.tools.f(1)",
        "my?.tools.f(1)",
        "mytools.f(1)",
        "tools.f",
        "tools.f; (1)",
        "tools.f`1`",
        "tools.f.bind(1)",
        "tools(1)",
        "tools.(1)",
        "tools ? .5 : 1",
        "x = /no end tools.f(1)",
    ],
)
def test_text_that_looks_like_a_call_is_ignored(source: str):
    assert literal_calls(source) == ((), 0)


def test_call_inside_an_argument_is_found():
    source = "tools.f({a: await tools.g({b: 1}), c: tools.h(d)})"

    assert literal_calls(source) == ((LiteralCall("g", {"b": 1}),), 2)


@given(JSON)
def test_every_json_value_is_a_literal(value: object):
    for ascii_only in (True, False):
        source = json.dumps(value, ensure_ascii=ascii_only)
        calls, unread = literal_calls(f"await tools.f({source});")

        assert unread == 0
        assert json.loads(json.dumps([call.argument for call in calls])) == [json.loads(source)]


@given(NOISE | st.text())
def test_no_script_makes_reading_fail(source: str):
    calls, unread = literal_calls(source)

    assert len(calls) + unread <= source.count("tools")
    json.dumps([call.argument for call in calls], ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("begin", "piece", "end"),
    [
        pytest.param("tools.f(`", "+line\\n\n", "`)", id="a long patch"),
        pytest.param("tools.f(", "[", "", id="a deep argument"),
        pytest.param("", "{", "", id="many braces"),
        pytest.param("", "`${", "", id="deep templates"),
        pytest.param("'", "\\'", "", id="a string without end"),
        pytest.param("", "=/[", "", id="expressions without end"),
        pytest.param("", "tools.f(/*", "", id="comments without end"),
        pytest.param("", "tools.f({a:[1,", "", id="calls inside of calls"),
        pytest.param("tools", "/**/", "", id="comments after the word"),
        pytest.param("tools.f(", "9", "!", id="a long number"),
        pytest.param("tools.f('\\u{", "0", "}')", id="a long escape"),
        pytest.param("", "tools[", "", id="names without end"),
    ],
)
def test_script_takes_linear_time(begin: str, piece: str, end: str):
    takes_linear_time(literal_calls, lambda size: begin + piece * (size // len(piece)) + end)
