"""Rows of replicated stores against one store: three stores on the same machine and disk, two in sync."""

from collections.abc import Callable, Collection
from functools import partial

from tests.bench import payloads
from tests.bench.load import CONNECTIONS, Load, wrk
from tests.bench.plan import REPLICATED_LATENCY, REPLICATED_READ, REPLICATED_SEND, Plan
from tests.bench.ratios import Measured, Row
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_deployment import deployment
from tests.bench.servers import House
from tests.bench.wire import JSON, MSGPACK, call, post_all

REPLICAS = ("--replicas", "2")
RECORDS = 5  # of a read, so few that the barrier shows
QUEUE, STREAM = "/v1/queues/bench-replicated", "/v1/streams/bench-replicated"


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Send and read, on one store and on three."""
    measured: list[Measured] = []
    with (
        deployment(house.data / "one-store") as (_, one),
        deployment(house.data / "replicated", *REPLICAS) as (_, three),
    ):
        for port in (one, three):
            call(port, "PUT", QUEUE, {})
            call(port, "PUT", STREAM, {})
            post_all(port, [(f"{STREAM}/records", payloads.records(), MSGPACK)])
        message = house.file("replicated-message", payloads.BODY)

        def send(port: int, connections: int) -> Load:
            words = ("POST", "application/octet-stream", JSON, message, f"{QUEUE}/messages")
            load = wrk(
                port, "fixed.lua", *words, "1", "0", seconds=plan.seconds, connections=connections
            )
            call(port, "POST", f"{QUEUE}/purges")
            return load

        def read(port: int) -> float:
            path = f"{STREAM}/shards/0/records?offset=0&limit={RECORDS}"
            words = ("GET", JSON, MSGPACK, "-", path, "1", "0")
            return wrk(port, "fixed.lua", *words, seconds=plan.seconds, connections=1).rate

        measures: dict[Row, Callable[[int], float]] = {
            REPLICATED_SEND: lambda port: send(port, CONNECTIONS).rate,
            REPLICATED_LATENCY: lambda port: send(port, 1).p50_ms,
            REPLICATED_READ: read,
        }
        for row, measured_at in measures.items():
            if row in wanted:
                contestant = Contestant(row, partial(measured_at, three))
                measured += interleave(plan.rounds, partial(measured_at, one), [contestant])
    return measured
