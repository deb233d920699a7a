"""Open-loop load: messages at a constant rate, whose latency counts from the time they are due.

A stall delays every message that was due meanwhile, and none of them is left out (coordinated
omission). One thread, so that the client uses little of the cores that it shares with the server.
"""

import gc
import json
import re
import select
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter_ns

from tests.bench import payloads
from tests.bench.ratios import Unmeasurable
from tests.bench.wire import HttpConnection, good

SENDERS, RECEIVERS = 64, 16
DRAIN_S_MAX = 10.0
POLL_S = 2
_NS_PER_S = 1_000_000_000
_DUE = re.compile(rb"@(\d{19})@")
_HANDLE = re.compile(rb'"receipt_handle":"([^"]+)"')
_RECEIVE = json.dumps({"messages_max": 10, "wait_seconds": POLL_S}).encode()
_PADDING = "m" * (payloads.BODY_BYTES - 21)


@dataclass(slots=True)
class OpenLoopResult:
    """Latencies of all messages, and the moments of all answers, in seconds."""

    seconds: float
    latencies: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Messages per second."""
        return len(self.latencies) / self.seconds

    def percentile_ms(self, percent: float) -> float:
        """A percentile of the latencies."""
        ordered = sorted(self.latencies)
        return 1e3 * ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]

    @property
    def longest_stall_ms(self) -> float:
        """The longest time between two consecutive answers to any connection."""
        return 1e3 * max(later - earlier for earlier, later in pairwise(self.answers))


class OpenLoop:
    """Senders, and receivers with long polls if the server has a queue at `path`.

    A server without one returns what it is sent, and its latency is that of the call.
    """

    def __init__(self, port: int, path: str, *, echo: bool = False) -> None:
        self._path = path
        with ExitStack() as stack:
            receivers = 0 if echo else RECEIVERS
            self._senders, self._receivers = (
                [stack.enter_context(HttpConnection(port)) for _ in range(count)]
                for count in (SENDERS, receivers)
            )
            self._stack = stack.pop_all()

    def __enter__(self) -> "OpenLoop":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def highest(self, seconds: float) -> OpenLoopResult:
        """Send whenever a sender is free; at most `SENDERS` messages are not received yet."""
        return self._run(None, seconds)

    def paced(self, rate: float, seconds: float) -> OpenLoopResult:
        """Send `rate` messages per second, whatever the answers."""
        return self._run(rate, seconds)

    def _run(self, rate: float | None, seconds: float) -> OpenLoopResult:
        with _without_collections():
            run = _Run(self._path, self._senders, self._receivers, rate, seconds)
            return run.result()


@contextmanager
def _without_collections() -> Generator[None]:
    """Keep garbage collections of the client out of the measured times."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Run:
    """One run: the schedule, and what each connection waits for."""

    def __init__(
        self,
        path: str,
        senders: Sequence[HttpConnection],
        receivers: Sequence[HttpConnection],
        rate: float | None,
        seconds: float,
    ) -> None:
        self._path = path
        self._idle = deque(senders)
        self._receivers = receivers
        self._waiting = {connection.fileno(): connection for connection in (*senders, *receivers)}
        self._receiving = {connection.fileno() for connection in receivers}
        self._settling: set[int] = set()
        self._gap_ns = 0 if rate is None else round(_NS_PER_S / rate)
        self._sent = 0
        self._began_ns = self._due_ns = perf_counter_ns()
        self._until_ns = self._began_ns + round(seconds * _NS_PER_S)
        self._result = OpenLoopResult(seconds)

    def result(self) -> OpenLoopResult:
        """Send until the end of the schedule, and receive everything."""
        for receiver in self._receivers:
            self._receive(receiver)
        while not self._is_over():
            self._send_due()
            readable, _, _ = select.select(self._waiting, (), (), self._pause_s())
            for number in readable:
                self._answered(number)
        self._stop_receivers()
        if len(self._result.answers) <= 1:
            raise Unmeasurable("fewer than two calls were answered")
        return self._result

    def _is_over(self) -> bool:
        now_ns = perf_counter_ns()
        if now_ns < self._until_ns:
            return False
        if now_ns > self._until_ns + DRAIN_S_MAX * _NS_PER_S:
            left = self._sent - len(self._result.latencies)
            raise Unmeasurable(f"{left} of {self._sent} messages were not received")
        return len(self._result.latencies) == self._sent and self._due_ns >= self._until_ns

    def _send_due(self) -> None:
        while self._idle and self._due_ns < self._until_ns:
            now_ns = perf_counter_ns()
            if self._gap_ns == 0:
                if self._sent - len(self._result.latencies) >= SENDERS:
                    return
                self._due_ns = now_ns
            if self._due_ns > now_ns or self._due_ns >= self._until_ns:
                return
            self._send(self._idle.popleft())
            self._due_ns += self._gap_ns

    def _send(self, sender: HttpConnection) -> None:
        body = f'{{"body":"@{self._due_ns:019d}@{_PADDING}"}}'
        sender.send("POST", f"{self._path}/messages", body.encode())
        self._sent += 1

    def _pause_s(self) -> float:
        """Time until the next send is due; without a free sender, until an answer."""
        if not self._idle or self._due_ns >= self._until_ns:
            return 0.1
        return max(0, self._due_ns - perf_counter_ns()) / _NS_PER_S

    def _answered(self, number: int) -> None:
        connection = self._waiting[number]
        body = good(connection.read(), "a call")
        now_ns = perf_counter_ns()
        if now_ns < self._until_ns:
            self._result.answers.append((now_ns - self._began_ns) / _NS_PER_S)
        self._result.latencies += [(now_ns - int(due)) / _NS_PER_S for due in _DUE.findall(body)]
        if number not in self._receiving:
            self._idle.append(connection)
        elif number in self._settling:
            self._settling.discard(number)
            self._receive(connection)
        else:
            self._settle(connection, _HANDLE.findall(body))

    def _receive(self, receiver: HttpConnection) -> None:
        receiver.send("POST", f"{self._path}/receive", _RECEIVE)

    def _settle(self, receiver: HttpConnection, handles: Iterable[bytes]) -> None:
        verdicts = [{"receipt_handle": handle.decode(), "action": "ack"} for handle in handles]
        if not verdicts:
            self._receive(receiver)
            return
        self._settling.add(receiver.fileno())
        body = json.dumps({"settlements": verdicts}).encode()
        receiver.send("POST", f"{self._path}/settle", body)

    def _stop_receivers(self) -> None:
        """Read the last answers, so that the connections can be used again."""
        for receiver in self._receivers:
            good(receiver.read(), "a call")
