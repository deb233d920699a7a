"""The history of a run: the only input of the checker.

An operation is recorded once, when it ends. `ok`: the response says so. `fail`: the response, or a
connection that was never established, says that nothing happened. `unknown`: requested, without a
conclusive response; it may take effect at any time after the request, also later than everything
else in the history.
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
    """Messages pushed over a socket; invoked when their credit was granted."""
    ACK = "ack"
    NACK = "nack"
    APPEND = "append"
    EVENT = "event"
    """An event posted to a source; `log` is the source's target."""
    READ = "read"
    """Records of one shard in any protocol, from `first` on."""
    FOLLOWED = "followed"
    """A record or gap as a server-sent event; `first` is where its shard's last one ended."""
    RESHARD = "reshard"
    SHARDS = "shards"
    """The shards of a stream, and their parents."""
    GROUP_READ = "group_read"
    COMMIT = "commit"
    STANDING = "standing"
    """The committed offsets of a group."""
    REPLAY = "replay"
    """A completed replay: its window, as two positions per shard."""
    REPLAYED = "replayed"
    """All records of a replay's target."""
    PUBLISH = "publish"
    """A message published to a topic."""
    ROUTE = "route"
    """A route of a topic was put, and takes the subjects in `values`, or deleted; `group` is its name."""
    ROUTE_STATS = "route_stats"
    """The counts of a route whose messages were all routed; `seen` has its name and number."""
    TAKEN = "taken"
    """All messages of a topic, each with the numbers of the routes that take it."""
    DECIDED = "decided"
    """A message of a topic, with the numbers of the routes that take it as they were read at that time."""
    TARGET_DELETED = "target_deleted"
    """The queue that is a route's target was deleted; the next one has its name."""
    TARGET_FULL = "target_full"
    """A target refused everything; `seen` is what the target in `group` received meanwhile."""
    ASK = "ask"
    """A request, or a reading of its replies, whose value is in `values`; `seen` has the replies so far."""
    REPLY = "reply"
    """A reply, in `values`, to the request in `group`."""
    REPLIES = "replies"
    """All replies that the request in `group` will have."""
    VIEW_ROWS = "view_rows"
    """The rows of a view at the end; `counts` has the number in each, by its key."""
    JOINED = "joined"
    """All records of a stream that a view joins, each with its time."""
    VIEW_REBUILD = "view_rebuild"
    """The report of a rebuild of a view at the end, in `counts`."""
    VIEW_SOURCES = "view_sources"
    """Ranges of the sources of a view's rows; `counts` has `<shard> first`, `last` and `records` of each."""
    VIEW_HISTORY = "view_history"
    """Rows of a view after an earlier batch; `counts` has 1 as `same` if they are those that a read returned then."""
    VIEW_BACK_TEST = "view_back_test"
    """Result of a back-test of a view with one of its queries, as `counts`, with 1 for each field that is true."""
    VIEW_CHANGES = "view_changes"
    """Rows that the changes in a sink of a view add up to; -1 after a change of another row."""
    DAMAGE = "damage"
    """A byte of a file was changed: ok if that was detected."""
    DELETED = "deleted"
    """That stream was deleted some time before."""
    PAUSED = "paused"
    """A queue or group was paused: from the response to the pause to the request to resume."""
    CLOCK = "clock"
    """A period in which the store's clock was wrong."""
    WEBHOOK = "webhook"
    """A webhook of that queue or stream was created."""
    POSTED = "posted"
    """A webhook attempt at the receiver: invoked at its arrival, ok if it was accepted."""
    ROUTE_POSTED = "route_posted"
    """An attempt at the URL of a route, whose log is named as the route, like POSTED."""
    STATS = "stats"
    DEAD_LETTERS = "dead_letters"


DELIVERIES = (Kind.RECEIVE, Kind.PUSHED)
READS = (Kind.READ, Kind.FOLLOWED)


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message or record in a response; for a commit, only shard and offset.

    `group` of an appended record is its key. `receive_count` counts the deliveries of a message;
    `number` is a record's sequence number in the Kinesis protocol, and `at_ms` its event time.
    """

    value: str = ""
    id: str = ""
    shard: int = 0
    offset: int = -1
    group: str = ""
    receive_count: int = 0
    number: str = ""
    parents: tuple[int, ...] = ()
    routes: tuple[int, ...] = ()
    at_ms: int = 0


class Gap(msgspec.Struct, frozen=True):
    """Offsets [first, next) that were reported as unreadable."""

    shard: int
    first: int
    next: int
    reason: str


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of a client; times are seconds since the start of the history."""

    client: str
    kind: Kind
    log: str
    invoked: float
    ended: float
    outcome: Outcome
    status: int = 0
    code: str = ""
    lacks_retry_after: bool = False
    """A 503 without `Retry-After`."""
    values: tuple[str, ...] = ()
    """Values to be sent or settled."""
    group: str = ""
    """Message group or consumer group; for an append, the record key."""
    seen: tuple[Seen, ...] = ()
    counts: dict[str, int] = {}
    promised_s: float = 0.0
    """Minimum delay of a sent message, or visibility timeout of a received one."""
    delivery: int = 0
    """The delivery, by its receive count, of a verdict that counts for one delivery only."""
    first: int = -1
    """The requested start of a read."""
    gaps: tuple[Gap, ...] = ()
    tier: str = ""
    generation: int = -1
    owns: tuple[int, ...] = ()
    """The shards that this member owns in that generation."""
    target: str = ""
    """The dead-letter queue of a queue's counts; the target stream of a replay."""


def name_of(log: str) -> str:
    """Return the name in the service of a log of the history: `name#2` is the third of that name."""
    return log.partition("#")[0]


class History:
    """Every operation of a run, by time of completion."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._began = time.monotonic()

    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def add(self, operation: Operation) -> None:
        self.operations.append(operation)

    def write(self, path: Path) -> None:
        """Write NDJSON, one operation per line."""
        path.write_bytes(
            b"".join(msgspec.json.encode(operation) + b"\n" for operation in self.operations)
        )

    def counts(self) -> dict[str, dict[str, int]]:
        """Number of operations by kind and outcome."""
        found: dict[str, dict[str, int]] = {}
        for operation in self.operations:
            ways = found.setdefault(operation.kind.value, {way.value: 0 for way in Outcome})
            ways[operation.outcome.value] += 1
        return found


def read_history(path: Path) -> Iterator[Operation]:
    """Read operations from a file that `History.write` wrote."""
    with path.open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=Operation)
