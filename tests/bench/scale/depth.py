"""Calls on a queue with up to ten million ready or a hundred thousand in flight."""

from collections.abc import Iterator

from tests.bench import payloads
from tests.bench.rows_state import BATCH, LEASE_S, TEN
from tests.bench.scale.caller import (
    Caller,
    CallRequest,
    get,
    handles_in,
    post,
    put,
    receive,
    send_batch,
    settle,
)
from tests.bench.scale.curves import Curve, Growing
from tests.bench.scale.meters import MICRO, Meter
from tests.bench.scale.sizes import Sizes
from tests.bench.servers import House

DEEP, BUSY = "/v1/queues/scale-deep", "/v1/queues/scale-busy"
ROUNDS = 3


def measure_waiting(house: House, sizes: Sizes) -> Iterator[Curve]:
    """Curves over the number of ready messages; a round acknowledges and resends."""
    meter, calls = Meter(house), sizes.calls // 8
    api, store, memory = Growing(), Growing(), Growing()
    with Caller(house.api.port) as caller:
        caller.request([put(DEEP, {})])
        before, held = house.used_memory(), 0
        for size in sizes.waiting:
            _send(caller, DEEP, size - held)
            held = size
            house.settle_store()
            memory.add(size, store=(house.used_memory() - before) / size)
            of_api, of_store = _at_depth(meter, caller, calls)
            api.add(size, **of_api)
            store.add(size, **of_store)
    yield Curve(
        name="waiting-calls",
        title="A deep queue, in the store",
        size="waiting messages",
        unit="µs of the store's processor a call",
        made=f"{calls} calls of each kind over 8 connections, the median of {ROUNDS} rounds.",
        series=store.series(),
    )
    yield Curve(
        name="waiting-all",
        title="A deep queue, in all",
        size="waiting messages",
        unit="µs of processor a call",
        made="The same calls; API, store and Postgres together.",
        series=api.series(),
    )
    yield Curve(
        name="waiting-memory",
        title="Memory of a deep queue",
        size="waiting messages",
        unit="bytes a message",
        made="What the store has allocated for each message of 256 B.",
        series=memory.series(),
    )


def _at_depth(
    meter: Meter, caller: Caller, calls: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Processor time per kind of call, in µs: total, and of the store."""
    handles: list[str] = []

    def receive_some() -> int:
        answers = caller.request([receive(DEEP, TEN, LEASE_S)] * calls)
        handles.extend(handle for answer in answers for handle in handles_in(answer))
        return calls

    def acknowledge_some() -> int:
        chosen_handles, handles[:] = handles[: calls * TEN], handles[calls * TEN :]
        tens = [chosen_handles[at : at + TEN] for at in range(0, len(chosen_handles), TEN)]
        return caller.done([settle(DEEP, ten, action="ack") for ten in tens])

    batch = send_batch(DEEP, payloads.messages(TEN))
    works = {
        "receive 10": receive_some,
        "acknowledge 10": acknowledge_some,
        "send 10": lambda: caller.done([batch] * calls),
        "stats": lambda: caller.done([get(f"{DEEP}/stats")] * calls),
        "browse 100": lambda: caller.done([get(f"{DEEP}/messages?limit=100")] * (calls // 4)),
    }
    found = meter.in_turn(works, ROUNDS)
    return (
        {label: spent.all_s * MICRO for label, spent in found.items()},
        {label: spent.store_s * MICRO for label, spent in found.items()},
    )


def measure_in_flight(house: House, sizes: Sizes) -> Iterator[Curve]:
    """Curves over the number in flight, with enough ready messages."""
    meter, calls = Meter(house), sizes.calls // 8
    lines, memory = Growing(), Growing()
    with Caller(house.api.port) as caller:
        caller.request([put(BUSY, {})])
        _send(
            caller, BUSY, sizes.in_flight[-1] + ROUNDS * len(sizes.in_flight) * calls * TEN + BATCH
        )
        before, held = house.used_memory(), 0
        for size in sizes.in_flight:
            held += _take(caller, size - held)
            memory.add(size, store=(house.used_memory() - before) / size)
            lines.add(size, **_in_flight(meter, caller, calls))
    yield Curve(
        name="in-flight-calls",
        title="Many in flight",
        size="messages in flight",
        unit="µs of the store's processor a call",
        made=f"{calls} calls of each kind over 8 connections, each of ten messages, the median of {ROUNDS} rounds.",
        series=lines.series(),
    )
    yield Curve(
        name="in-flight-memory",
        title="Memory in flight",
        size="messages in flight",
        unit="bytes a message",
        made="What the store has allocated for each message in flight beyond what it had allocated for it waiting.",
        series=memory.series(),
    )


def _in_flight(meter: Meter, caller: Caller, calls: int) -> dict[str, float]:
    handles: list[list[str]] = []

    def receive_some() -> int:
        answers = caller.request([receive(BUSY, TEN, LEASE_S)] * calls)
        handles.extend(handles_in(answer) for answer in answers)
        return calls

    def settle_some(**how: object) -> int:
        return caller.done([settle(BUSY, ten, **how) for ten in handles[:calls]])

    def acknowledge_some() -> int:
        done = settle_some(action="ack")
        del handles[:calls]
        return done

    works = {
        "receive 10": receive_some,
        "extend 10": lambda: settle_some(action="extend", visibility_timeout_seconds=LEASE_S),
        "acknowledge 10": acknowledge_some,
        "stats": lambda: caller.done([get(f"{BUSY}/stats")] * calls),
    }
    found = meter.in_turn(works, ROUNDS)
    return {label: spent.store_s * MICRO for label, spent in found.items()}


def _send(caller: Caller, path: str, messages: int) -> None:
    batch = send_batch(path, payloads.messages(BATCH))
    caller.request(batch for _ in range(messages // BATCH))


def _take(caller: Caller, messages: int) -> int:
    """Receive this many with a long visibility timeout."""
    most = min(messages, BATCH)
    call_request: CallRequest = post(
        f"{BUSY}/receive", {"messages_max": most, "visibility_timeout_seconds": LEASE_S}
    )
    return sum(
        len(handles_in(answer)) for answer in caller.request([call_request] * (messages // most))
    )
