"""Pinned lines of a file on the disk hold no part of a secret."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.checkpoint.redaction import MARK, redact, secrets
from codex_checkpoints.core.restore.markers import Pin
from codex_checkpoints.service.restore.branch_copy import pinned_now
from codex_checkpoints.storage.workspace import Workspace

BODY = "MIIEpAIBAAKCAQEA" * 4
KEY = f"""\
# of the shop
-----BEGIN RSA PRIVATE KEY-----
{BODY}
{BODY}
-----END RSA PRIVATE KEY-----
port = 80
"""


def pinned(folder: Path, start: int, end: int, text: str = KEY) -> str | None:
    (folder / "shop.pem").write_text(text, encoding="utf-8")
    return pinned_now(Workspace(), str(folder), Pin("shop.pem", start, end)).content


def test_lines_inside_a_key_show_none_of_it(tmp_path: Path):
    assert pinned(tmp_path, 3, 4) == MARK


def test_lines_beside_a_key_stay(tmp_path: Path):
    assert pinned(tmp_path, 4, 6) == f"{MARK}\nport = 80\n"
    assert pinned(tmp_path, 1, 3) == f"# of the shop\n{MARK}"
    assert pinned(tmp_path, 6, 6) == "port = 80\n"


def test_value_after_a_name_on_the_line_before_is_redacted(tmp_path: Path):
    told = 'password:\n  "hunter2 and more"\nport: 80\n'

    assert pinned(tmp_path, 2, 3, told) == f'  "{MARK}"\nport: 80\n'


@given(st.lists(st.sampled_from([KEY, "ghp_" + "A1b2" * 9, "a = 1\n", MARK, '"', "token: ", "x"])))
def test_text_between_secrets_equals_the_redacted_one(parts: list[str]):
    text = "".join(parts)
    found = secrets(text)

    ends = [0, *(end for _, end in found)]
    begins = [*(begin for begin, _ in found), len(text)]
    left = [text[end:begin] for end, begin in zip(ends, begins, strict=True)]
    assert MARK.join(left) == redact(text)
    assert all(begin < end for begin, end in found)
