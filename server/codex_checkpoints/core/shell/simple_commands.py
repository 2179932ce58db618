"""Classifies a simple command: a look, a chore or a check (rules, "Observations").

A look prints something and changes nothing.  A chore prepares, changes or moves things and verifies
nothing.  Everything else is a check: a test, a build, a lint, a type check, a run of a program.
Programs are found in tables by their name; a program that no table names is the user's, so it is a
check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from codex_checkpoints.core.fields import names
from codex_checkpoints.core.shell import inline_code
from codex_checkpoints.core.shell.posix import POSIX_SHELLS, POWERSHELLS, SimpleCommand

Act = Literal["look", "chore", "check"]

_Rule = Callable[[list[str]], Act]
"""Takes the words after the name of a program and returns the kind of the command."""


_LOOKS: Final = names(
    "ls dir tree find fd rg grep egrep fgrep zgrep ag ack cat tac head tail nl awk gawk wc sort"
    " uniq cut less more bat batcat file stat du df pwd cd pushd popd echo printf which where"
    " whereis type hash whoami id groups date cal env printenv ps pgrep pidof top htop free uptime"
    " uname hostname lsof ss netstat fuser true false : test [ [[ xxd od hexdump strings jq yq"
    " column tr rev fold fmt paste join comm diff cmp realpath readlink basename dirname exa eza"
    " lsd man help history alias export set shopt unset declare local typeset readonly trap umask"
    " ulimit wait exit return break continue read seq expr bc clear md5 md5sum sha1sum sha256sum"
    " shasum cksum identify exiftool ffprobe pdfinfo pdftotext nvidia-smi sw_vers lsb_release dig"
    " nslookup ping journalctl dmesg apt-cache dpkg-query objdump nm otool ldd tput stty locale"
    " getconf nproc arch findstr tasklist ipconfig ver systeminfo get-childitem get-content"
    " select-string test-path get-location gci gc sls gi gp gm select foreach % ? measure ft fl sl"
    " write cls fc oh"
)
_CHORES: Final = names(
    "mkdir rmdir md rd mv cp rm ln touch chmod chown chgrp tee install rsync scp sftp tar unzip"
    " zip gzip gunzip bzip2 xz 7z truncate dd patch kill pkill killall sleep source . open"
    " xdg-open code curl wget aria2c gh glab nvm fnm volta asdf mise pyenv rbenv rustup corepack"
    " crontab mktemp ssh-keygen ssh-add gpg apt apt-get dnf yum apk pacman snap port choco winget"
    " scoop gem virtualenv mkfifo mount umount sync dos2unix unix2dos iconv split csplit"
    " applypatch apply_patch huggingface-cli hf direnv xattr sips convert magick open-in-editor"
    " disown bg fg jobs del erase copy xcopy robocopy move ren taskkill attrib icacls setx start"
    " ni ri mi ci rni sc ac clc spps rename shred pbcopy pbpaste osascript say tmux screen"
)
_FLOW: Final = names("if then elif else while until do ! { } exec time sudo doas nohup builtin")
"""Words in front of a command that do not change its kind."""

_NOT_RUN: Final = names("for select case function done fi esac in foreach switch try catch finally")
"""Words that begin or end a compound command and run nothing."""

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ASKS: Final = names("--version -V -v version --help -h help")
_LOCAL: Final = re.compile(
    r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|host\.docker\.internal)\b|^\$|://\$"
)
_URL: Final = re.compile(r"https?://|^(?:localhost|127\.0\.0\.1)")
_QUERY: Final = re.compile(
    r"\b(?:select|pragma|explain|describe|show)\b|\.(?:tables|schema)|\\[dl]", re.IGNORECASE
)
_SYSTEM: Final = re.compile(r"system\(|>")
_FIND_RUNS: Final = ("-exec", "-ok")
_FIND_WRITES: Final = ("-delete", "-fprint", "-fls")
_FORMATS: Final = names("format fmt prettier format:write format:fix fmt:fix prettier:write")
_PREPARES: Final = _FORMATS | names(
    "install prepare postinstall clean setup deps bootstrap init sync uninstall"
)
"""Scripts and targets, by the names that people give them."""


def act_of(part: SimpleCommand) -> Act:
    """Return the kind of a simple command, whatever it redirects."""
    return act_of_words([word.text for word in part.words], part.heredocs)


def act_of_words(words: list[str], fed: Sequence[str] = ()) -> Act:
    """Return the kind of a command with these words; `fed` are the texts given to its input."""
    words, in_flow = plain_words(words)
    if not words:
        return "chore" if in_flow else "look"
    found = _by_name(words, fed)
    return "chore" if found == "look" and in_flow else found


def plain_words(words: list[str]) -> tuple[list[str], bool]:
    """Return the words of a command without those in front of its program.

    Assignments go, and programs that run another one, such as `env`, `timeout` and `npx`.  The
    other value says whether a word of a compound command went.
    """
    in_flow = False
    while words:
        name = name_of(words[0])
        if _ASSIGNMENT.match(words[0]):
            words = words[1:]
        elif words[0] in _FLOW:
            in_flow = in_flow or words[0] not in {"time", "sudo"}
            words = words[1:]
            if name in {"sudo", "doas"}:
                words = _past_options(words, "-u -g -U")
        elif words[0] in _NOT_RUN:
            return [], True
        elif name in _RUNNERS and (rest := _RUNNERS[name](words[1:])) is not None:
            words = rest
        else:
            break
    return words, in_flow


def name_of(word: str) -> str:
    """Return the name of a program without its folder and ending, in lower case."""
    name = word.replace("\\", "/").rpartition("/")[2].lower()
    return name[:-4] if name.endswith((".exe", ".cmd", ".bat")) else name


def _by_name(words: list[str], fed: Sequence[str]) -> Act:
    name, rest = name_of(words[0]), words[1:]
    is_bare = "/" not in words[0] and "\\" not in words[0]
    if len(rest) == 1 and rest[0] in _ASKS and is_bare:
        return "look"
    if rule := _RULES.get(name):
        return rule(rest)
    interpreter = inline_code.language_of(name)
    if interpreter is not None:
        return _interpreted(interpreter, rest, fed)
    if rest[-1:] == ["--help"] and is_bare:
        return "look"
    if name in _LOOKS:
        return "look"
    if name in _CHORES or not re.match(r"[\w$.~%@]", name):
        return "chore"
    return _cmdlet(words[0]) or "check"


# --- programs that run another one ---------------------------------------------------------------


def _past_options(words: list[str], valued: str = "") -> list[str]:
    """Return the words after the options in front; the `valued` ones take the next word."""
    takes = valued.split()
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            return words[at + 1 :]
        at += 2 if words[at] in takes else 1
    return words[at:]


def _after(*subcommands: str, valued: str = "") -> Callable[[list[str]], list[str] | None]:
    """Return a function that gives the words after one of some subcommands and its options."""

    def rest(words: list[str]) -> list[str] | None:
        return _past_options(words[1:], valued) if words[:1] and words[0] in subcommands else None

    return rest


def _env(words: list[str]) -> list[str] | None:
    return _past_options(words, "-u -C -S") or None


def _timeout(words: list[str]) -> list[str]:
    return _past_options(words, "-k -s")[1:]


def _command(words: list[str]) -> list[str] | None:
    return None if words[:1] and words[0] in {"-v", "-V"} else words


_RUNNERS: Final[Mapping[str, Callable[[list[str]], list[str] | None]]] = {
    "env": _env,
    "timeout": _timeout,
    "gtimeout": _timeout,
    "command": _command,
    "nice": lambda words: _past_options(words, "-n"),
    "stdbuf": _past_options,
    "xvfb-run": lambda words: _past_options(words, "-n -s"),
    "npx": lambda words: _past_options(words, "-p --package"),
    "bunx": _past_options,
    "uvx": lambda words: _past_options(words, "--from --with"),
    "cross-env": lambda words: words,
    "caffeinate": _past_options,
    "npm": _after("exec", "x", valued="-p --package"),
    "pnpm": _after("exec", "dlx"),
    "yarn": _after("exec", "dlx"),
    "uv": _after("run", valued="--with --python -p --extra --group --project --directory"),
    "pipx": _after("run", valued="--spec"),
    "poetry": _after("run"),
    "pipenv": _after("run"),
    "pdm": _after("run"),
    "rye": _after("run"),
    "bundle": _after("exec"),
}


def _runs(words: list[str]) -> Act:
    """Return the kind of the command that is run for each of many arguments."""
    return act_of_words(_past_options(words, "-I -n -P -L -d -E -s -a"))


# --- programs with rules of their own ------------------------------------------------------------


def _git(words: list[str]) -> Act:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in {"-C", "-c", "--git-dir", "--work-tree"} else words[1:]
    name, rest = (words[0], words[1:]) if words else ("", [])
    named = [word for word in rest if word[:1] != "-"]
    match name:
        case "config":
            return "look" if {"--get", "--list", "-l", "--get-all"} & set(rest) else "chore"
        case "branch" | "remote":
            options = [word for word in rest[1:] if word[:1] == "-"]
            lists = all(word in _LISTS for word in (*rest[:1], *options))
            return "look" if lists else "chore"
        case "stash" | "worktree" | "submodule" | "bisect" | "notes":
            return "look" if named[:1] and named[0] in _GIT_LISTS else "chore"
        case "tag":
            return (
                "look" if not rest or {"-l", "--list", "-n", "--points-at"} & set(rest) else "chore"
            )
        case "fsck":
            return "check"
        case _:
            return "look" if not name or name in _GIT_LOOKS else "chore"


_LISTS: Final = frozenset(["-a", "-r", "-v", "-vv", "--list", "--show-current", "get-url"])
_GIT_LISTS: Final = frozenset(["list", "show", "status", "log"])
_GIT_LOOKS: Final = names(
    "status diff log show blame rev-parse ls-files grep ls-tree cat-file describe shortlog reflog"
    " whatchanged check-ignore name-rev rev-list merge-base for-each-ref ls-remote count-objects"
    " symbolic-ref var help version diff-tree diff-index show-ref cherry range-diff annotate"
)


def _sed(words: list[str]) -> Act:
    """Return a look for a `sed` that changes no file."""
    letters = "".join(word[1:] for word in words if re.match("-[A-Za-z]", word))
    changes = "i" in letters or any(word.startswith("--in-place") for word in words)
    return "chore" if changes else "look"


def _perl(words: list[str]) -> Act:
    options = [word for word in words if re.match("-[A-Za-z0]", word)]
    if any("i" in word.lstrip("-").rstrip("'") for word in options if not word.startswith("-M")):
        return "chore"
    if any(word[-1] in "eE" for word in options):
        return "look"
    return "check"


def _find(words: list[str]) -> Act:
    if any(word.startswith(_FIND_WRITES) for word in words):
        return "chore"
    for at, word in enumerate(words):
        if word.startswith(_FIND_RUNS):
            return "check" if act_of_words(words[at + 1 :]) == "check" else "chore"
    return "look"


def _fd(words: list[str]) -> Act:
    return "chore" if {"-x", "-X", "--exec", "--exec-batch"} & set(words) else "look"


def _sort(words: list[str]) -> Act:
    return "chore" if any(word.startswith("-o") for word in words) else "look"


def _awk(words: list[str]) -> Act:
    return "chore" if any(_SYSTEM.search(word) for word in words) else "look"


def _fetch(words: list[str]) -> Act:
    """Return a check for a request to a program of this machine, else a chore."""
    if any(word in {"-o", "-O", "--output", "-OutFile"} for word in words):
        return "chore"
    urls = [word for word in words if _URL.search(word) or _LOCAL.search(word)]
    return "check" if any(_LOCAL.search(word) for word in urls) else "chore"


def _database(words: list[str]) -> Act:
    return "look" if any(_QUERY.search(word) for word in words) else "chore"


def _remote(words: list[str]) -> Act:
    rest = _past_options(words, "-i -p -l -o -F")
    return act_of_words(" ".join(rest[1:]).split()) if rest[1:] else "chore"


def _cmdlet(word: str) -> Act | None:
    """Return the kind of a PowerShell cmdlet, None for another program."""
    found = re.fullmatch(r"([A-Za-z]+)-([A-Za-z]+)", word)
    if found is None:
        is_expression = word[:1] in {"$", "[", "@"} or "::" in word
        return "chore" if is_expression else None
    verb, noun = found[1].lower(), found[2].lower()
    if not (found[1][0].isupper() and found[2][0].isupper()) and noun not in _NOUNS:
        return None
    if f"{verb}-{noun}" in _SESSION:
        return "look"
    if noun in {"webrequest", "restmethod", "sleep"}:
        return "chore"
    if verb in _LOOKING and (verb, noun) != ("out", "file"):
        return "look"
    return None if verb in _RUNNING or verb not in _CHANGING else "chore"


_SESSION: Final = names("set-location set-strictmode push-location pop-location set-psdebug")
_RUNNING: Final = names("invoke start")
_LOOKING: Final = names(
    "get test select where foreach sort format measure write read find search compare resolve join"
    " split convertto convertfrom convert group show out tee"
)
_CHANGING: Final = names(
    "set new remove copy move rename clear add import export expand compress stop update install"
    " uninstall save register unregister enable disable publish wait restart out start"
)
_NOUNS: Final = names(
    "item content childitem location path object string process property itemproperty variable"
    " command host output error warning verbose date json csv xml table list file null service"
    " filehash acl module member history help psdrive random unique strictmode sleep archive"
    " webrequest restmethod wmiobject ciminstance culture nettcpconnection custom psbreakpoint"
)


def _interpreted(language: str, words: list[str], fed: Sequence[str]) -> Act:
    """Return the kind of an interpreter call: by its module, inline code, or as a run of a file."""
    if words[:1] == ["-m"] and language == "python":
        module, rest = (words[1], words[2:]) if words[1:] else ("", [])
        if module in {"venv", "ensurepip", "virtualenv"}:
            return "chore"
        return (
            "look" if module == "json.tool" else _by_name([module, *rest], ()) if module else "look"
        )
    code = inline_code.code_in(language, words, fed)
    return "check" if code is None else inline_code.act_of(language, code)


def _shell(words: list[str]) -> Act:
    """Return a check for a script file; `bash -c` was split before."""
    return "check" if words and not words[0].startswith("-c") else "chore"


# --- programs with subcommands -------------------------------------------------------------------


def _by_subcommand(
    looks: str, chores: str, *, otherwise: Act = "check", alone: Act = "look", valued: str = ""
) -> _Rule:
    """Return a rule that decides by the first word that is not an option."""
    looking, changing = names(looks), names(chores)

    def rule(words: list[str]) -> Act:
        rest = _past_options([word for word in words if word[:1] != "+"], valued)
        if not rest:
            return "look" if words and words[0] in _ASKS else alone
        if rest[0] in looking:
            return "look"
        return "chore" if rest[0] in changing else otherwise

    return rule


_NPM_LOOKS: Final = (
    "ls list ll la view info show outdated root prefix bin get whoami ping search help explain why"
    " fund docs repo bugs config licenses"
)
_NPM_CHORES: Final = (
    "install i ci add uninstall remove rm un update up upgrade init create link unlink pkg dedupe"
    " prune rebuild cache set publish login logout version import store patch approve-builds self"
)


def _scripts(*, alone: Act, named: bool) -> _Rule:
    """Return the rule of a program that runs the scripts of a package; `named`: without `run`."""
    rule = _by_subcommand(
        _NPM_LOOKS,
        _NPM_CHORES,
        alone=alone,
        valued="--prefix -C --dir -w --workspace --filter -F --cwd",
    )

    def of(words: list[str]) -> Act:
        rest = [word for word in words if word[:1] != "-"]
        if rest[:1] and rest[0] in {"run", "run-script"}:
            return "look" if len(rest) == 1 else "chore" if rest[1] in _PREPARES else "check"
        if named and rest[:1] and rest[0] in _FORMATS:
            return "chore"
        return rule(words)

    return of


def _targets(words: list[str]) -> Act:
    """Return the kind of a `make` or similar call, by its targets."""
    if {"-n", "--dry-run", "--list", "-l", "--summary", "-qp"} & set(words):
        return "look"
    targets = [word for word in words if word[:1] != "-" and "=" not in word]
    return "chore" if targets and _PREPARES.issuperset(targets) else "check"


def _jvm(words: list[str]) -> Act:
    tasks = {word.rpartition(":")[2] for word in words if word[:1] != "-"}
    if tasks and tasks <= {"dependencies", "tasks", "help", "projects", "properties"}:
        return "look"
    return "chore" if tasks == {"clean"} else "check"


_TRIES: Final = names(
    "--check --diff --list-different --dry-run --check-only --lint --Werror --verify-no-changes"
)


def _formats(*, writes: str = "", tries: str = "") -> _Rule:
    """Return the rule of a formatter: a check with `--check`; without its `writes` it prints."""
    writing, trying = names(writes), _TRIES | names(tries)

    def rule(words: list[str]) -> Act:
        if writing & set(words):
            return "chore"
        if trying & set(words):
            return "check"
        return "look" if writing else "chore"

    return rule


def _formats_by(subcommands: str, otherwise: _Rule) -> _Rule:
    """Return the rule of a program that formats with some of its subcommands."""
    formatting = names(subcommands)

    def rule(words: list[str]) -> Act:
        rest = _past_options([word for word in words if word[:1] != "+"])
        if rest[:1] and rest[0] in formatting:
            return "check" if _TRIES & set(rest) else "chore"
        return otherwise(words)

    return rule


def _pip(words: list[str]) -> Act:
    return _PIP(words)


_PIP: Final = _by_subcommand(
    "list show freeze index inspect debug help config", "", otherwise="chore"
)


def _uv(words: list[str]) -> Act:
    return _pip(words[1:]) if words[:1] == ["pip"] else _UV(words)


_UV: Final = _by_subcommand(
    "tree version help", "sync add remove lock venv init tool python cache self export"
)
_COMPOSE: Final = _by_subcommand(
    "ps logs images ls top port version events config stats",
    "down stop rm pull push kill pause unpause create restart",
)


def _docker(words: list[str]) -> Act:
    rest = _past_options(words, "-c --context -H")
    if rest[:1] == ["compose"]:
        return _compose(rest[1:])
    return _DOCKER(rest)


def _compose(words: list[str]) -> Act:
    return _COMPOSE(_past_options(words, "-f --file -p --project-name --env-file --profile"))


_DOCKER: Final = _by_subcommand(
    "ps images image inspect logs version info stats top port events history search context"
    " container network volume diff",
    "rm rmi stop kill pull push start restart pause unpause tag login logout cp system prune create"
    " save load commit rename update wait attach export import",
)


def _kubectl(words: list[str]) -> Act:
    rest = _past_options(words, "-n --namespace --context")
    if any(word.startswith("--dry-run") for word in rest):
        return "check"
    return _KUBECTL(rest)


_KUBECTL: Final = _by_subcommand(
    "get describe logs explain api-resources config top version cluster-info",
    "apply create delete edit patch scale label annotate port-forward cp set expose drain cordon",
)
_SERVICES: Final = _by_subcommand(
    "status list show cat is-active is-enabled list-units list-unit-files print",
    "",
    otherwise="chore",
)
_PACKAGES: Final = _by_subcommand(
    "list info search outdated config doctor deps uses leaves --prefix", "", otherwise="chore"
)
_CONDA: Final = _by_subcommand("list info search config", "", otherwise="chore")
_POETRY: Final = _by_subcommand(
    "show env config version about search", "install add remove update lock init self cache sync"
)

_RULES: Final[Mapping[str, _Rule]] = {
    "git": _git,
    "sed": _sed,
    "gsed": _sed,
    "perl": _perl,
    "find": _find,
    "fd": _fd,
    "sort": _sort,
    "awk": _awk,
    "gawk": _awk,
    "xargs": _runs,
    "parallel": _runs,
    "watch": _runs,
    "command": lambda _: "look",
    "curl": _fetch,
    "wget": _fetch,
    "http": _fetch,
    "https": _fetch,
    "iwr": _fetch,
    "irm": _fetch,
    "invoke-webrequest": _fetch,
    "invoke-restmethod": _fetch,
    "sqlite3": _database,
    "psql": _database,
    "mysql": _database,
    "redis-cli": _database,
    "mongosh": _database,
    "ssh": _remote,
    **dict.fromkeys(POSIX_SHELLS | POWERSHELLS | {"cmd", "dash", "ksh", "fish"}, _shell),
    "npm": _scripts(alone="look", named=False),
    "pnpm": _scripts(alone="look", named=True),
    "yarn": _scripts(alone="chore", named=True),
    "bun": _scripts(alone="look", named=False),
    "pip": _pip,
    "pip3": _pip,
    "uv": _uv,
    "poetry": _POETRY,
    "pipenv": _POETRY,
    "pdm": _POETRY,
    "conda": _CONDA,
    "mamba": _CONDA,
    "bundle": _by_subcommand("list show info outdated config", "install update add lock"),
    "composer": _by_subcommand("show info outdated", "install require update remove dump-autoload"),
    "cargo": _formats_by(
        "fmt",
        _by_subcommand(
            "metadata tree search info version locate-project pkgid read-manifest help",
            "add remove rm update install uninstall init new fetch vendor generate-lockfile login"
            " clean publish owner fix",
        ),
    ),
    "go": _by_subcommand("env version list doc help", "get mod clean work fmt telemetry"),
    "dotnet": _formats_by(
        "format",
        _by_subcommand("list help sln", "add remove restore new nuget tool workload clean"),
    ),
    "docker": _docker,
    "podman": _docker,
    "docker-compose": _compose,
    "kubectl": _kubectl,
    "helm": _by_subcommand(
        "list ls get show status search history version repo",
        "install upgrade uninstall rollback pull push package dependency",
    ),
    "terraform": _formats_by(
        "fmt",
        _by_subcommand(
            "show output state version providers graph console",
            "init apply destroy import taint untaint workspace get refresh",
        ),
    ),
    "systemctl": _SERVICES,
    "service": _SERVICES,
    "launchctl": _SERVICES,
    "brew": _PACKAGES,
    **dict.fromkeys(["make", "gmake", "just", "task", "rake", "nox"], _targets),
    **dict.fromkeys(["gradle", "gradlew", "mvn", "mvnw"], _jvm),
    **dict.fromkeys(
        ["black", "autopep8", "yapf", "rustfmt", "stylua", "swiftformat", "docformatter"],
        _formats(),
    ),
    "isort": _formats(tries="-c"),
    "prettier": _formats(writes="--write -w", tries="-c -l"),
    **dict.fromkeys(["gofmt", "goimports", "shfmt"], _formats(writes="-w", tries="-l -d")),
    "clang-format": _formats(writes="-i", tries="-n"),
    "ruff": _formats_by("format", _by_subcommand("rule help version linter config", "clean")),
    "biome": _formats_by("format", _by_subcommand("help version explain", "init migrate")),
    "dprint": _formats_by("fmt", _by_subcommand("help version", "init")),
    "taplo": _formats_by("fmt format", _by_subcommand("help version get", "")),
    "deno": _formats_by("fmt", _by_subcommand("info doc help types", "add remove install cache")),
}
