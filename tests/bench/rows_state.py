"""Rows against Millstream itself: deep backlogs and message groups must stay as fast."""

import json
from collections.abc import Collection, Iterator

from tests.bench import payloads
from tests.bench.load import Load, wrk
from tests.bench.plan import DEEP_BACKLOG_ROW, FAIR, FIFO, Plan
from tests.bench.ratios import Measured, Row, Unmeasurable
from tests.bench.rounds import Contestant, interleave
from tests.bench.servers import House
from tests.bench.wire import JSON, MSGPACK, HttpConnection, call, post_all

BATCH = 1_000
TEN = 10
LEASE_S = 43_200  # nothing is redelivered during the measurement
SHALLOW_QUEUES_A_SECOND = 120  # each is received from, and has 1000 messages at the start
WAITING_A_GROUP = 5


def measure_depth(house: House, plan: Plan) -> list[Measured]:
    """Receive with `plan.backlog` ready and `plan.in_flight` in flight, against a short queue."""
    depth = Depth(house, plan)
    contestant = Contestant(DEEP_BACKLOG_ROW, depth.deep)
    depth.fill()
    [measured] = interleave(plan.rounds, depth.shallow, [contestant])
    contestant.notes.append(depth.described())
    return [measured]


class Depth:
    """Nothing is acknowledged: a call is one receive of ten.

    A queue of 1000 would soon be empty, so the shallow side has many, used in turn; each starts a
    round with 1000 ready and none in flight, and is left before it is empty.
    """

    DEEP = "/v1/queues/bench-deep"
    SHALLOW = "/v1/queues/bench-shallow-%d"

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._plan = plan
        self._queues = SHALLOW_QUEUES_A_SECOND * plan.seconds
        self._port = house.api.port
        body = json.dumps({"messages_max": TEN, "visibility_timeout_seconds": LEASE_S})
        self._asked = house.file("receive.json", body.encode())

    def fill(self) -> None:
        """Create the queues, and fill the deep one."""
        for number in range(self._queues):
            call(self._port, "PUT", self.SHALLOW % number, {})
        call(self._port, "PUT", self.DEEP, {})
        self._send(self.DEEP, self._plan.backlog + self._plan.in_flight)
        body = json.dumps({"messages_max": BATCH, "visibility_timeout_seconds": LEASE_S}).encode()
        calls = self._plan.in_flight // BATCH
        post_all(self._port, [(f"{self.DEEP}/receive", body, JSON)] * calls)
        self._house.settle_store()

    def _send(self, path: str, messages: int) -> None:
        batch = (f"{path}/messages", payloads.messages(BATCH), MSGPACK)
        post_all(self._port, [batch] * (messages // BATCH))

    def deep(self) -> float:
        """Receives per second; received messages are replaced afterwards."""
        load = self._receive(self.DEEP, 1)
        self._send(self.DEEP, TEN * load.calls)
        return load.rate

    def shallow(self) -> float:
        """Receives per second."""
        paths = [self.SHALLOW % number for number in range(self._queues)]
        post_all(self._port, [(f"{path}/purges", b"", JSON) for path in paths])
        batch = payloads.messages(BATCH)
        post_all(self._port, [(f"{path}/messages", batch, MSGPACK) for path in paths])
        return self._receive(self.SHALLOW, self._queues).rate

    def _receive(self, path: str, queues: int) -> Load:
        words = ("POST", JSON, JSON, self._asked, f"{path}/receive", str(queues), "1")
        load = wrk(self._port, "fixed.lua", *words, seconds=self._plan.seconds)
        if load.bytes / load.calls < TEN * payloads.BODY_BYTES:
            raise Unmeasurable("a queue ran dry")
        return load

    def described(self) -> str:
        """The final depth."""
        stats = call(self._port, "GET", f"{self.DEEP}/stats")
        return f"{stats['ready']:,} waiting and {stats['in_flight']:,} in flight at the end"


def measure_groups(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Queues with 1000 message groups, against one without any."""
    three = Three(house, plan)
    contestants = [Contestant(FIFO, three.fifo), Contestant(FAIR, three.fair)]
    chosen = [one for one in contestants if one.row in wanted]
    return interleave(plan.rounds, three.standard, chosen)


class Three:
    """Queues with the same work: send 10, receive 10, acknowledge 10."""

    STANDARD = "/v1/queues/bench-standard"
    GROUPED, FAIR = "/v1/queues/bench-fifo", "/v1/queues/bench-fair"
    BODIES = payloads.GROUPS // TEN

    def __init__(self, house: House, plan: Plan) -> None:
        self._port = house.api.port
        self._seconds = plan.seconds
        call(self._port, "PUT", self.STANDARD, {})
        call(self._port, "PUT", self.GROUPED, {"type": "fifo"})
        call(self._port, "PUT", self.FAIR, {})
        house.file("send-0", payloads.messages(TEN))
        for number, groups in enumerate(_tens()):
            house.file(f"send-fifo-{number}", payloads.fifo_messages(groups))
        self._folder = house.data
        self._batches = {
            self.STANDARD: payloads.messages(payloads.GROUPS),
            self.GROUPED: payloads.fifo_messages(range(payloads.GROUPS)),
            self.FAIR: payloads.fifo_messages(range(payloads.GROUPS)),
        }

    def standard(self) -> float:
        """Messages per second."""
        return self._work(self.STANDARD, "send-%d", 1)

    def fifo(self) -> float:
        """Messages per second."""
        return self._work(self.GROUPED, "send-fifo-%d", self.BODIES)

    def fair(self) -> float:
        """Messages per second."""
        return self._work(self.FAIR, "send-fifo-%d", self.BODIES)

    def _work(self, path: str, file: str, files: int) -> float:
        self._start_anew(path)
        words = (path, str(self._folder / file), str(files))
        load = wrk(self._port, "receive_settle.lua", *words, seconds=self._seconds)
        return load.delivery_rate

    def _start_anew(self, path: str) -> None:
        """Drop messages in flight, which lock their groups, and fill the queue."""
        with HttpConnection(self._port) as connection:
            connection.call("POST", f"{path}/purges")
            for _ in range(WAITING_A_GROUP):
                connection.call("POST", f"{path}/messages", self._batches[path], MSGPACK)


def _tens() -> Iterator[range]:
    """The groups, ten at a time."""
    return (range(first, first + TEN) for first in range(0, payloads.GROUPS, TEN))
