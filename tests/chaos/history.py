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
    PUSHED = "pushed"
    """Messages that came over a socket; asked for when the credit was granted that they were sent for."""
    ACK = "ack"
    NACK = "nack"
    APPEND = "append"
    READ = "read"
    """Records of one shard, however they came: from `first` on."""
    FOLLOWED = "followed"
    """A record, or a gap, as an event of an answer that goes on; `first` is where its shard's last one ended."""
    RESHARD = "reshard"
    SHARDS = "shards"
    """Which shards a stream has, and their parents."""
    GROUP_READ = "group_read"
    COMMIT = "commit"
    STANDING = "standing"
    """Where a group says it stands."""
    REPLAY = "replay"
    """A replay that is done: its window, as two places for each shard."""
    REPLAYED = "replayed"
    """Everything that a replay's target holds."""
    DAMAGE = "damage"
    """A byte of a file was changed: ok where that was told."""
    CLOCK = "clock"
    """While it lasted, the store's clock was wrong."""
    WEBHOOK = "webhook"
    """Everything of that queue or stream is to be posted to us."""
    POSTED = "posted"
    """A webhook's attempt as its receiver saw it: asked when it came, ok where the receiver answered that it took it."""
    STATS = "stats"
    DEAD_LETTERS = "dead_letters"


DELIVERIES = (Kind.RECEIVE, Kind.PUSHED)
READS = (Kind.READ, Kind.FOLLOWED)


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message or record in an answer; of a place that was committed, only shard and offset.

    `group` of a record that was appended is its key. `receives` counts a message's deliveries, `number` is a record's sequence number where the Kinesis door told it.
    """

    value: str = ""
    id: str = ""
    shard: int = 0
    offset: int = -1
    group: str = ""
    receives: int = 0
    number: str = ""
    parents: tuple[int, ...] = ()


class Gap(msgspec.Struct, frozen=True):
    """Offsets [first, next) of which a reader was told that they cannot be read."""

    shard: int
    first: int
    next: int
    reason: str


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
    """Of messages, or of readers; of an append its key."""
    seen: tuple[Seen, ...] = ()
    counts: dict[str, int] = {}
    promised_s: float = 0.0
    """How long what was sent is to be delayed, or what was received to be hidden, at least."""
    delivery: int = 0
    """Of a verdict that counts for one delivery only: which one, by its receives."""
    first: int = -1
    """Of a read: where it was to begin."""
    gaps: tuple[Gap, ...] = ()
    tier: str = ""
    generation: int = -1
    owns: tuple[int, ...] = ()
    """The shards that are this member's in that generation."""
    target: str = ""
    """Of a queue's counts: the queue of its dead letters. Of a replay: the stream it fills."""


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
