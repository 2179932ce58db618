"""Decides whether a command is meant to change files, and which files a formatter names."""

from __future__ import annotations

import re
from typing import Final

from codex_checkpoints.core.fields import names
from codex_checkpoints.core.shell import inline_code, simple_commands
from codex_checkpoints.core.shell.posix import SimpleCommand, Word
from codex_checkpoints.core.shell.simple_commands import name_of, plain_words

_ALWAYS: Final = names(
    "rm cp mv patch unzip rsync ln dd truncate tee touch wget black isort autopep8 yapf rustfmt"
    " stylua swiftformat docformatter remove-item copy-item move-item rename-item expand-archive"
    " new-item set-content add-content out-file gunzip 7z"
)
_WITH_OPTION: Final = {
    "sed": r"-[A-Za-z]*i|--in-place",
    "gsed": r"-[A-Za-z]*i|--in-place",
    "perl": r"-[A-Za-z0]*i",
    "curl": r"-[A-Za-z]*[oO]$|--output|--remote-name",
    "tar": r"-?[A-Za-z]*x",
    "prettier": r"-w$|--write",
    "gofmt": r"-w$",
    "goimports": r"-w$",
    "shfmt": r"-w$",
    "clang-format": r"-i$",
    "eslint": r"--fix$",
    "stylelint": r"--fix$",
}
"""Programs that change files only with an option."""

_WITH_WORD: Final = {
    "git": names("apply am merge pull rebase cherry-pick revert switch stash clean mv rm"),
    "ruff": names("format"),
    "biome": names("format"),
    "dprint": names("fmt"),
    "dotnet": names("format add remove"),
    "go": names("fmt get"),
    "cargo": names("fmt add remove fix"),
    **dict.fromkeys(["npm", "pnpm", "bun"], names("install i add remove uninstall update")),
    **dict.fromkeys(["yarn", "uv", "poetry", "composer", "bundle"], names("add remove update")),
}
"""Programs that change files only with a subcommand."""

_TRIES: Final = names("--check --dry-run --diff --list -n --cached --help list show")
_FORMATTERS: Final = names(
    "black isort autopep8 yapf rustfmt stylua swiftformat docformatter prettier gofmt goimports"
    " shfmt clang-format eslint ruff biome dprint"
)
_FILE: Final = re.compile(r"[\w./@\\ -]*[\w)-]\.[A-Za-z]\w{0,9}")
_VALUED: Final = names(
    "--config -c --line-length -l --target-version -t --profile --parser --ext --rulesdir -style"
)


def may_change_files(part: SimpleCommand) -> bool:
    """Return whether a part of a script is meant to change files."""
    words, _ = plain_words([word.text for word in part.words])
    if not words:
        return False
    name, rest = name_of(words[0]), words[1:]
    language = inline_code.language_of(name)
    if language is not None:
        code = inline_code.code_in(language, rest, part.heredocs)
        return code is not None and inline_code.writes(code)
    if name == "find" and "-delete" in rest:
        return True
    if name in {"find", "xargs"}:
        at = next((at for at, word in enumerate(rest) if word.startswith("-exec")), -1)
        inner = rest[at + 1 :]
        return any(_changes(inner[place:]) for place in range(min(len(inner), 4)))
    return _changes(words)


def _changes(words: list[str]) -> bool:
    name, rest = name_of(words[0]), words[1:]
    if _TRIES & set(rest):
        return False
    if option := _WITH_OPTION.get(name):
        return any(re.match(option, word) for word in rest)
    if given := _WITH_WORD.get(name):
        plain = (word for word in rest if word[:1] not in {"-", "+"})
        return next(plain, "") in given
    return name in _ALWAYS


def formatted_by(words: tuple[Word, ...]) -> tuple[str, ...]:
    """Return the files that are named to a formatter which rewrites them."""
    texts = [word.text for word in words]
    inner, _ = plain_words(texts)
    if not inner or name_of(inner[0]) not in _FORMATTERS or not _changes(inner):
        return ()
    if simple_commands.act_of_words(inner) == "check" and name_of(inner[0]) != "eslint":
        return ()
    named = words[len(words) - len(inner) + 1 :]
    is_value = [False, *(word.text in _VALUED for word in named)]
    return tuple(
        word.text
        for word, valued in zip(named, is_value, strict=False)
        if word.literal and not valued and _FILE.fullmatch(word.text)
    )


def looks_like_a_file(path: str) -> bool:
    """Return whether the last part of a path has an ending, as files mostly do."""
    return _FILE.fullmatch(path) is not None
