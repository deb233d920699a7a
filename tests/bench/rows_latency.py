"""Rows of a server under a constant load: latency from publish to receive, and stalls."""

import threading
from collections.abc import Collection, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.bench import payloads
from tests.bench.open_loop import OpenLoop, OpenLoopResult
from tests.bench.plan import LATENCIES, STALL, Plan
from tests.bench.ratios import Measured, Round, Row
from tests.bench.rows_idle import FILES_BESIDE, allow_files
from tests.bench.servers import House
from tests.bench.wire import MSGPACK, HttpConnection, call, post_all

PATH = "/v1/queues/bench-latency"
BACKLOG_PATH = "/v1/queues/bench-latency-backlog"
WARM_UP_S = 1.0
STALL_LOAD = 0.5
STALL_MS_MAX = 20.0  # beyond the reference
REWRITE_AFTER_S = 1.0
BATCH = 1_000
POLL_S = 20
PERCENTILES = (50, 99, 99.9)


def measure_latency(house: House, plan: Plan, wanted: Collection[Row]) -> Generator[Measured]:
    """From the time that a send is due to its receipt, against calls of the echo server."""
    call(house.api.port, "PUT", PATH, {})
    with (
        OpenLoop(house.api.port, PATH) as service,
        OpenLoop(house.echo.port, PATH, echo=True) as echo,
    ):
        highest = _highest(service, plan)
        for load, row in LATENCIES.items():
            if row not in wanted:
                continue
            rate = load * highest
            own, reference = (each.paced(rate, plan.latency_seconds) for each in (service, echo))
            note = (
                f"{rate:,.0f} messages/s; {_figures(own)}; a call of the echo {_figures(reference)}"
            )
            yield Measured(row=row, rounds=[_round(own, reference)], notes=[note])


def _highest(service: OpenLoop, plan: Plan) -> float:
    service.highest(WARM_UP_S)
    return service.highest(plan.seconds).rate


def _round(own: OpenLoopResult, reference: OpenLoopResult) -> Round:
    return Round(own.percentile_ms(99), reference.percentile_ms(99))


def _figures(result: OpenLoopResult) -> str:
    """The three percentiles in words."""
    figures = (f"p{percent:g} {result.percentile_ms(percent):.2f}" for percent in PERCENTILES)
    return f"{', '.join(figures)} ms"


# ── Stalls ──


class Periodic(StrEnum):
    """Work that happens beside the calls."""

    REWRITE = "rewriting the append-only file"
    CONNECTIONS = "new long polls"
    MAINTENANCE = "maintenance"


def measure_stall(house: House, plan: Plan) -> list[Measured]:
    """The longest time without any answer beside everything periodic, and beside each of it."""
    allow_files(plan.long_polls + FILES_BESIDE)
    call(house.api.port, "PUT", PATH, {})
    call(house.api.port, "PUT", BACKLOG_PATH, {})
    batch = (f"{BACKLOG_PATH}/messages", payloads.messages(BATCH), MSGPACK)
    post_all(house.api.port, [batch] * (plan.rewritten // BATCH))
    with OpenLoop(house.api.port, PATH) as service:
        rate = STALL_LOAD * _highest(service, plan)
    with OpenLoop(house.echo.port, PATH, echo=True) as echo:
        reference = echo.paced(rate, plan.stall_seconds).longest_stall_ms
    stalls = Stalls(house, plan, rate)
    alone = [f"{work.value} alone {stalls.beside(work).ms:.1f}" for work in Periodic]
    every, undisturbed = stalls.beside(*Periodic), stalls.beside()
    call(house.api.port, "DELETE", BACKLOG_PATH)
    notes = [
        f"at {rate:,.0f} messages/s, with {plan.rewritten:,} messages in the file, and {plan.long_polls:,} long polls that connect; "
        f"without any of it {undisturbed.ms:.1f}, {', '.join(alone)}, the echo {reference:.1f} ms",
        f"what blocked the store beside all of it: {every.store_events}",
    ]
    bound = reference + STALL_MS_MAX
    return [Measured(row=STALL, rounds=[Round(every.ms, bound)], notes=notes)]


class Stall(NamedTuple):
    """The longest time without an answer, and what blocked the store's thread meanwhile."""

    ms: float
    store_events: str


@dataclass(frozen=True, slots=True)
class Stalls:
    """Longest stalls at a constant rate, in milliseconds."""

    house: House
    plan: Plan
    rate: float

    def beside(self, *works: Periodic) -> Stall:
        """The longest time without an answer while these happen, in a fresh process."""
        with ExitStack() as stack:
            enter = stack.enter_context
            served = enter(self.house.fresh_api())
            if Periodic.MAINTENANCE in works:
                enter(self.house.background())
            service = enter(OpenLoop(served.port, PATH))
            service.paced(self.rate, WARM_UP_S)
            if Periodic.REWRITE in works:
                enter(_rewriting(self.house))
            if Periodic.CONNECTIONS in works:
                enter(_connecting(served.port, self.plan))
            self.house.store.execute_command("LATENCY", "RESET")
            result = service.paced(self.rate, self.plan.stall_seconds)
            return Stall(result.longest_stall_ms, self._store_events())

    def _store_events(self) -> str:
        """The slowest of each kind."""
        events = self.house.store.execute_command("LATENCY", "LATEST")
        longest = {name.decode(): slowest for name, _, _, slowest, *_ in events}
        return ", ".join(f"{name} {ms} ms" for name, ms in longest.items()) or "nothing"


@contextmanager
def _connecting(port: int, plan: Plan) -> Generator[None]:
    """Open long polls at a constant rate: their objects are what makes garbage be collected."""
    path = "/v1/queues/bench-latency-idle"
    call(port, "PUT", path, {})
    is_over = threading.Event()
    opened = threading.Thread(target=_open_polls, args=(port, path, plan, is_over))
    opened.start()
    try:
        yield
    finally:
        is_over.set()
        opened.join()


def _open_polls(port: int, path: str, plan: Plan, is_over: threading.Event) -> None:
    with ExitStack() as stack:
        for _ in range(plan.long_polls):
            if is_over.wait(plan.stall_seconds / plan.long_polls):
                return
            connection = stack.enter_context(HttpConnection(port))
            connection.send("POST", f"{path}/receive", b'{"wait_seconds":%d}' % POLL_S)
        is_over.wait()


@contextmanager
def _rewriting(house: House) -> Generator[None]:
    """Rewrite the append-only file a moment later, and wait until that is done."""
    timer = threading.Timer(REWRITE_AFTER_S, house.store.bgrewriteaof)
    timer.start()
    try:
        yield
    finally:
        timer.join()
        house.wait_for_rewrite()
