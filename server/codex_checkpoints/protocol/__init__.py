"""What server and clients say to each other: the wire records and the table of methods.

This package is the single source.  `server` registers exactly the table, the command line prints
the same records, PROTOCOL.md names each of them, and the TypeScript of the extension is made from
it.  So it imports nothing that speaks: no pygls, no service; `answers` makes its records from
values of the service.  Each module has the records of a subject, and everybody outside takes them
from here.

Field names are camelCase on the wire.  Every field is always sent, `null` where nothing is known.
Times are UTC, ISO 8601 with milliseconds and `Z`.
"""

# Naming every record again would make a second list of them.
# ruff: noqa: F403

from codex_checkpoints.protocol.compactions import *
from codex_checkpoints.protocol.connecting import *
from codex_checkpoints.protocol.events import *
from codex_checkpoints.protocol.hints import *
from codex_checkpoints.protocol.histories import *
from codex_checkpoints.protocol.lineage import *
from codex_checkpoints.protocol.markers import *
from codex_checkpoints.protocol.notes import *
from codex_checkpoints.protocol.portable import *
from codex_checkpoints.protocol.receipts import *
from codex_checkpoints.protocol.restores import *
from codex_checkpoints.protocol.sessions import *
from codex_checkpoints.protocol.table import *
