"""Rows against the echo server: the share of its calls that remains with real work."""

from collections.abc import Collection
from pathlib import Path

from tests.bench import payloads
from tests.bench.load import CONNECTIONS, h2load, wrk
from tests.bench.plan import RECEIVE_SETTLE, SEND_HTTP2, SEND_JSON, SEND_RAW, Plan
from tests.bench.ratios import Measured, Row, Unmeasurable
from tests.bench.rounds import Contestant, interleave
from tests.bench.servers import House, Served
from tests.bench.wire import JSON, MSGPACK, call, post_all

RAW = "application/octet-stream"
BATCH = 1_000
STREAMS = 8  # requests in progress on a connection of HTTP/2
FIRST_GUESS = 50_000  # messages per second that the first round of receive-settle may take
SPARE = 1.6  # headroom over the last round


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Send, and receive + settle, against the echo server."""
    sends = Sends(house, plan)
    works = Works(house, plan)
    contestants = [
        Contestant(SEND_JSON, sends.as_json),
        Contestant(SEND_RAW, sends.raw),
        Contestant(RECEIVE_SETTLE, works.measure, works.notes),
    ]
    chosen = [one for one in contestants if one.row in wanted]
    if RECEIVE_SETTLE in wanted:
        works.measure_client()
    return interleave(plan.rounds, sends.echo, chosen)


def measure_http2(house: House, plan: Plan) -> list[Measured]:
    """Send over HTTP/2, with as many requests in progress as over HTTP/1.1, on an eighth of the connections."""
    call(house.api.port, "PUT", "/v1/queues/bench-http2", {})
    body = Path(house.file("message", payloads.BODY))
    url = f"http://127.0.0.1:{house.api.port}/v1/queues/bench-http2"

    def send(*words: str) -> float:
        rate = h2load(f"{url}/messages", RAW, body, *words, seconds=plan.seconds)
        call(house.api.port, "POST", "/v1/queues/bench-http2/purges")
        house.wait_for_freeing()
        return rate

    many = str(CONNECTIONS)
    few = str(CONNECTIONS // STREAMS)
    return interleave(
        plan.rounds,
        lambda: send("--h1", "-c", many),
        [Contestant(SEND_HTTP2, lambda: send("-c", few, "-m", str(STREAMS)))],
    )


class Sends:
    """One message of 256 B per call, or the same bytes to the echo server."""

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._seconds = plan.seconds
        self._json = house.file("message.json", payloads.message_as_json())
        self._raw = house.file("message", payloads.BODY)
        self._path = "/v1/queues/bench-send/messages"
        call(house.api.port, "PUT", "/v1/queues/bench-send", {})

    def echo(self) -> float:
        """Calls per second of the echo server."""
        return self._post(self._house.echo, RAW, self._raw)

    def as_json(self) -> float:
        """Sends per second."""
        return self._send(JSON, self._json)

    def raw(self) -> float:
        """Sends per second."""
        return self._send(RAW, self._raw)

    def _send(self, kind: str, file: str) -> float:
        rate = self._post(self._house.api, kind, file)
        call(self._house.api.port, "POST", "/v1/queues/bench-send/purges")
        self._house.wait_for_freeing()
        return rate

    def _post(self, served: Served, kind: str, file: str) -> float:
        words = ("POST", kind, JSON, file, self._path, "1", "0")
        return wrk(served.port, "fixed.lua", *words, seconds=self._seconds).rate


class Works:
    """Receive ten, acknowledge ten, from a queue that is filled before each round."""

    PATH = "/v1/queues/bench-work"

    def __init__(self, house: House, plan: Plan) -> None:
        self.notes: list[str] = []
        self._house = house
        self._seconds = plan.seconds
        self._wanted = FIRST_GUESS * plan.seconds
        call(house.api.port, "PUT", self.PATH, {})

    def measure(self) -> float:
        """Calls per second; a round that empties the queue is repeated with more messages."""
        for _ in range(3):
            self._fill()
            load = wrk(self._house.api.port, "receive_settle.lua", self.PATH, seconds=self._seconds)
            self._wanted = round(max(self._wanted, SPARE * load.delivered))
            if not load.empty:
                return load.rate
        raise Unmeasurable("the queue ran dry in every attempt")

    def _fill(self) -> None:
        port = self._house.api.port
        call(port, "POST", f"{self.PATH}/purges")
        batch = payloads.messages(BATCH)
        count = -(-self._wanted // BATCH)
        post_all(port, [(f"{self.PATH}/messages", batch, MSGPACK)] * count)
        self._house.wait_for_freeing()

    def measure_client(self) -> None:
        """The client's own speed: the echo server returns the same responses without work."""
        load = wrk(self._house.echo.port, "receive_settle.lua", self.PATH, seconds=self._seconds)
        self.notes.append(
            f"wrk with this script makes {load.rate:,.0f} calls/s of the echo, which answers the same"
        )
