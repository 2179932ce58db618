"""What a shell call plainly does, as far as its text tells."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.rollout.shell import (
    Read,
    ShellPatch,
    ShellReading,
    patch_in,
    read_argv,
    read_script,
    script_of,
)
from growth import takes_time_in_proportion

PATCH = "*** Begin Patch\n*** Add File: a b.txt\n+it's $x `y` (\n*** End Patch\n"
NOISE = st.text(st.sampled_from("abc 'cd'\"\\$`(){}<>&|;#~*-\n\t&&EOF=é")) | st.lists(
    st.sampled_from(
        ["cat", "sed -n", "cd d &&", "<<E", "\nE\n", "$(", ")", '"', "'", "a", " ", ";", "\\"],
    ),
).map("".join)


def names(script: str) -> tuple[str, ...]:
    return tuple(read.path for read in read_script(script).reads)


@pytest.mark.parametrize(
    ("argv", "script"),
    [
        pytest.param(["bash", "-lc", "cat a"], "cat a", id="bash"),
        pytest.param(["/usr/bin/zsh", "-c", "cat a"], "cat a", id="any folder before the name"),
        pytest.param([r"C:\msys64\SH.EXE", "-c", "cat a"], "cat a", id="exe"),
        pytest.param(["sh", "-c", "cat $0", "a"], "cat $0", id="arguments of the script"),
        pytest.param(["pwsh", "-NoProfile", "-COMMAND", "ls", "-r"], "ls -r", id="pwsh"),
        pytest.param(["powershell.exe", "-Command", "ls"], "ls", id="powershell"),
        pytest.param(["cmd.exe", "/C", "type", "a.txt"], "type a.txt", id="cmd"),
        pytest.param(["pwsh", "-File", "a b.ps1"], "pwsh -File 'a b.ps1'", id="no script in it"),
        pytest.param(["bash", "-x", "a.sh"], "bash -x a.sh", id="another option"),
        pytest.param(["bash", "-c"], "bash -c", id="no script after the option"),
        pytest.param(["cat", "a b"], "cat 'a b'", id="no shell"),
        pytest.param([], "", id="nothing"),
    ],
)
def test_the_script_of_a_call_is_what_its_shell_is_given(argv: list[str], script: str):
    assert script_of(argv) == script


@pytest.mark.parametrize(
    ("script", "reads"),
    [
        ("cat a", [Read("a")]),
        ("cat -nA -- a -b", [Read("a"), Read("-b")]),
        ("cat 'a b' \"c d\" e\\ f 'g'\"h\"i", [Read("a b"), Read("c d"), Read("e f"), Read("ghi")]),
        ('cat "$(x)" a', []),
        ('cat "a\\$b" "c\\d" "e\\\nf"', [Read("a$b"), Read("c\\d"), Read("ef")]),
        ("cat a # what it says\n", [Read("a")]),
        ("cat a#b a~", [Read("a#b"), Read("a~")]),
        ("cat \\\n a\\\nb", [Read("ab")]),
        ("cat a &&\n cat b || cat c; cat d | cat e\n\n", [Read(name) for name in "abcde"]),
        ("head a", [Read("a", 1, 10)]),
        ("head -5 a", [Read("a", 1, 5)]),
        ("head -n 5 a b", [Read("a", 1, 5), Read("b", 1, 5)]),
        ("head -qn5 a", [Read("a", 1, 5)]),
        ("head --lines=5 a", [Read("a", 1, 5)]),
        ("head a -n 5", [Read("a", 1, 5)]),
        ("head -n -5 a", [Read("a")]),
        ("head -c 1k a", [Read("a")]),
        ("tail a", [Read("a")]),
        ("tail -n 5 a", [Read("a")]),
        ("tail -n +7 a", [Read("a", 7)]),
        ("tail -n +0 a", [Read("a", 1)]),
        ("nl -ba a", [Read("a")]),
        ("nl -b a -w 3 -s ': ' a", [Read("a")]),
        ("sed -n 5p a", [Read("a", 5, 5)]),
        ("sed -n '10,20p' a", [Read("a", 10, 20)]),
        ("sed -n '10,$p' a", [Read("a", 10)]),
        ("sed -n '10,+5p' a", [Read("a", 10, 15)]),
        ("sed -n '20,10p' a", [Read("a", 20, 20)]),
        ("sed -n '1,5p; 7p' a", [Read("a", 1, 5), Read("a", 7, 7)]),
        ("sed -n -e 5p -e 7p a", [Read("a", 5, 5), Read("a", 7, 7)]),
        ("sed -n p a", [Read("a")]),
        ("sed -n 1,5p a b", [Read("a"), Read("b")]),
    ],
)
def test_a_plain_read_names_its_files_and_lines(script: str, reads: list[Read]):
    assert read_script(script) == ShellReading(None, tuple(reads), bool(reads))


@pytest.mark.parametrize(
    "part",
    [
        "cat",
        "cat -",
        "cat ''",
        'cat "$a"',
        'cat "`a`"',
        "cat $(a)",
        "cat ~/a",
        "cat *.py",
        "cat {a,b}",
        "cat src\\main.py",
        "cat -z a",
        "cat a > b",
        "cat < a",
        "cat a 2>&1",
        "cat a &",
        "cat <<E\nE",
        "cat <<E",
        "cat <<< a",
        "A=b cat a",
        "head -n x a",
        "head -n 0 a",
        "head -n",
        "tail -f a",
        "tail +7 a",
        "tail -n 0 a",
        "nl -5 a",
        "sed 5p a",
        "sed -n 's/a/b/p' a",
        "sed -n 0p a",
        "sed -n ';' a",
        "sed -n 5p",
        "sed -i -n 5p a",
        "less a",
        "'less' a",
    ],
)
def test_what_is_not_understood_reads_nothing_and_makes_the_call_mixed(part: str):
    assert read_script(part) == ShellReading(None, (), plain=False)
    assert read_script(f"cat x; {part}\ncat y") == ShellReading(
        None, (Read("x"), Read("y")) if part != "cat <<E" else (Read("x"),), plain=False
    )


def test_a_filter_in_a_pipe_makes_the_call_mixed():
    reading = read_script("nl -ba a.py | sed -n '1,20p'")

    assert reading == ShellReading(None, (Read("a.py"),), plain=False)


@pytest.mark.parametrize(
    ("script", "folder", "read", "plain"),
    [
        pytest.param("cd 'a b' && cat x", "a b", ("x",), True, id="followed"),
        pytest.param("cd -- d && cat x && cat y", "d", ("x", "y"), True, id="for all that follows"),
        pytest.param("\n# so\ncd d &&\n cat x", "d", ("x",), True, id="comments before it"),
        pytest.param("cd d && make", "d", (), False, id="before another command"),
        pytest.param("cd d && cd e && cat x", "d", (), False, id="only the first"),
        pytest.param("cat x; cd d && cat y", None, ("x",), False, id="not in the middle"),
        pytest.param("cd d; cat x", None, (), False, id="not when it may fail"),
        pytest.param("cd $d && cat x", None, (), False, id="not when it is not literal"),
        pytest.param("cd - && cat x", None, (), False, id="not to where one was before"),
        pytest.param("cd && cat x", None, (), False, id="not home"),
        pytest.param("command cd d && cat x", None, (), False, id="not behind another word"),
        pytest.param("cat cd && cat x", None, ("cd", "x"), True, id="a file called cd"),
        pytest.param("cd d", None, (), False, id="nothing after it"),
    ],
)
def test_a_literal_change_of_folder_is_followed_at_the_very_start(
    script: str, folder: str | None, read: tuple[str, ...], plain: bool
):
    reading = read_script(script)

    assert (reading.folder, names(script), reading.plain) == (folder, read, plain)


@pytest.mark.parametrize(
    "script",
    [
        "cat a; if b; then cat c; cat d; fi",
        "cat a; f() { cat b; }",
        "cat a; (cd b; cat c)",
        "cat a; case b in b) cat c;; esac; cat d",
        "cat a\nexit\ncat b",
        "cat a; echo $(cat <<E\n)\n'\nE\n); cat b",
        "cat a; echo $(b # it's\n); cat c",
        'cat a; echo "${b:-\'c}"; cat d',
        "cat a; b <(cat c); cat d",
    ],
)
def test_reading_ends_where_a_script_is_not_followed(script: str):
    assert read_script(script) == ShellReading(None, (Read("a"),), plain=False)


@pytest.mark.parametrize(
    "script",
    [
        "python - <<'E'\ncat b; it's\nE\ncat a",
        "python - <<E && make\n$(cat b\nE\ncat a",
        "python - <<E\n\\\nE\ncat b\nE\ncat a",
        "python - <<-E\n\tcat b\n\tE\ncat a",
        "python - <<A <<B\ncat b\nA\ncat c\nB\ncat a",
        'git commit -m "$(echo "; cat b;" \')\')"; cat a',
        'echo "`echo \\`cat b\\``" ${b:-"}"} $(( (1) )) $\'\\\'\'; cat a',
        "echo 'cat b; cat c'; cat a",
        'echo "\n cat b\n"; cat a',
        "echo a; cat a # ; cat b",
    ],
)
def test_text_that_only_looks_like_a_command_is_none(script: str):
    assert read_script(script) == ShellReading(None, (Read("a"),), plain=False)


@pytest.mark.parametrize(
    "script", ["cat a; echo 'b", 'cat a "', "cat a \\", "cat a $(b", "cat a `"]
)
def test_a_script_without_an_end_tells_nothing(script: str):
    assert read_script(script) == ShellReading(None, (), plain=False)


@pytest.mark.parametrize("script", ["", " \n", "# cat a", ";"])
def test_nothing_is_no_plain_read(script: str):
    assert read_script(script) == ShellReading(None, (), plain=False)


@pytest.mark.parametrize("program", ["powershell.exe", "pwsh", "cmd"])
def test_other_shells_have_other_rules_so_nothing_is_read(program: str):
    option = "/c" if program == "cmd" else "-Command"

    assert read_argv([program, option, "cat a.txt"]) == ShellReading(None, (), plain=False)


@given(st.lists(st.text(min_size=1).filter(lambda name: name[0] != "-"), min_size=1))
def test_the_words_of_a_call_are_read_as_they_are(files: list[str]):
    expected = ShellReading(None, tuple(Read(name) for name in files), plain=True)

    assert read_argv(["cat", *files]) == expected
    assert read_argv(["bash", "-lc", shlex.join(["cat", *files])]) == expected


@pytest.mark.parametrize(
    ("script", "folder"),
    [
        pytest.param(f"apply_patch <<'EOF'\n{PATCH}EOF", None, id="single quotes"),
        pytest.param(f'applypatch <<"EOF"\n{PATCH}EOF\n', None, id="double quotes"),
        pytest.param(f"apply_patch << E-1\n{PATCH}E-1 \t\n \n", None, id="white space at the end"),
        pytest.param(f"cd 'a b' && apply_patch <<'EOF'\n{PATCH}EOF\n", "a b", id="in a folder"),
        pytest.param(f"\napply_patch {shlex.quote(PATCH)}\n", None, id="as a word"),
        pytest.param(f"cd d && apply_patch {shlex.quote(PATCH)}", "d", id="a word in a folder"),
    ],
)
def test_a_script_may_be_only_a_patch(script: str, folder: str | None):
    assert patch_in(script) == ShellPatch(folder, PATCH)


def test_tabs_before_the_lines_of_a_heredoc_go_when_it_says_so():
    script = "apply_patch <<-E\n\t*** Begin Patch\n\t*** End Patch\n\tE"

    assert patch_in(script) == ShellPatch(None, "*** Begin Patch\n*** End Patch\n")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(f"apply_patch <<'EOF'\n{PATCH}EOF\nls", id="something after it"),
        pytest.param(f"apply_patch <<'EOF' && ls\n{PATCH}EOF\n", id="something beside it"),
        pytest.param(f"ls; apply_patch <<'EOF'\n{PATCH}EOF\n", id="something before it"),
        pytest.param(f"apply_patch <<'EOF' | cat\n{PATCH}EOF\n", id="a pipe"),
        pytest.param(f"apply_patch <<'EOF' >log\n{PATCH}EOF\n", id="a redirection"),
        pytest.param(f"apply_patch <<'EOF'\n{PATCH}", id="no end"),
        pytest.param(f"apply_patch -v <<'EOF'\n{PATCH}EOF", id="an option"),
        pytest.param(f"apply_patch {shlex.quote(PATCH)} &", id="in the background"),
        pytest.param(f"cat <<'EOF'\n{PATCH}EOF", id="another command"),
        pytest.param(
            f"cd $d && apply_patch <<'EOF'\n{PATCH}EOF", id="a folder that is not literal"
        ),
        pytest.param('apply_patch "$PATCH *** Begin Patch"', id="a word that is not literal"),
        pytest.param("apply_patch --help", id="no patch"),
        pytest.param("apply_patch 'it", id="no end of a quote"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_script_that_does_anything_else_is_not_only_a_patch(script: str):
    assert patch_in(script) is None


@pytest.mark.parametrize(
    "argv",
    [
        ["apply_patch", PATCH],
        ["applypatch", PATCH],
        ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}EOF"],
        ["zsh", "-c", f"apply_patch {shlex.quote(PATCH)}"],
        ["powershell", "-NoProfile", "-Command", f"apply_patch <<'EOF'\n{PATCH}EOF"],
    ],
)
def test_a_call_may_be_only_a_patch(argv: list[str]):
    assert patch_in(script_of(argv)) == ShellPatch(None, PATCH)


@pytest.mark.parametrize("argv", [[], ["apply_patch"], ["ls", PATCH], ["apply_patch", "-", PATCH]])
def test_another_call_is_no_patch(argv: list[str]):
    assert patch_in(script_of(argv)) is None


@given(NOISE | st.text())
def test_no_script_makes_reading_fail(script: str):
    reading = read_script(script)

    assert reading.reads or not reading.plain
    assert patch_in(script) is None or "*** Begin Patch" in script


@given(st.lists(NOISE))
def test_no_call_makes_reading_fail(argv: list[str]):
    assert isinstance(script_of(argv), str)
    assert read_argv(argv).reads or not read_argv(argv).plain
    assert patch_in(script_of(argv)) is None


@pytest.mark.parametrize(
    ("begin", "piece", "end"),
    [
        pytest.param("python - <<'E'\n", "print('a')\n", "E", id="a long heredoc"),
        pytest.param("cat <<E\n", "\n", "", id="a heredoc without end"),
        pytest.param("cat ", "<<E", "", id="many heredocs"),
        pytest.param("", '"$(', "", id="many open substitutions"),
        pytest.param("", "$'\\'", "", id="many open quotes"),
        pytest.param("'", "\\'", "", id="many escapes"),
        pytest.param("", "a;", "", id="many commands"),
        pytest.param("cat ", "a", "", id="a long name"),
        pytest.param("sed -n '", "9", "p' a", id="a long number"),
    ],
)
def test_a_script_takes_time_in_proportion_to_its_length(begin: str, piece: str, end: str):
    def look(script: str) -> None:
        read_script(script)
        patch_in(script)

    takes_time_in_proportion(look, lambda size: begin + piece * (size // len(piece)) + end)
