"""Several API processes on one store: cost per call, and the capacity of the store.

The store runs scripts on one thread, so its time per call bounds the calls per second of one store,
however many API processes there are.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from tests.bench import payloads
from tests.bench.load import Load, wrk
from tests.bench.scale.caller import RAW, Caller, CallRequest, put
from tests.bench.scale.curves import Curve, Growing
from tests.bench.scale.meters import MICRO, Meter
from tests.bench.scale.sizes import Sizes
from tests.bench.servers import House, Served
from tests.bench.wire import JSON, MSGPACK, post_all

SECONDS = 2
CONNECTIONS = 64  # of all processes together
QUEUES = 8
STREAM = "/v1/streams/scale-load"
FILL = 200_000
Work = Callable[[int, int], Load]
"""Load a process at a port over this many connections."""


def measure(house: House, sizes: Sizes) -> Iterator[Curve]:
    """Curves over the number of API processes."""
    work = Loads(house)
    api, store, full, rates = Growing(), Growing(), Growing(), Growing()
    with ExitStack() as stack:
        served = [stack.enter_context(house.fresh_api()) for _ in range(sizes.processes[-1])]
        for size in sizes.processes:
            for label, (load, filling) in work.kinds.items():
                filling()
                found = _loaded(house, served[:size], load)
                api.add(size, **{label: found.api})
                store.add(size, **{label: found.store})
                full.add(size, **{label: MICRO / found.store})
                rates.add(size, **{label: found.rate})
    made = (
        f"wrk for {SECONDS} s with {CONNECTIONS} connections over all processes; one kind of call at a time, to "
        f"{QUEUES} queues or one stream of 4 shards."
    )
    full_made = (
        f"{made} One second divided by the store's processor time per call: at this many calls per second its processor "
        "is busy, whatever the number of API processes."
    )
    shared = f"{made} Client, API processes, store and Postgres share the cores of this machine."
    yield api.costs(
        "processes-api",
        "Many API processes: the API",
        "µs of the API's processor a call",
        made,
        size="API processes",
    )
    yield store.costs(
        "processes-store",
        "Many API processes: the store",
        "µs of the store's processor a call",
        made,
        size="API processes",
    )
    yield full.costs(
        "processes-full",
        "When one store is full",
        "calls a second",
        full_made,
        size="API processes",
    )
    yield rates.costs(
        "processes-rates", "What this machine did", "calls a second", shared, size="API processes"
    )


class Found:
    """The cost per call in µs, and the calls per second."""

    def __init__(self, api: float, store: float, rate: float) -> None:
        self.api = api
        self.store = store
        self.rate = rate


def _loaded(house: House, served: Sequence[Served], load: Work) -> Found:
    meter = Meter(house, *served)
    connections = CONNECTIONS // len(served)
    before = meter.read()
    with ThreadPoolExecutor(len(served)) as pool:
        loads = list(pool.map(lambda each_load: load(each_load.port, connections), served))
    spent = meter.since(before)
    calls = sum(each_load.calls for each_load in loads)
    return Found(
        spent.api_s * MICRO / calls,
        spent.store_s * MICRO / calls,
        sum(each_load.rate for each_load in loads),
    )


class Loads:
    """The kinds of calls."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._body = house.file("raw", payloads.BODY)
        self._columns = house.file("columns", payloads.columns())
        with Caller(house.api.port) as caller:
            caller.request(put(f"/v1/queues/scale-load-{nth}", {}) for nth in range(QUEUES))
            caller.request([put("/v1/queues/scale-work", {})])
        nothing = lambda: None  # noqa: E731
        self.kinds: dict[str, tuple[Work, Callable[[], None]]] = {
            "send one message": (self._send, nothing),
            "receive 10 or acknowledge 10": (self._work, self._fill),
            "append 500 records": (self._append, self._begin_anew),
            "read 500 records": (self._read, nothing),
        }

    def _send(self, port: int, connections: int) -> Load:
        words = (
            "POST",
            RAW,
            JSON,
            self._body,
            "/v1/queues/scale-load-%d/messages",
            str(QUEUES),
            "1",
        )
        return wrk(port, "fixed.lua", *words, seconds=SECONDS, connections=connections)

    def _begin_anew(self) -> None:
        """Create a stream that contains only what is read afterwards."""
        with Caller(self._house.api.port) as caller:
            caller.request([put(STREAM, {"shards": 4})])
            caller.request([CallRequest("DELETE", STREAM)])
            caller.request([put(STREAM, {"shards": 4, "archive": False})])
        self._house.wait_for_freeing()

    def _fill(self) -> None:
        batch = ("/v1/queues/scale-work/messages", payloads.messages(1_000), MSGPACK)
        post_all(self._house.api.port, [batch] * (FILL // 1_000))

    def _work(self, port: int, connections: int) -> Load:
        return wrk(
            port,
            "receive_settle.lua",
            "/v1/queues/scale-work",
            seconds=SECONDS,
            connections=connections,
        )

    def _append(self, port: int, connections: int) -> Load:
        words = (
            "POST",
            MSGPACK,
            MSGPACK,
            self._columns,
            f"{STREAM}/columns",
            "1",
            "0",
        )
        return wrk(port, "fixed.lua", *words, seconds=SECONDS, connections=connections)

    def _read(self, port: int, connections: int) -> Load:
        path = f"{STREAM}/shards/0/records?limit=500&offset=%d"
        words = ("GET", JSON, MSGPACK, "-", path, "100", "500")
        return wrk(port, "fixed.lua", *words, seconds=SECONDS, connections=connections)
