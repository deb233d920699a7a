"""Topics: publishing against the echo server, and copies to ten targets against R."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from time import monotonic, sleep
from typing import Any, NamedTuple

import msgspec

from storage.domain import limits
from tests.bench import payloads
from tests.bench.load import wrk
from tests.bench.plan import (
    FAN_OUT_FIFO,
    FAN_OUT_QUEUES,
    FAN_OUT_RECORDS,
    FAN_OUT_SLOW,
    FAN_OUT_SPREAD,
    FAN_OUT_STREAMS,
    FORWARD,
    IDLE_TOPICS,
    PUBLISH,
    PUBLISH_BATCH,
    PUBLISH_ROUTES,
    TOPIC_WAKE_UP,
    Plan,
)
from tests.bench.ratios import Measured, Round, Row, Unmeasurable
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_idle import percentile_99
from tests.bench.servers import House, resident_bytes
from tests.bench.wire import JSON, MSGPACK, HttpConnection, call, post_all

BATCH = 500
TARGETS = 10
KEYS = 100
PATIENCE_S = 120.0
POLL_S = 0.02
PAUSE_S = 0.005
IDLE_S = 3 * limits.ROUTER_IDLE_MS / limits.SECOND_MS
TOPIC_BYTES_MAX = 10 * 1024
SUBJECT, TENANT = "order.created.eu", "tenant-7"


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Publish one message a call, in turn with the echo server."""
    publishers = Publishers(house, plan)
    contestants = [
        Contestant(PUBLISH, lambda: publishers.publish(publishers.selective)),
        Contestant(PUBLISH_ROUTES, lambda: publishers.publish(publishers.crowded)),
    ]
    publish, routes = interleave(plan.rounds, publishers.echo, contestants)
    return [one for one in (publish, _against(routes, publish)) if one.row in wanted]


def _against(row: Measured, reference: Measured) -> Measured:
    """Return a row whose reference is another one."""
    if row.trouble or reference.trouble:
        return row
    pairs = zip(row.rounds, reference.rounds, strict=True)
    rounds = [Round(own.value, other.value) for own, other in pairs]
    return Measured(row=row.row, rounds=rounds, notes=row.notes)


class Publishers:
    """Topics with a single route, and with many of which one takes the message."""

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._plan = plan
        message = {"body": {"tenant": TENANT, "text": "m" * 220}, "subject": SUBJECT}
        self._file = house.file("publication.json", json.dumps(message).encode())
        self.selective = self._topic("bench-publish", [{"subject": "order.*.eu"}])
        self.crowded = self._topic(
            "bench-routes",
            [{"filter": {"body": {"tenant": [f"tenant-{n}"]}}} for n in range(plan.routes)],
        )

    def _topic(self, name: str, matches: Sequence[Mapping[str, Any]]) -> str:
        port, path = self._house.api.port, f"/v1/topics/{name}"
        call(port, "PUT", path, {"retention_seconds": 60})
        with HttpConnection(port) as connection:
            for nth, match in enumerate(matches):
                route = {"match": match, "target": {"queue": f"{name}-{nth}"}}
                connection.call("PUT", f"{path}/routes/r{nth}", json.dumps(route).encode())
        return path

    def echo(self) -> float:
        """Calls per second of the echo server."""
        return self._post(self._house.echo.port, "/v1/queues/bench-send/messages")

    def publish(self, topic: str) -> float:
        """Publications per second."""
        return self._post(self._house.api.port, f"{topic}/messages")

    def _post(self, port: int, path: str) -> float:
        words = ("POST", JSON, JSON, self._file, path, "1", "0")
        return wrk(port, "fixed.lua", *words, seconds=self._plan.seconds).rate


