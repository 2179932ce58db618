"""Draw docs/terminal.png: what a terminal shows of the demo home, by a headless Chromium.

    python tools/terminal.py [CHROMIUM]

The commands run for real, over the sessions of `tools/demo.py`; a view lists five artifacts.
"""

import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "terminal.png"
SIZE = "1080,770"
WIDTH = 113
"""Where a line is cut, as a terminal would cut it in a list."""

PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #16181d; color: #d5d9e0 }}
pre {{ margin: 0; padding: 18px 24px; font: 15px/20px "DejaVu Sans Mono", monospace }}
b {{ color: #8fd18a; font-weight: normal }} i {{ color: #7fb3e6; font-style: normal }}
u {{ color: #e5b567; text-decoration: none }}
</style><pre>{}</pre>"""


def shown(home: Path, project: Path, *arguments: str) -> str:
    """Run a command; return it and its output as HTML."""
    command = [sys.executable, "-m", "codex_checkpoints", *arguments, "--codex-home", str(home)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    lines = [f"<b>$</b> codex-checkpoints {html.escape(' '.join(arguments))}"]
    for line in done.stdout.splitlines():
        text = html.escape(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…")
        heading = text.startswith("[") and text.endswith("]")
        suspect = "why=SUSPECT" in text
        lines.append(f"<i>{text}</i>" if heading else f"<u>{text}</u>" if suspect else text)
    return "\n".join(lines)


def main() -> int:
    """Draw the picture; return the exit code."""
    browser = sys.argv[1] if len(sys.argv) > 1 else shutil.which("chromium")
    if browser is None:
        print("A Chromium is needed.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder, "codex"), Path(folder, "pricelist")
        demo = [sys.executable, str(ROOT / "tools" / "demo.py"), str(home), str(project)]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
        state = home / "codex-checkpoints"
        (state / "config.toml").write_text("[caps]\nmaxRecentArtifacts = 5\n")
        listed = shown(home, project, "sessions")
        session = re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}", listed)[0]
        page = Path(folder, "page.html")
        parts = [listed, "", shown(home, project, "view", session)]
        page.write_text(PAGE.format("\n".join(parts)), encoding="utf-8")
        draw = [browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"]
        draw += [f"--window-size={SIZE}", f"--screenshot={PICTURE}", page.as_uri()]
        subprocess.run(draw, check=True, capture_output=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
