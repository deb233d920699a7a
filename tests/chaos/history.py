"""What clients did and what they were told: the only thing the checker may look at.

An operation is written down once, when it is over. `ok`: the answer said so. `fail`: the answer, or a connection that
never came to be, said that nothing happened. `unknown`: asked, and no answer that says which; it may take effect at any
time after it was asked, also later than everything else here.
"""

import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec


class Outcome(StrEnum):
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    SEND = "send"
    RECEIVE = "receive"
    ACK = "ack"
    NACK = "nack"
    APPEND = "append"
    READ = "read"
    GROUP_READ = "group_read"
    COMMIT = "commit"
    STANDING = "standing"
    """Where a group says it stands."""
    STATS = "stats"
    DEAD_LETTERS = "dead_letters"


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message or record in an answer; of a place that was committed, only shard and offset."""

    value: str = ""
    id: str = ""
    shard: int = 0
    offset: int = -1
    group: str = ""


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of one client. Times are seconds since the history began."""

    client: str
    kind: Kind
    log: str
    invoked: float
    ended: float
    outcome: Outcome
    status: int = 0
    code: str = ""
    values: tuple[str, ...] = ()
    """What was asked to be sent or settled."""
    group: str = ""
    seen: tuple[Seen, ...] = ()
    counts: dict[str, int] = {}


class History:
    """Every operation of a run, in the order in which they ended."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._began = time.monotonic()

    def now(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def add(self, operation: Operation) -> None:
        self.operations.append(operation)

    def write(self, path: Path) -> None:
        """As NDJSON, one operation a line."""
        path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in self.operations))

    def counts(self) -> dict[str, dict[str, int]]:
        """How many operations of each kind ended in each way."""
        found: dict[str, dict[str, int]] = {}
        for one in self.operations:
            ways = found.setdefault(one.kind.value, {way.value: 0 for way in Outcome})
            ways[one.outcome.value] += 1
        return found


def read_history(path: Path) -> Iterator[Operation]:
    """The operations of a file that `History.write` wrote."""
    with path.open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=Operation)