def measure_copies(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Publish batches, and copy each message to ten targets, against R."""
    copies = Copies(house, plan)
    contestants = [
        Contestant(PUBLISH_BATCH, copies.publish_batches),
        Contestant(FAN_OUT_QUEUES, copies.to_queues),
        Contestant(FAN_OUT_FIFO, copies.to_fifo_queues),
        Contestant(FAN_OUT_STREAMS, copies.to_streams),
        Contestant(FAN_OUT_SPREAD, copies.to_spread),
        Contestant(FAN_OUT_RECORDS, copies.of_stream),
        Contestant(FORWARD, copies.of_queue),
        Contestant(FAN_OUT_SLOW, copies.beside_full_target),
    ]
    needed = {*wanted, FAN_OUT_QUEUES} if FAN_OUT_SLOW in wanted else {*wanted}
    chosen = [one for one in contestants if one.row in needed]
    with house.background():
        measured = {one.row: one for one in interleave(plan.rounds, copies.reference, chosen)}
    if FAN_OUT_SLOW in measured:
        measured[FAN_OUT_SLOW] = _against(measured[FAN_OUT_SLOW], measured[FAN_OUT_QUEUES])
    return [one for row, one in measured.items() if row in wanted]


class _Source(NamedTuple):
    """Source of routes: paths of its owner, of the topic of its routes and of its producers, and an item."""

    owner: str
    topic: str
    posts: str
    items: str
    item: Mapping[str, Any]
    match: Mapping[str, Any]


MakeSource = Callable[[str], _Source]
_OF_TYPE = {"filter": {"headers": {"type": ["order"]}}}


def _topic(name: str) -> _Source:
    path, item = f"/v1/topics/{name}", {"body": payloads.BODY, "subject": SUBJECT}
    return _Source(path, path, f"{path}/messages", "messages", item, {"subject": "order.#"})


def _stream(name: str) -> _Source:
    path, item = f"/v1/streams/{name}", {"data": payloads.BODY, "headers": {"type": "order"}}
    return _Source(path, f"/v1/topics/stream:{name}", f"{path}/records", "records", item, _OF_TYPE)


def _queue(name: str) -> _Source:
    path, item = f"/v1/queues/{name}", {"body": payloads.BODY, "headers": {"type": "order"}}
    return _Source(path, f"/v1/topics/queue:{name}", f"{path}/messages", "messages", item, _OF_TYPE)


class Copies:
    """Topics with ten targets each; a round has new ones."""

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._plan = plan
        self._numbers = count()
        body = {"messages": [{"body": payloads.BODY, "subject": SUBJECT}] * BATCH}
        self._batch = msgspec.msgpack.encode(body)
        self._file = house.file("publications", self._batch)

    def reference(self) -> float:
        """R, in entries per second."""
        return self._house.reference(self._plan.seconds)

    def publish_batches(self) -> float:
        """Publications per second, of which ten routes take each."""
        source, _ = self._prepare(_topic, "queue", {}, paused=True)
        words = ("POST", MSGPACK, MSGPACK, self._file, source.posts, "1", "0")
        load = wrk(self._house.api.port, "fixed.lua", *words, seconds=self._plan.seconds)
        call(self._house.api.port, "DELETE", source.owner)
        return load.rate * BATCH

    def to_queues(self) -> float:
        """Copies per second, from the first publication until the last queue has all."""
        return self._copy("queue")

    def to_fifo_queues(self) -> float:
        """Copies per second from a FIFO topic, until the last FIFO queue has all."""
        return self._copy("queue", fifo=True)

    def to_streams(self) -> float:
        """Copies per second, from the first publication until the last stream has all."""
        return self._copy("stream")

    def to_spread(self) -> float:
        """Copies per second, as many as to queues, until those of a spread have one of each message."""
        port, name = self._house.api.port, f"bench-copies-{next(self._numbers)}"
        source, targets = _topic(name), [f"{name}-{nth}" for nth in range(TARGETS)]
        call(port, "PUT", source.owner, {})
        for target in targets:
            call(port, "PUT", f"/v1/queues/{target}", {})
        spread = {"spread": [{"queue": target} for target in targets], "by": "key"}
        call(port, "PUT", f"{source.topic}/routes/all", {"target": spread})
        messages = [{**source.item, "key": f"key-{nth % KEYS}"} for nth in range(BATCH)]
        batch = msgspec.msgpack.encode({source.items: messages})
        calls = self._plan.copied * TARGETS // BATCH

        def has(count: int) -> bool:
            return sum(map(self._in_queue, targets)) == count

        self._time(source, [batch], lambda: has(BATCH))  # until a router has the topic
        elapsed = self._time(source, [batch] * calls, lambda: has((calls + 1) * BATCH))
        self._remove(source, "queue", targets)
        return calls * BATCH / elapsed

    def of_stream(self) -> float:
        """Copies per second of the records of a stream, until the last queue has all."""
        return self._copy("queue", make=_stream)

    def of_queue(self) -> float:
        """Messages per second of a queue that is forwarded to another."""
        return self._copy("queue", make=_queue, count=1)

    def beside_full_target(self) -> float:
        """Copies per second to nine queues, while a tenth accepts a single message."""
        return self._copy("queue", full=1)

    def _copy(
        self,
        kind: str,
        *,
        make: MakeSource = _topic,
        count: int = TARGETS,
        full: int = 0,
        fifo: bool = False,
    ) -> float:
        config = {"type": "fifo"} if fifo else {}
        source, targets = self._prepare(make, kind, config, count=count, full=full)
        has = self._in_queue if kind == "queue" else self._in_stream
        published = self._plan.copied - self._plan.copied % BATCH
        calls = range(published // BATCH)
        batch = msgspec.msgpack.encode({source.items: [source.item] * BATCH})
        batches = [self._keyed_batch(call_number) if fifo else batch for call_number in calls]
        elapsed = self._time(
            source, batches, lambda: all(has(target) > published for target in targets[full:])
        )
        self._remove(source, kind, targets)
        return published * (count - full) / elapsed

    def _time(
        self, source: _Source, batches: Sequence[bytes], is_finished: Callable[[], bool]
    ) -> float:
        begun = monotonic()
        post_all(self._house.api.port, [(source.posts, batch, MSGPACK) for batch in batches])
        self._wait(is_finished)
        return monotonic() - begun

    def _keyed_batch(self, call_number: int) -> bytes:
        """Return a batch for a FIFO topic, whose deduplication ids no other call has."""
        message = {"body": payloads.BODY, "subject": SUBJECT}
        messages = [
            {**message, "key": f"key-{nth % KEYS}", "dedup_id": f"{call_number}-{nth}"}
            for nth in range(BATCH)
        ]
        return msgspec.msgpack.encode({"messages": messages})

    def _prepare(
        self,
        make: MakeSource,
        kind: str,
        config: Mapping[str, Any],
        *,
        count: int = TARGETS,
        full: int = 0,
        paused: bool = False,
    ) -> tuple[_Source, list[str]]:
        port, name = self._house.api.port, f"bench-copies-{next(self._numbers)}"
        source, targets = make(name), [f"{name}-{nth}" for nth in range(count)]
        call(port, "PUT", source.owner, config)
        for nth, target in enumerate(targets):
            caps = {"messages_max": 1, "overflow": "reject"} if nth < full else {}
            call(port, "PUT", f"/v1/{kind}s/{target}", {**config, **caps})
            route = {"match": source.match, "target": {kind: target}}
            call(port, "PUT", f"{source.topic}/routes/{target}", route)
            if paused:
                call(port, "PUT", f"{source.topic}/routes/{target}/pause")
        self._warm_up(source, targets[full:], kind, paused=paused, is_fifo=bool(config))
        return source, targets

    def _warm_up(
        self, source: _Source, targets: Sequence[str], kind: str, *, paused: bool, is_fifo: bool
    ) -> None:
        """Wait until a router has the topic."""
        if paused:
            return
        own = {"key": "key-0", "dedup_id": "warm-up"} if is_fifo else {}
        warm_up = msgspec.msgpack.encode({source.items: [{**source.item, **own}]})
        post_all(self._house.api.port, [(source.posts, warm_up, MSGPACK)])
        has = self._in_queue if kind == "queue" else self._in_stream
        self._wait(lambda: all(has(target) == 1 for target in targets))

    def _in_queue(self, name: str) -> int:
        stats = call(self._house.api.port, "GET", f"/v1/queues/{name}/stats")
        return int(stats["ready"]) + int(stats["in_flight"])

    def _in_stream(self, name: str) -> int:
        shards = call(self._house.api.port, "GET", f"/v1/streams/{name}/shards")["items"]
        return sum(int(shard["next"]) for shard in shards)

    def _wait(self, is_met: Callable[[], bool]) -> None:
        give_up_at = monotonic() + PATIENCE_S
        while not is_met():
            if monotonic() > give_up_at:
                raise Unmeasurable(f"copies were still missing after {PATIENCE_S:.0f} s")
            sleep(POLL_S)

    def _remove(self, source: _Source, kind: str, targets: Sequence[str]) -> None:
        port = self._house.api.port
        call(port, "DELETE", source.owner)
        for target in targets:
            call(port, "DELETE", f"/v1/{kind}s/{target}")
        self._house.wait_for_freeing()


def measure_idle_topics(house: House, plan: Plan) -> list[Measured]:
    """Create topics with a route to one queue, each of which had one message."""
    port, queue = house.api.port, "bench-idle-topics"
    call(port, "PUT", f"/v1/queues/{queue}", {})
    with house.background() as router, HttpConnection(port) as connection:
        _use_topic_once(connection, "bench-idle-topic", queue)
        _wait_until_queued(port, queue, 1)
        sleep(IDLE_S)
        before = house.used_memory(), resident_bytes(router)
        for number in range(plan.idle_topics):
            _use_topic_once(connection, f"bench-idle-topic-{number}", queue)
        _wait_until_queued(port, queue, 1 + plan.idle_topics)
        sleep(IDLE_S)
        after = house.used_memory(), resident_bytes(router)
    store, routing = (
        (last - first) / plan.idle_topics for first, last in zip(before, after, strict=True)
    )
    notes = [
        f"{plan.idle_topics} topics: {store:,.0f} B of the store, {routing:,.0f} B of the router"
    ]
    return [
        Measured(row=IDLE_TOPICS, rounds=[Round(store + routing, TOPIC_BYTES_MAX)], notes=notes)
    ]


def _use_topic_once(connection: HttpConnection, name: str, queue: str) -> None:
    connection.call("PUT", f"/v1/topics/{name}", b"{}")
    route = json.dumps({"target": {"queue": queue}}).encode()
    connection.call("PUT", f"/v1/topics/{name}/routes/all", route)
    connection.call("POST", f"/v1/topics/{name}/messages", payloads.message_as_json())


def _wait_until_queued(port: int, queue: str, count: int) -> None:
    give_up_at = monotonic() + PATIENCE_S
    while int(call(port, "GET", f"/v1/queues/{queue}/stats")["ready"]) < count:
        if monotonic() > give_up_at:
            raise Unmeasurable(f"copies were still missing after {PATIENCE_S:.0f} s")
        sleep(POLL_S)


def measure_wake_up(house: House, plan: Plan) -> list[Measured]:
    """From a publication to the answer of a waiting receive, against a send to it, in turn."""
    port, topic, queue = (
        house.api.port,
        "/v1/topics/bench-wake-up",
        "/v1/queues/bench-wake-up-topic",
    )
    call(port, "PUT", queue, {})
    call(port, "PUT", topic, {})
    call(port, "PUT", f"{topic}/routes/all", {"target": {"queue": "bench-wake-up-topic"}})
    with (
        house.background(),
        HttpConnection(port) as sender,
        HttpConnection(port) as receiver,
    ):
        receive_after(sender, receiver, f"{topic}/messages", queue)
        sends, publishes = [], []
        for _ in range(plan.latency_samples):
            sends.append(receive_after(sender, receiver, f"{queue}/messages", queue))
            publishes.append(receive_after(sender, receiver, f"{topic}/messages", queue))
    send, publish = (1e3 * percentile_99(samples) for samples in (sends, publishes))
    medians = [1e3 * sorted(samples)[len(samples) // 2] for samples in (sends, publishes)]
    note = f"medians: a send {medians[0]:.2f}, a publication {medians[1]:.2f} ms"
    return [Measured(row=TOPIC_WAKE_UP, rounds=[Round(publish, send)], notes=[note])]


def receive_after(sender: HttpConnection, receiver: HttpConnection, path: str, queue: str) -> float:
    """Return the seconds from a POST to the answer of a receive that was waiting."""
    receiver.send("POST", f"{queue}/receive", b'{"wait_seconds": 20}')
    sleep(PAUSE_S)
    begun = monotonic()
    sender.call("POST", path, payloads.message_as_json())
    message = json.loads(receiver.read().body)["messages"][0]
    elapsed = monotonic() - begun
    settled = [{"receipt_handle": message["receipt_handle"], "action": "ack"}]
    receiver.call("POST", f"{queue}/settle", json.dumps({"settlements": settled}).encode())
    return elapsed
