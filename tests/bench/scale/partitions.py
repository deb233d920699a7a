"""One queue with one, two and three partitions on three primaries: what its busiest primary pays.

A queue is full when one primary is: the processor time of the busiest one per call bounds the calls per second of the
queue, whatever the machine has cores for.
"""

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from tests.bench import payloads
from tests.bench.load import Load, wrk
from tests.bench.scale.caller import RAW, Caller, put
from tests.bench.scale.curves import Curve, Expected, Growing
from tests.bench.scale.meters import MICRO, seconds_of
from tests.bench.scale.primaries import on_cluster
from tests.bench.scale.processes import CONNECTIONS, FILL, SECONDS, Work
from tests.bench.scale.sizes import Sizes
from tests.bench.servers import House
from tests.bench.wire import JSON, MSGPACK, post_all
from tests.clusters import Masters

PRIMARIES = 3
ROUNDS = 5


def measure(house: House, sizes: Sizes) -> Iterator[Curve]:
    """Curves over the number of partitions."""
    busiest, full, api = Growing(), Growing(), Growing()
    rounds: defaultdict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    with on_cluster(house, PRIMARIES) as (served, cluster):
        queues = {size: QueueLoads(served, size) for size in sizes.partitions}
        for _ in range(ROUNDS):
            for size, loads in queues.items():
                loads.fill()
                for label, work in loads.kinds.items():
                    costs = _round(served, cluster, work, CONNECTIONS * size)
                    rounds[size, label].append(costs)
    for (size, label), costs_of_all in rounds.items():
        store_us, api_us = map(median, zip(*costs_of_all, strict=True))
        busiest.add(size, **{label: store_us})
        full.add(size, **{label: MICRO / store_us})
        api.add(size, **{label: api_us})
    made = (
        f"wrk for {SECONDS} s with {CONNECTIONS} connections for each partition to one API process, so that as many calls share a "
        f"flush; one kind of call at a time, to one queue on a cluster of {PRIMARIES} primaries without replicas; the median of "
        f"{ROUNDS} rounds, in each of which every number of partitions has its turn."
    )
    full_made = f"{made} One second divided by the processor time of the busiest primary: at this many calls per second it is busy."
    yield busiest.costs(
        "partitions-busiest",
        "Partitions: the busiest primary",
        "µs of its processor a call",
        made,
        size="partitions",
        expected=Expected.INVERSE,
    )
    yield full.costs(
        "partitions-full",
        "Partitions: when one queue is full",
        "calls a second",
        full_made,
        size="partitions",
        expected=Expected.PROPORTIONAL,
    )
    yield api.costs(
        "partitions-api",
        "Partitions: the API",
        "µs of the API's processor a call",
        made,
        size="partitions",
    )


class QueueLoads:
    """Calls to one queue with partitions."""

    def __init__(self, house: House, partitions: int) -> None:
        self._house = house
        self._queue = f"/v1/queues/scale-partitions-{partitions}"
        self._body = house.file("raw", payloads.BODY)
        with Caller(house.api.port) as caller:
            caller.request([put(self._queue, {"partitions": partitions})])
        self.kinds: dict[str, Work] = {
            "send one message": self._send,
            "receive 10 or acknowledge 10": self._work,
        }

    def fill(self) -> None:
        """Add messages to receive."""
        batch = (f"{self._queue}/messages", payloads.messages(1_000), MSGPACK)
        post_all(self._house.api.port, [batch] * (FILL // 1_000))

    def _send(self, port: int, connections: int) -> Load:
        words = ("POST", RAW, JSON, self._body, f"{self._queue}/messages", "1", "1")
        return wrk(port, "fixed.lua", *words, seconds=SECONDS, connections=connections)

    def _work(self, port: int, connections: int) -> Load:
        return wrk(
            port, "receive_settle.lua", self._queue, seconds=SECONDS, connections=connections
        )


def _round(served: House, cluster: Masters, work: Work, connections: int) -> tuple[float, float]:
    """Return the cost of a call for the busiest primary, and for the API, in µs."""
    pids = (*cluster.pids(), served.api.pid)
    before = [seconds_of(pid) for pid in pids]
    load = work(served.api.port, connections)
    *stores, api = (seconds_of(pid) - then for pid, then in zip(pids, before, strict=True))
    return max(stores) * MICRO / load.calls, api * MICRO / load.calls
