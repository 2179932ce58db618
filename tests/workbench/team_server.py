"""A PostgreSQL server with a store and two people of one team, `ana` and `ben`.

    python team_server.py

prints the addresses of both as one JSON object, or `{}` where there is no server to start.  A first
line that comes in stops the server, the end of the input ends the program.
"""

import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from postgres_server import programs, running
from team import set_up


def _exit(_number: int, _frame: object) -> None:
    sys.exit(1)  # the server ends and is removed


def main() -> None:
    if programs() is None:
        print("{}", flush=True)
        return
    signal.signal(signal.SIGTERM, _exit)
    with running() as server:
        set_up(server)
        people = {login: server.url(login, "postgres") for login in ("ana", "ben")}
        print(json.dumps(people), flush=True)
        if sys.stdin.readline():
            server.stop()
            print("stopped", flush=True)
            sys.stdin.readline()
            server.start()  # it is stopped at the end


if __name__ == "__main__":
    main()
