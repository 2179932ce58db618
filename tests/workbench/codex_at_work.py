"""The real Codex CLI at work in a lab of the workbench tests, one held step after the other.

    python codex_at_work.py ROOT

makes the home and the project below ROOT and says `ready`. Each line that comes in lets it go on:
the first one starts Codex, each further one releases the answer that it waits for. Before each
answer it says that it waits, and at the end that it is done. One JSON object a line.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests/
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from codex.codex_cli import AppServer, CodexHome
from codex.scripted_model import ScriptedModel
from codex.test_follow import TASK, Work


def tell(**facts: str | int) -> None:
    """Say one thing to the test."""
    print(json.dumps(facts), flush=True)


def main() -> None:
    work = Work()
    with ScriptedModel(work.answers()) as model:
        home = CodexHome(Path(sys.argv[1]), model)
        tell(says="ready")
        sys.stdin.readline()
        # As the extension of Codex does it: a session of `codex exec` is one in the background.
        with AppServer(home) as server:
            thread, since = server.start(), server.count()
            server.begin(thread, TASK)
            tell(says="started", session=thread)
            for step, answer in enumerate(work.answers(), start=1):
                answer.wait_until_asked()
                tell(says="waits", step=step)
                sys.stdin.readline()
                answer.release()
            server.wait_for_turn_end(thread, since)
        assert model.unscripted == []
    tell(says="done")


if __name__ == "__main__":
    main()
