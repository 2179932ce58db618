"""Start the server from the extension's own folder, under whichever Python is there.

    python -I -S -X utf8 -u launch.py serve       be the server; every command of the CLI works
    python -I -S -X utf8 -u launch.py probe       say in one line of JSON whether this Python can

`-I` and `-S` shut out the user's environment: no PYTHONPATH, no site-packages, no .pth files.  So
the libraries that came along are put on the path here.  `probe` loads what is compiled, for that
is what differs between interpreters.  The code also runs under a Python that is too old for
everything else, to be able to say so.
"""

import json
import os
import platform
import sys

OLDEST = (3, 11)
NEWEST = (3, 14)
HERE = os.path.dirname(os.path.abspath(__file__))
COMPILED = ("sqlite3", "orjson", "watchdog.observers")


def folders():
    """Return what goes on the path: our code, what is built for this system alone, the rest."""
    system = "%s-%s" % (sys.platform, platform.machine().lower())
    return [
        os.path.join(HERE, "server"),
        os.path.join(HERE, "native", system),
        os.path.join(HERE, "libs"),
    ]


def probe():
    """Return whether the server can run here, and if not, why."""
    version = "%d.%d.%d" % sys.version_info[:3]
    answer = {"version": version, "executable": sys.executable, "reason": None}
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        span = "%d.%d to %d.%d" % (OLDEST + NEWEST)
        answer["reason"] = "Python %s is not supported; %s are" % (version, span)
        return answer
    zstd = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    for name in COMPILED + (zstd,):
        try:
            __import__(name)
        except Exception as error:  # whatever it is, this Python cannot
            answer["reason"] = "%s cannot be loaded: %s" % (name, str(error).split("\n")[0])
            return answer
    return answer


def main():
    """Answer a probe, or hand over to the command line."""
    sys.path[:0] = folders()
    if sys.argv[1:] == ["probe"]:
        print(json.dumps(probe()))
        return 0
    from codex_checkpoints.__main__ import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
