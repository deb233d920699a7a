"""Rows of WebSocket: fan-out of a stream, wake-up, and the cost of waiting sockets."""

import selectors
import threading
from collections.abc import Collection
from contextlib import ExitStack
from itertools import count
from time import perf_counter, sleep

from tests.bench import payloads
from tests.bench.plan import FAN_OUT, IDLE_SOCKETS, PUSH_WAKE_UP, Plan
from tests.bench.ratios import Measured, Round, Row, Unmeasurable
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_idle import (
    PAUSE_S,
    SOCKET_BYTES_MAX,
    Waiting,
    allow_files,
    percentile_99,
    settled_bytes,
)
from tests.bench.servers import House, Served
from tests.bench.sockets import MSGPACK_PROTOCOL, WebSocket
from tests.bench.wire import MSGPACK, HttpConnection, call

SOCKETS = 100
CREDIT = {"messages": 10_000, "bytes": 64 * 2**20}
GRANT_BYTES = 2**20  # frame bytes between two grants: some 3500 records
GRANT = {"messages": 4_000, "bytes": 2 * 2**20}
THE_END = b"the-last-record-of-this-round"
ROUND_S_MAX = 60.0


# ── Fan-out ──


def measure_fan_out(house: House, plan: Plan, _: Collection[Row]) -> list[Measured]:
    """Every record of a stream to every socket, against R."""
    fan_out = FanOut(house, plan)
    return interleave(plan.rounds, fan_out.reference, [Contestant(FAN_OUT, fan_out.deliver)])


class FanOut:
    """Each round has a new stream and new sockets."""

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._plan = plan
        self._numbers = count()

    def reference(self) -> float:
        """R, in entries per second."""
        return self._house.reference(self._plan.seconds)

    def deliver(self) -> float:
        """Received records per second, over all sockets."""
        port, name = self._house.api.port, f"bench-push-{next(self._numbers)}"
        path = f"/v1/streams/{name}"
        call(port, "PUT", path, {"shards": 1})
        with ExitStack() as stack:
            sockets = [
                stack.enter_context(WebSocket(port, protocol=MSGPACK_PROTOCOL))
                for _ in range(SOCKETS)
            ]
            for socket in sockets:
                socket.request("subscribe", id="1", sub="a", source=f"stream:{name}", credit=CREDIT)
            batches = self._plan.fanned_out // payloads.RECORDS
            writer = threading.Thread(target=_write, args=(port, path, batches), daemon=True)
            started = perf_counter()
            writer.start()
            read_all(sockets)
            took = perf_counter() - started
            writer.join(ROUND_S_MAX)
        call(port, "DELETE", path)
        return batches * payloads.RECORDS * SOCKETS / took


def _write(port: int, path: str, batches: int) -> None:
    body = payloads.records()
    with HttpConnection(port) as connection:
        for _ in range(batches):
            connection.call("POST", f"{path}/records", body, MSGPACK)
        connection.call("POST", f"{path}/records", THE_END, "application/octet-stream")


def read_all(sockets: list[WebSocket]) -> None:
    """Receive until each socket has the last record; count, and discard."""
    with selectors.DefaultSelector() as selector:
        for socket in sockets:
            selector.register(socket.socket, selectors.EVENT_READ, [socket, 0, b""])
        left, give_up_at = len(sockets), perf_counter() + ROUND_S_MAX
        while left:
            if perf_counter() > give_up_at:
                raise Unmeasurable(f"{left} sockets had not everything within {ROUND_S_MAX:.0f} s")
            for key, _ in selector.select(1.0):
                left -= _read_some(selector, key)


def _read_some(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> int:
    socket, read, tail = key.data
    data = socket.socket.recv(1 << 18)
    if not data:
        raise Unmeasurable("the server closed a socket")
    end = tail + data[-len(THE_END) - 400 :]
    if THE_END in end:
        selector.unregister(socket.socket)
        return 1
    read += len(data)
    if read >= GRANT_BYTES:
        read = 0
        socket.send_frame("credit", sub="a", **GRANT)
    key.data[1:] = [read, end[-len(THE_END) - 400 :]]
    return 0


# ── Wake-up ──


def measure_wake_up(house: House, plan: Plan) -> list[Measured]:
    """From a send to the message at a waiting socket, against an echo and a script."""
    echoes, scripts, wakes = [], [], []
    call(house.api.port, "PUT", "/v1/queues/bench-push-wake-up", {})
    with (
        Waiting(house) as waiting,
        WebSocket(house.api.port) as socket,
        HttpConnection(house.api.port) as sender,
    ):
        source = "queue:bench-push-wake-up"
        socket.request("subscribe", id="1", sub="a", source=source)
        for _ in range(plan.latency_samples):
            echoes.append(waiting.echo())
            scripts.append(waiting.script())
            wakes.append(_wake_up(sender, socket))
    echo, script, wake = (1e3 * percentile_99(samples) for samples in (echoes, scripts, wakes))
    note = f"p99 of the echo {echo:.2f} ms, of a script {script:.2f} ms; {len(wakes)} samples each"
    return [Measured(row=PUSH_WAKE_UP, rounds=[Round(wake, echo + 2 * script)], notes=[note])]


def _wake_up(sender: HttpConnection, socket: WebSocket) -> float:
    sleep(PAUSE_S)
    started = perf_counter()
    sender.send(
        "POST", "/v1/queues/bench-push-wake-up/messages", payloads.BODY, "application/octet-stream"
    )
    frame = socket.receive_frame()
    took = perf_counter() - started
    sender.read()
    handles = [message["receipt_handle"] for message in frame["messages"]]
    socket.send_frame("credit", sub="a", messages=1, bytes=payloads.BODY_BYTES)
    socket.request("ack", id="2", sub="a", receipt_handles=handles)
    return took


# ── Cost of waiting ──


def measure_idle_sockets(house: House, plan: Plan) -> list[Measured]:
    """Memory of a waiting socket in the API process, against a socket of the echo server."""
    allow_files(plan.idle_sockets + 200)
    call(house.api.port, "PUT", "/v1/queues/bench-idle-sockets", {})
    call(house.api.port, "PUT", "/v1/streams/bench-idle-sockets", {"shards": 1})
    with house.fresh_api() as served:
        queue = _bytes_each(served, plan.idle_sockets, "queue:bench-idle-sockets")
    with house.fresh_api() as served:
        stream = _bytes_each(served, plan.idle_sockets, "stream:bench-idle-sockets")
    with house.fresh_echo() as echo:
        bare = _bytes_each(echo, plan.idle_sockets, "")
    note = (
        f"{plan.idle_sockets} sockets, each subscribed to a queue, take {queue:,.0f} B, to a stream {stream:,.0f} B; "
        f"{bare:,.0f} B are those of a socket of a bare application"
    )
    each = max(queue, stream) - bare
    return [Measured(row=IDLE_SOCKETS, rounds=[Round(each, SOCKET_BYTES_MAX)], notes=[note])]


def _bytes_each(served: Served, number: int, source: str) -> float:
    with ExitStack() as stack:
        stack.enter_context(_waiting(served, source))  # first-use allocations do not count
        before = settled_bytes(served)
        for _ in range(number):
            stack.enter_context(_waiting(served, source))
        return (settled_bytes(served) - before) / number


def _waiting(served: Served, source: str) -> WebSocket:
    socket = WebSocket(served.port, greet=bool(source))
    if source:
        socket.request("subscribe", id="1", sub="a", source=source)
    return socket
