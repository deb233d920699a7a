"""Rows of the SQS protocol against the echo server, in JSON."""

import json
from collections.abc import Collection

from tests.bench import payloads
from tests.bench.load import wrk
from tests.bench.plan import SQS_SEND, SQS_WORK, Plan
from tests.bench.ratios import Measured, Row, Unmeasurable
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_http import BATCH, FIRST_GUESS, SPARE
from tests.bench.servers import House, Served
from tests.bench.wire import MSGPACK, call, post_all

KIND = "application/x-amz-json-1.0"
NAME = "bench-sqs"
PATH = f"/v1/queues/{NAME}"
TEXT = "m" * 256


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """SendMessage, and receive ten + delete ten, against the echo server."""
    door = ApiProtocol(house, plan)
    contestants = [Contestant(SQS_SEND, door.send), Contestant(SQS_WORK, door.work)]
    chosen = [one for one in contestants if one.row in wanted]
    return interleave(plan.rounds, door.echo, chosen)


class ApiProtocol:
    """A queue, and a client of it."""

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._seconds = plan.seconds
        self._wanted = FIRST_GUESS * plan.seconds
        call(house.api.port, "PUT", PATH, {})
        self._url = f"http://127.0.0.1:{house.api.port}/000000000000/{NAME}"
        request = {"QueueUrl": self._url, "MessageBody": TEXT}
        self._message = house.file("sqs-message.json", json.dumps(request).encode())

    def echo(self) -> float:
        """Calls per second of the echo server."""
        return self._post(self._house.echo)

    def send(self) -> float:
        """Sends per second."""
        rate = self._post(self._house.api)
        self._purge()
        return rate

    def work(self) -> float:
        """Calls per second; a round that empties the queue is repeated with more messages."""
        for _ in range(3):
            self._fill()
            load = wrk(self._house.api.port, "sqs_work.lua", self._url, seconds=self._seconds)
            self._wanted = round(max(self._wanted, SPARE * load.delivered))
            if not load.empty:
                return load.rate
        raise Unmeasurable("the queue ran dry in every attempt")

    def _post(self, served: Served) -> float:
        words = ("POST", KIND, "*/*", self._message, "/", "1", "0", "AmazonSQS.SendMessage")
        return wrk(served.port, "fixed.lua", *words, seconds=self._seconds).rate

    def _purge(self) -> None:
        call(self._house.api.port, "POST", f"{PATH}/purges")
        self._house.wait_for_freeing()

    def _fill(self) -> None:
        self._purge()
        batch = payloads.messages(BATCH)
        count = -(-self._wanted // BATCH)
        post_all(self._house.api.port, [(f"{PATH}/messages", batch, MSGPACK)] * count)
        self._house.wait_for_freeing()
