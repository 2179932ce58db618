"""The real Codex around a restore: two turns behind it, and an answer for whoever goes on.

    python codex_to_resume.py ROOT

makes the home and the project below ROOT, lets Codex take two turns, and says `worked` with the
session. Each line that comes in is what a person is going to ask; when that has reached the model,
all that it was asked with is said. One JSON object a line.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests/
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from codex.codex_cli import MODEL, AppServer, CodexHome, codex_command
from codex.scripted_model import (
    Answer,
    Item,
    ScriptedModel,
    apply_patch,
    say,
    shell,
    text_of,
    update_plan,
)

TASK = "Fix the division in calc."
LATER = "Now something else entirely."
SAID = "I would rather divide truly."
PATCH = """\
*** Begin Patch
*** Update File: calc/core.py
@@
 def div(a, b):
-    return a // b
+    return a / b
*** End Patch"""
PLAN = [
    ("Read the module", "completed"),
    ("Fix the division", "completed"),
    ("Test it", "in_progress"),
]


def tell(**facts: object) -> None:
    """Say one thing to the test."""
    print(json.dumps(facts), flush=True)


def script() -> list[Item]:
    """What the model does in the two turns."""
    return [
        update_plan(PLAN, "call_plan"),
        shell("sed -n 1,6p calc/core.py", "call_read"),
        apply_patch(PATCH, "call_patch"),
        say(SAID),
        say("That was the other thing."),
    ]


def settle(home: CodexHome) -> None:
    """Answer what Codex asks in a terminal, and let it leave no server behind."""
    config = home.codex_home / "config.toml"
    text = config.read_text(encoding="utf-8")
    text = text.replace("[features]\n", "[features]\ndaemon_auto_start = false\n")
    text += "\n[tui]\nscreen_reader_detection_done = true\n"
    text += f'\n[notice.model_migrations]\n"{MODEL}" = "gpt-6-sol"\n'
    config.write_text(text, encoding="utf-8", newline="\n")


def install(root: Path) -> None:
    """Put a `codex` where the terminal of the workbench finds it."""
    folder = root / "bin"
    folder.mkdir()
    program = folder / "codex"
    command = " ".join(f"'{part}'" for part in codex_command())
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def main() -> None:
    root = Path(sys.argv[1])
    with ScriptedModel([Answer(item) for item in script()]) as model:
        home = CodexHome(root, model)
        settle(home)
        install(root)
        with AppServer(home) as server:
            thread = server.start()
            server.turn(thread, TASK)
            server.turn(thread, LATER)
        tell(says="worked", session=thread)
        for line in sys.stdin:
            prompt = line.strip()
            answer = Answer(say("So."), to=prompt)
            before = len(model.turns)
            model.add(answer)
            tell(says="answers")
            answer.wait_until_asked(60.0)
            # In a terminal Codex also asks for a title; that has no answer here.
            asked = [turn for turn in model.turns[before:] if prompt in turn.texts("user")]
            texts = [text_of(item) for item in asked[0].input]
            tell(says="asked", calls=len(asked), texts=texts)


if __name__ == "__main__":
    main()
