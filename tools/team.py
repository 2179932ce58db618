"""A team to look at: a PostgreSQL server and the homes of two people, until Ctrl+C.

    python tools/team.py [FOLDER]

Ana pushes her sessions for the team, Ben lists them, searches them and pulls one. All texts are
ours; everything is below FOLDER, `build/team` by default, and goes when it is made anew.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pg8000.native import identifier

from codex_checkpoints.storage.remote.postgres import PostgresHistoryStore

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "support"))

from postgres_server import ADMIN, PostgresServer, programs, running  # noqa: E402

TEAM = "shop"


def main() -> None:
    """Show a push, a list, a search and a pull, then wait."""
    if programs() is None:
        sys.exit("there is no PostgreSQL server here: install the package postgresql")
    folder = Path(sys.argv[1] if sys.argv[1:] else ROOT / "build" / "team").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    with running() as server:
        set_up(server)
        ana, ben = folder / "ana", folder / "ben"
        demo = [sys.executable, str(ROOT / "tools" / "demo.py")]
        subprocess.run([*demo, str(ana), str(folder / "pricelist")], check=True)
        ben.mkdir()
        (newest,) = ours(ana, "sessions", "--limit", "1", show=False).split()[3:4]
        for home in (ana, ben):
            ours(home, "remote", "set", server.url(home.name, "postgres"), "--yes")
        ours(ana, "push", "--cwd", str(folder / "pricelist"), "--team", TEAM, "--yes")
        ours(ben, "sessions", "--remote")
        ours(ben, "search", "price", "--remote", "--limit", "5")
        ours(ben, "pull", newest, "--into", str(folder))
        print("The server runs until Ctrl+C.", flush=True)
        try:
            input()
        except (KeyboardInterrupt, EOFError):
            print()


def set_up(server: PostgresServer) -> None:
    """Make the store, and two people of one team."""
    store = PostgresHistoryStore(server.url(ADMIN, "postgres"), {})
    store.make()
    store.close()
    with server.connect(ADMIN, "postgres") as admin:
        for login in ("ana", "ben"):
            admin.run(f"create role {identifier(login)} login in role codex_checkpoints_person")
            admin.run(
                "insert into codex_checkpoints.member values (:login, 'default', :teams)",
                login=login,
                teams=[TEAM],
            )


def ours(home: Path, *words: str, show: bool = True) -> str:
    """Run a command in a home; print it with its output, and return that."""
    command = [sys.executable, "-m", "codex_checkpoints", words[0], "--codex-home", str(home)]
    if show:
        print(f"{home.name}$ codex-checkpoints {' '.join(words)}", flush=True)
    done = subprocess.run(
        [*command, *words[1:]],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "CODEX_HOME": str(home)},
    )
    if show:
        print(done.stdout, flush=True)
    return done.stdout


if __name__ == "__main__":
    main()
