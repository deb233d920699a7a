"""Live listeners of a topic: WebSockets with a match each, against R."""

import threading
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from itertools import count
from time import perf_counter

import msgspec

from tests.bench import payloads
from tests.bench.plan import TOPIC_LISTEN, Plan
from tests.bench.ratios import Measured, Row
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_push import CREDIT, ROUND_S_MAX, THE_END, read_all
from tests.bench.servers import House
from tests.bench.sockets import MSGPACK_PROTOCOL, WebSocket
from tests.bench.wire import MSGPACK, call, post_all

LISTENERS = 10
BATCH = 500
END_SUBJECT = "end"


def measure(house: House, plan: Plan, _: Collection[Row]) -> list[Measured]:
    """Deliver each message of a topic to the one listener that selects it, against R."""
    listeners = Listeners(house, plan)
    contestant = Contestant(TOPIC_LISTEN, listeners.deliver)
    return interleave(plan.rounds, listeners.reference, [contestant])


class Listeners:
    """Sockets that each select the messages of one region; a round has a new topic."""

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._plan = plan
        self._numbers = count()

    def reference(self) -> float:
        """R, in entries per second."""
        return self._house.reference(self._plan.seconds)

    def deliver(self) -> float:
        """Messages per second, from the first publication until every listener has its own."""
        port, name = self._house.api.port, f"bench-listeners-{next(self._numbers)}"
        topic, calls = f"/v1/topics/{name}", self._plan.listened // BATCH
        call(port, "PUT", topic, {})
        with ExitStack() as stack:
            sockets = [
                stack.enter_context(WebSocket(port, protocol=MSGPACK_PROTOCOL))
                for _ in range(LISTENERS)
            ]
            for number, socket in enumerate(sockets):
                _listen(socket, name, number)
            publisher = threading.Thread(target=_publish, args=(port, topic, calls), daemon=True)
            begun = perf_counter()
            publisher.start()
            read_all(sockets)
            elapsed = perf_counter() - begun
            publisher.join(ROUND_S_MAX)
        call(port, "DELETE", topic)
        return calls * BATCH / elapsed


def _listen(socket: WebSocket, topic: str, number: int) -> None:
    match = {"subject": [f"order.*.{_region(number)}", END_SUBJECT]}
    source, conditions = f"stream:topic:{topic}", {"match": match}
    socket.request("subscribe", id="1", sub="a", source=source, filter=conditions, credit=CREDIT)


def _publish(port: int, topic: str, calls: int) -> None:
    path, batch = f"{topic}/messages", _messages(range(BATCH))
    post_all(port, [(path, batch, MSGPACK)] * calls)
    post_all(port, [(path, _end(), MSGPACK)])


def _messages(numbers: Sequence[int]) -> bytes:
    messages = [
        {"body": payloads.BODY, "subject": f"order.created.{_region(number % LISTENERS)}"}
        for number in numbers
    ]
    return msgspec.msgpack.encode({"messages": messages})


def _end() -> bytes:
    return msgspec.msgpack.encode({"messages": [{"body": THE_END, "subject": END_SUBJECT}]})


def _region(number: int) -> str:
    return f"region-{number}"
