"""The plain effects of a shell call, as far as its text shows them."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.shell import posix
from codex_checkpoints.core.shell.commands import only_looks
from codex_checkpoints.core.shell.posix import Read, Write, script_of
from codex_checkpoints.core.shell.script import ShellReading, files_of, read_script
from growth import takes_linear_time

PATCH = "*** Begin Patch\n*** Add File: a b.txt\n+it's $x `y` (\n*** End Patch\n"
NOISE = st.text(st.sampled_from("abc 'cd'\"\\$`(){}<>&|;#~*-\n\t&&EOF=é")) | st.lists(
    st.sampled_from(
        ["cat", "sed -n", "cd d &&", "<<E", "\nE\n", "$(", ")", '"', "'", "a", " ", ";", "\\"],
    ),
).map("".join)


def read_argv(argv: list[str]) -> ShellReading:
    return read_script(script_of(argv), posix.program_of(argv))


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
def test_script_of_a_call_is_the_text_given_to_its_shell(argv: list[str], script: str):
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
def test_plain_read_names_its_files_and_lines(script: str, reads: list[Read]):
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
        "cat < a",
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
        "less a",
        "'less' a",
    ],
)
def test_unparsed_command_reads_nothing_and_makes_the_call_mixed(part: str):
    assert read_script(part) == ShellReading(None, (), plain=False)
    assert read_script(f"cat x; {part}\ncat y") == ShellReading(
        None, (Read("x"), Read("y")) if part != "cat <<E" else (Read("x"),), plain=False
    )


def test_filter_in_a_pipe_makes_the_call_mixed():
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
def test_literal_cd_at_the_start_is_followed(
    script: str, folder: str | None, read: tuple[str, ...], plain: bool
):
    reading = read_script(script)

    assert (reading.folder, names(script), reading.plain) == (folder, read, plain)


@pytest.mark.parametrize(
    "script",
    [
        # where a script is not followed reading ends
        "cat a; if b; then cat c; cat d; fi",
        "cat a; f() { cat b; }",
        "cat a; (cd b; cat c)",
        "cat a; case b in b) cat c;; esac; cat d",
        "cat a\nexit\ncat b",
        "cat a; echo $(cat <<E\n)\n'\nE\n); cat b",
        "cat a; echo $(b # it's\n); cat c",
        'cat a; echo "${b:-\'c}"; cat d',
        "cat a; b <(cat c); cat d",
        # a text that only looks like a command is none
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
def test_nothing_is_read_after_an_unknown_command_or_in_a_string(script: str):
    assert read_script(script) == ShellReading(None, (Read("a"),), plain=False)


@pytest.mark.parametrize(
    "script",
    [
        *("cat a; echo 'b", 'cat a "', "cat a \\", "cat a $(b", "cat a `"),  # they have no end
        *("", " \n", "# cat a", ";"),  # they say nothing
    ],
)
def test_unfinished_or_empty_script_gives_nothing(script: str):
    assert read_script(script) == ShellReading(None, (), plain=False)


def test_cmd_scripts_are_not_read():
    assert read_argv(["cmd", "/c", "cat a.txt"]).reads == ()


@given(st.lists(st.text(min_size=1).filter(lambda name: name[0] not in "-\0/"), min_size=1))
def test_arguments_of_a_call_are_read_literally(files: list[str]):
    expected = ShellReading(None, tuple(Read(name) for name in files), plain=True)

    assert read_argv(["cat", *files]) == expected
    assert read_argv(["bash", "-lc", shlex.join(["cat", *files])]) == expected


# --- writes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("cat > f <<'E'\nx > y\nE", "f"),
        ("cat <<E >> f\nx\nE\n", "f"),
        ("cat <<E > f\nno closing word", "f"),
        ("cat > a <<E\n1\nE\ncat > b <<E\n2\nE", "a b"),
        ('echo "$x" > f', "f"),
        ("echo hi >> f 2>&1", "f"),
        ("printf '%s' x >| f", "f"),
        ("cat a b &> f", "f"),
        ("cat /dev/null > f", "f"),
        ("echo x | tee f", "f"),
        ("cat <<E | tee -a f g > /dev/null\nx\nE", "f g"),
        ("sed -i s/a/b/ f", "f"),
        ("sed -i.bak -E -e 's/a/b/' -e 2d f g", "f g"),
        ("sed -i '' 's/a/b/' f", "f"),
        ("sed -i -n 5p f", "f"),
        ("sed --in-place=.x -f edit.sed f", "f"),
        ('sed -i "s/$a/b/" f', "f"),
        ("perl -pi -e 's/a/b/' f", "f"),
        ("perl -0777 -i.bak -pe 's/a/b/' f g", "f g"),
        ("touch f g", "f g"),
        ("truncate -s 0 f", "f"),
        ("rm -f f g", "f g"),
        ("cp -p a f", "f"),
        ("mv -f f g", "f g"),
        ("cd d && rm f", "f"),
    ],
)
def test_plain_write_names_its_files(script: str, files: str):
    reading = read_script(script)

    assert [each.path for each in reading.writes] == files.split()
    assert reading.plain


def test_write_has_its_effect_on_the_file():
    assert read_script("echo x > f").writes == (Write("f", "update"),)
    assert read_script("rm f").writes == (Write("f", "delete"),)
    assert read_script("cp a f").writes == (Write("f", "update", "f"),)
    assert read_script("mv a f").writes == (Write("a", "move", "f"), Write("f", "move", "f"))


def test_cat_into_a_file_reads_one_and_writes_the_other():
    assert read_script("cat a > b") == ShellReading(None, (Read("a"),), True, (Write("b"),))


@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("make > log 2>&1", "log"),
        ("make | tee log", "log"),
        ("pytest 2> err.txt", "err.txt"),
        ("mkdir -p d && cat > d/f <<E\nx\nE", "d/f"),
        ("sed -n 1,5p a > f", "f"),
        ("echo x > f; make", "f"),
        ("echo x > f; echo y > $g", "f"),
    ],
)
def test_redirection_of_another_program_gives_the_file_and_the_command(script: str, files: str):
    reading = read_script(script)

    assert [each.path for each in reading.writes] == files.split()
    assert not reading.plain


@pytest.mark.parametrize(
    "script",
    [
        "echo x > $f",
        "echo x > ~/f",
        "echo x > *.txt",
        "echo x > /dev/null",
        "echo x >&2",
        "make > /dev/null 2>&1",
        "cat > /dev/stderr <<E\nx\nE",
        "tee",
        "sed s/a/b/ f",
        "sed -i s/a/b/ $f",
        "perl -e 's/a/b/' f",
        "perl -i f",
        "touch -a f",
        "truncate f",
        "rm -r f",
        "rm -rf f",
        "rm -R f",
        "rm $f g",
        "cp -r a f",
        "cp -R a f",
        "cp -a a f",
        "cp a b f",
        "cp a f/",
        "cp a .",
        "mv a b f",
        "mv a ../",
        "cp -t f a",
        "dd if=a of=f",
        "python - > $f <<E\nopen('f', 'w')\nE",
        "if x; then rm f; fi",
        "cd d; rm f",
    ],
)
def test_unclear_write_names_nothing(script: str):
    assert read_script(script).writes == ()
    assert not read_script(script).plain


# --- PowerShell ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "reads"),
    [
        ("Get-Content a.py", [Read("a.py")]),
        ("get-content -Raw src\\a.py", [Read("src\\a.py")]),
        ("Get-Content -Path 'a b.py', \"c's.py\"", [Read("a b.py"), Read("c's.py")]),
        ("Get-Content -LiteralPath:a.py -Encoding UTF8", [Read("a.py")]),
        ("Get-Content a.py -TotalCount 20", [Read("a.py", 1, 20)]),
        ("Get-Content a.py -Tail 20", [Read("a.py")]),
        ("gc a.py; type b.py", [Read("a.py"), Read("b.py")]),
        ("cat 'it''s.py'", [Read("it's.py")]),
        ("$text = Get-Content a.py -Raw", [Read("a.py")]),
    ],
)
@pytest.mark.parametrize("program", ["powershell.exe", "pwsh"])
def test_plain_powershell_read_names_its_files(program: str, script: str, reads: list[Read]):
    reading = read_argv([program, "-NoProfile", "-Command", script])

    assert reading == ShellReading(None, tuple(reads), plain=True)


def test_cmdlet_is_recognised_in_any_shell_name():
    assert read_script("Get-Content src\\a.py") == ShellReading(None, (Read("src\\a.py"),), True)


@pytest.mark.parametrize(
    ("script", "files", "plain"),
    [
        ("Set-Content -Path f -Value 'x > y'", "f", True),
        ("Set-Content f x -Encoding utf8 -NoNewline", "f", True),
        ("'x' | Set-Content f", "f", True),
        ("@'\nrm 'a'; x\n'@ | Out-File -FilePath f -Append", "f", True),
        ('@"\n$x\n"@ | Set-Content f', "f", True),
        ("'x' > f", "f", True),
        ("make | Out-File f", "f", False),
        ("make *> f", "f", False),
        ("(Get-Content f) -replace 'a', 'b' | Set-Content f", "f", False),
        ("Get-ChildItem | ForEach-Object { cd x; Set-Content f 1; cd y }", "", False),
        ("Set-Content $f x", "", False),
        ("Set-Content f x -WhatIf", "", False),
        ("make > $null", "", False),
    ],
)
def test_powershell_writes_name_their_files(script: str, files: str, *, plain: bool):
    reading = read_argv(["pwsh", "-Command", script])

    assert [each.path for each in reading.writes] == files.split()
    assert reading.plain == plain


@pytest.mark.parametrize(
    "script", ["Get-Content *.py", "Get-Content $f", "Get-Content a.py -Wait", "& 'cat' (x)", "'a"]
)
def test_unclear_powershell_command_names_nothing(script: str):
    assert read_argv(["pwsh", "-Command", script]) == ShellReading(None, (), plain=False)


# --- patches -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "folder"),
    [
        pytest.param(f"apply_patch <<'EOF'\n{PATCH}EOF", None, id="single quotes"),
        pytest.param(f'applypatch <<"EOF"\n{PATCH}EOF\n', None, id="double quotes"),
        pytest.param(f"apply_patch << E-1\n{PATCH}E-1 \t\n \n", None, id="white space at the end"),
        pytest.param(f"cd 'a b' && apply_patch <<'EOF'\n{PATCH}EOF\n", "a b", id="in a folder"),
        pytest.param(f"\napply_patch {shlex.quote(PATCH)}\n", None, id="as a word"),
        pytest.param(f"cd d && apply_patch {shlex.quote(PATCH)}", "d", id="a word in a folder"),
        pytest.param(f"apply_patch <<'EOF'\n{PATCH}", None, id="no closing word"),
        pytest.param(f"cat <<'EOF' | apply_patch\n{PATCH}EOF", None, id="piped"),
        pytest.param(f"cat <<'EOF' |\n{PATCH}EOF\napply_patch", None, id="piped on two lines"),
        pytest.param(f"printf '%s' {shlex.quote(PATCH)} | apply_patch", None, id="printed"),
        pytest.param(f"apply_patch <<'EOF' >/dev/null\n{PATCH}EOF", None, id="quiet"),
    ],
)
def test_script_may_be_only_a_patch(script: str, folder: str | None):
    reading = read_script(script)

    assert (reading.folder, reading.plain) == (folder, True)
    assert [text.strip() for text in reading.patches] == [PATCH.strip()]


def test_heredoc_strips_leading_tabs_if_it_says_so():
    script = "apply_patch <<-E\n\t*** Begin Patch\n\t*** End Patch\n\tE"

    assert read_script(script).patches == ("*** Begin Patch\n*** End Patch\n",)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(f"apply_patch <<'EOF'\n{PATCH}EOF\npytest -q", id="something after it"),
        pytest.param(f"apply_patch <<'EOF' && pytest\n{PATCH}EOF\n", id="something beside it"),
        pytest.param(f"cat <<E | apply_patch && make\n{PATCH}E", id="something behind a pipe"),
        pytest.param(f"ls; apply_patch <<'EOF'\n{PATCH}EOF\n", id="something before it"),
        pytest.param(f"apply_patch <<'EOF' | cat\n{PATCH}EOF\n", id="a pipe behind it"),
        pytest.param(f"apply_patch <<'EOF' >log\n{PATCH}EOF\n", id="a redirection"),
        pytest.param(f"apply_patch <<'EOF'\n{PATCH}EOF\ncat a", id="a read"),
    ],
)
def test_patch_may_be_one_part_of_a_script(script: str):
    assert read_script(script).patches == (PATCH,)
    assert not read_script(script).plain


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(f"apply_patch -v <<'EOF'\n{PATCH}EOF", id="an option"),
        pytest.param(f"apply_patch {shlex.quote(PATCH)} &", id="in the background"),
        pytest.param(f"cat <<'EOF'\n{PATCH}EOF", id="another command"),
        pytest.param(f"cat <<'EOF' > f.patch\n{PATCH}EOF", id="a patch that is written"),
        pytest.param(
            f"cd $d && apply_patch <<'EOF'\n{PATCH}EOF", id="a folder that is not literal"
        ),
        pytest.param('apply_patch "$PATCH *** Begin Patch"', id="a word that is not literal"),
        pytest.param("apply_patch --help", id="no patch"),
        pytest.param("apply_patch 'it", id="no end of a quote"),
        pytest.param("", id="nothing"),
    ],
)
def test_script_that_applies_no_text_has_no_patch(script: str):
    assert read_script(script).patches == ()


@pytest.mark.parametrize(
    "argv",
    [
        ["apply_patch", PATCH],
        ["applypatch", PATCH],
        ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}EOF"],
        ["zsh", "-c", f"apply_patch {shlex.quote(PATCH)}"],
        ["powershell", "-NoProfile", "-Command", f"apply_patch <<'EOF'\n{PATCH}EOF"],
        ["cmd", "/c", f"apply_patch <<'EOF'\n{PATCH}EOF"],
    ],
)
def test_call_may_be_only_a_patch(argv: list[str]):
    assert read_argv(argv) == ShellReading(None, (), True, (), (PATCH,))


@pytest.mark.parametrize("argv", [[], ["apply_patch"], ["ls", PATCH], ["apply_patch", "-", PATCH]])
def test_another_call_is_not_a_patch(argv: list[str]):
    assert read_argv(argv).patches == ()


# --- commands that only look ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        *(
            "ls -la",
            "git -C shop status",
            "git diff | head",
            "rg x src 2>/dev/null",
            "cd a && cat b",
        ),
        *("sed -n 1,5p a.py", "find . -name x", "FOO=1 env BAR=2 git log", "echo hi 2>&1 | wc -l"),
        *("git branch -a", "git config --get user.name", "awk '{print $1}' a", "time sudo ls"),
        *(
            "git remote -v",
            "git remote get-url origin",
            "git -c a=b show",
            "env | sort",
            ": && [ a ]",
        ),
        *("Get-ChildItem -Recurse | Select-String x", "Get-Content src\\a.py", "sed -ne 5p a"),
        *("cat <<E\nx\nE", "test -f a && printenv PATH", "date; whoami; true", "sed --quiet 5p a"),
    ],
)
def test_looking_commands_are_recognised(script: str) -> None:
    assert only_looks(script)


@pytest.mark.parametrize(
    "script",
    [
        *("make", "git commit -m x", "ls && make", "find . -delete", "find . -exec rm {} +"),
        *(
            "find . -execdir rm {} +",
            "find . -ok rm {} +",
            "find . -fprint f",
            "fd x -x rm",
            "fd -X rm",
        ),
        *("sed -i s/a/b/ a.py", "sed -n -i 5p a", "sort -o a a", "sort -oa a"),
        *("echo hi > a.txt", "echo hi > a.txt 2>/dev/null", "cat <<E > f\nx\nE", "ls | tee f"),
        *("git branch new", "git branch -r -d a/b", "git remote add a b", "git config user.name x"),
        *("awk 'BEGIN{system(\"x\")}'", "awk '{print > \"f\"}' a", "echo 'unclosed", "env make"),
        *("ls; (make)", "ls; if x; then make; fi", "ls &", "", "Set-Content f x", "sudo make"),
    ],
)
def test_acting_commands_are_recognised(script: str) -> None:
    assert not only_looks(script)


PLAIN = "*** Begin Patch\n*** Add File: a b.txt\n+x\n*** End Patch\n"


@pytest.mark.parametrize(
    ("argv", "folder"),
    [
        (["bash", "-lc", f"(apply_patch <<'E'\n{PLAIN}E\n)"], None),
        (["bash", "-lc", f"(cd sub && apply_patch <<'E'\n{PLAIN}E\n)"], "sub"),
        (["bash", "-lc", f"cd sub && (apply_patch <<'E'\n{PLAIN}E\n)"], "sub"),
        (["bash", "-lc", f"bash -lc 'apply_patch <<\"E\"\n{PLAIN}E\n'"], None),
        (["bash", "-lc", f"bash -lc 'cd sub && apply_patch <<\"E\"\n{PLAIN}E\n'"], "sub"),
        (["zsh", "-lc", f"cd sub && sh -c 'apply_patch <<\"E\"\n{PLAIN}E\n'"], "sub"),
        (["pwsh", "-c", f"@'\n{PLAIN}'@ | apply_patch"], None),
        (["pwsh", "-NoProfile", "-c", f"apply_patch @'\n{PLAIN}'@"], None),
        (["powershell.exe", "-Command", f'@"\n{PLAIN}"@ | apply_patch'], None),
        (["powershell", "-Command", f"cd sub && @'\n{PLAIN}'@ | apply_patch.exe"], "sub"),
        (["powershell", "-Command", f"@'\r\n{PLAIN}'@ | & apply_patch"], None),
        (["sh", "-c", f"Write-Output @'\n{PLAIN}'@ | apply_patch.bat"], None),
    ],
)
def test_patch_is_read_in_a_subshell_a_nested_shell_and_powershell(
    argv: list[str], folder: str | None
):
    reading = read_argv(argv)

    assert reading.plain
    assert reading.folder == folder
    assert [files_of(patch) for patch in reading.patches] == [files_of(PLAIN)]


@pytest.mark.parametrize(
    "assigned", ["$p = @'\n{}'@\n$P | apply_patch", "$p=@'\n{}'@; apply_patch $p"]
)
def test_patch_in_a_variable_of_powershell_is_read(assigned: str):
    reading = read_argv(["pwsh", "-Command", assigned.format(PLAIN)])

    assert [files_of(patch) for patch in reading.patches] == [files_of(PLAIN)]
    assert not read_argv(["pwsh", "-Command", "$p = Get-Content a; apply_patch $p"]).patches


@given(NOISE | st.text())
def test_no_script_makes_reading_fail(script: str):
    reading = read_script(script)

    assert reading.reads or reading.writes or not reading.plain
    assert read_script(script, "pwsh").patches == ()
    assert not (only_looks(script) and reading.writes)


@given(st.lists(NOISE))
def test_no_call_makes_reading_fail(argv: list[str]):
    assert isinstance(script_of(argv), str)
    reading = read_argv(argv)
    assert reading.reads or reading.writes or not reading.plain


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
        pytest.param("cat ", ">a ", "", id="many redirections"),
        pytest.param("Get-Content ", "@'\n", "", id="many open texts of PowerShell"),
        pytest.param("Get-Content ", "{", "", id="many open blocks of PowerShell"),
        pytest.param("", "'a' ", "", id="many words in quotes"),
    ],
)
def test_script_takes_linear_time(begin: str, piece: str, end: str):
    def look(script: str) -> None:
        read_script(script)
        read_script(script, "pwsh")
        read_script(script, "cmd")
        only_looks(script)

    # The results of shorter scripts are cached, so they take no time the second time.
    takes_linear_time(look, lambda size: begin + piece * (size // len(piece)) + end, first=5_000)
