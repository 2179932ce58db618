"""Compare each story, a rollout in a folder, with its expected checkpoint and view.

A folder of `golden/` holds a `README` that says why, `rollout.jsonl`, perhaps files that it builds
on (`base-<rollout id>.jsonl`), accepted updates (`updates.jsonl`) and the hashes that the host sees
now (`hashes.json`); and what is expected: `checkpoint.json` and `view.txt`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from codex_checkpoints.core.checkpoint.records import Caps, from_bytes, to_bytes
from codex_checkpoints.core.checkpoint.view import view_v1
from derived_state import story_checkpoint, story_digests

GOLDEN = Path(__file__).parents[1] / "golden"
STORIES = sorted(folder for folder in GOLDEN.glob("*") if folder.is_dir())


def test_some_stories_exist():
    assert len(STORIES) > 20


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_story_has_a_reason_and_the_expected_end(
    story: Path, golden: Callable[[Path, bytes], None]
):
    checkpoint = story_checkpoint(story)
    data = to_bytes(checkpoint)

    golden(story / "checkpoint.json", data)
    golden(story / "view.txt", view_v1(checkpoint, Caps()).encode())
    assert from_bytes(data) == checkpoint
    files = {path.name for path in story.iterdir() if not path.name.startswith("base-")}
    assert files <= {
        *("README", "rollout.jsonl", "updates.jsonl", "hashes.json", "checkpoint.json", "view.txt")
    }
    assert (story / "README").read_text(encoding="utf-8").strip()


def test_stories_have_the_expected_digests(golden: Callable[[Path, bytes], None]):
    golden(GOLDEN / "digests.txt", story_digests(GOLDEN))
