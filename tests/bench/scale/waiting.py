"""Idle long polls and sockets: memory of each, and wake-up latency."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from time import perf_counter, sleep

from tests.bench import payloads
from tests.bench.ratios import Unmeasurable
from tests.bench.rows_idle import allow_files, percentile_99, settled_bytes
from tests.bench.rows_push import _waiting
from tests.bench.scale.caller import RAW, Caller, post, put
from tests.bench.scale.curves import Curve, Expected, Growing
from tests.bench.scale.meters import Meter
from tests.bench.scale.sizes import Sizes
from tests.bench.servers import House, Served
from tests.bench.wire import HttpConnection, call, good

QUEUES = 1_000  # over which the polls are distributed
WAIT_S = 20
PAUSE_S = 0.005
IDLE_S, WAKING_S_MAX = 2.0, 6.0
REST_S, REST_ROUNDS_MAX, AT_REST = 0.4, 12, 0.05
FILES_BESIDE = 300
AWAKE = "/v1/queues/scale-awake"


def measure_polls(house: House, sizes: Sizes) -> Iterator[Curve]:
    """Curves over the number of long polls; each size has its own API process."""
    allow_files(sizes.polls[-1] + FILES_BESIDE)
    paths = [f"/v1/queues/scale-poll-{number}" for number in range(QUEUES)]
    with Caller(house.api.port) as caller:
        caller.request(put(path, {}) for path in (*paths, AWAKE))
        caller.request(post(f"{path}/receive", {}) for path in paths)  # first use creates the log
    yield from _curves(
        "polls",
        "long polls",
        house,
        sizes.polls,
        sizes.samples,
        lambda *found: _polls(paths, *found),
    )


def measure_sockets(house: House, sizes: Sizes) -> Iterator[Curve]:
    """Curves over the number of WebSockets, each subscribed to one queue."""
    allow_files(sizes.sockets[-1] + FILES_BESIDE)
    with Caller(house.api.port) as caller:
        caller.request([put("/v1/queues/scale-sockets", {}), put(AWAKE, {})])
    yield from _curves("sockets", "sockets", house, sizes.sockets, sizes.samples, _sockets)


Open = Callable[[ExitStack, Served, int], Callable[[], None]]
"""Start this many waiting clients; the result checks that they still wait."""


def _curves(
    name: str, noun: str, house: House, sizes: Sequence[int], samples: int, open_: Open
) -> Iterator[Curve]:
    memory, wakes, idle = Growing(), Growing(), Growing()
    for size in sizes:
        with house.fresh_api() as served, ExitStack() as stack:
            call(served.port, "POST", f"{AWAKE}/receive", {})
            before, meter = settled_bytes(served), Meter(house, served)
            check = open_(stack, served, size)
            memory.add(size, each=(settled_bytes(served) - before) / size)
            _come_to_rest(meter)
            spent = meter.spent(lambda: sleep(IDLE_S))
            idle.add(size, all_of_them=spent.api_s / IDLE_S * 1e3)
            check()
            ordered = sorted(_wake_ups(served, samples))
            wakes.add(
                size, median=ordered[len(ordered) // 2] * 1e3, p99=percentile_99(ordered) * 1e3
            )
    yield Curve(
        name=f"{name}-memory",
        title=f"Memory of idle {noun}",
        size=noun,
        unit=f"bytes of the API process for each of the {noun}",
        made="A fresh API process before and after; the server's own part of a connection is in it (see `idle-polls` and "
        "`idle-sockets` in benchmarks.md for how much that is).",
        series=memory.series(),
    )
    yield Curve(
        name=f"{name}-wake-up",
        title=f"Waking up among idle {noun}",
        size=noun,
        unit="ms from a send to the answer",
        made=f"A send to a queue of its own on which one receive waits, up to {samples} times, while all the {noun} wait for others.",
        series=wakes.series(),
    )
    yield Curve(
        name=f"{name}-idle",
        title=f"Processor of idle {noun}",
        size=noun,
        unit="ms of processor a second",
        made=f"The API process over {IDLE_S:.0f} s in which nothing happens.",
        expected=Expected.PROPORTIONAL,
        series=idle.series(),
    )


def _come_to_rest(meter: Meter) -> None:
    """Wait until the API process has handled all requests."""
    for _ in range(REST_ROUNDS_MAX):
        if meter.spent(lambda: sleep(REST_S)).api_s < REST_S * AT_REST:
            return


def _polls(
    paths: Sequence[str], stack: ExitStack, served: Served, count: int
) -> Callable[[], None]:
    connections = [stack.enter_context(HttpConnection(served.port)) for _ in range(count)]
    asked = b'{"wait_seconds":%d}' % WAIT_S
    for nth, connection in enumerate(connections):
        connection.send("POST", f"{paths[nth % len(paths)]}/receive", asked)

    def check() -> None:
        answered = sum(connection.has_news() for connection in connections)
        if answered > count // 2:  # on a busy machine some were sent long before the last
            raise Unmeasurable(f"{answered} of {count} polls did not wait to the end")

    return check


def _sockets(stack: ExitStack, served: Served, count: int) -> Callable[[], None]:
    for _ in range(count):
        stack.enter_context(_waiting(served, "queue:scale-sockets"))
    return lambda: None


def _wake_ups(served: Served, samples: int) -> Iterator[float]:
    with HttpConnection(served.port) as sender, HttpConnection(served.port) as receiver:
        give_up_at = perf_counter() + WAKING_S_MAX
        for _ in range(samples):
            if perf_counter() > give_up_at:  # the others must still wait
                return
            receiver.send("POST", f"{AWAKE}/receive", b'{"wait_seconds":%d}' % WAIT_S)
            sleep(PAUSE_S)
            began = perf_counter()
            sender.send("POST", f"{AWAKE}/messages", payloads.BODY, RAW)
            received = receiver.read()
            yield perf_counter() - began
            good(sender.read(), "a send")
            [message] = json.loads(good(received, "a receive"))["messages"]
            verdict = {"receipt_handle": message["receipt_handle"], "action": "ack"}
            sender.call("POST", f"{AWAKE}/settle", json.dumps({"settlements": [verdict]}).encode())
