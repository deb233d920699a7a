"""Loads of the bench: each uses a temporary queue or stream, deleted afterwards.

send          a call sends a batch of messages
receive       a call receives a batch and acknowledges it, from a queue that was filled before
put           a call appends a batch of records
read          a call reads a batch of records, from a stream that was filled before
end-to-end    a call sends a batch; measured is the arrival of each message at its receiver, over long polls or a WebSocket
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from api.cli.bench.options import BenchOperation, Over, Protocol
from api.cli.bench.schedule import BenchCall, BenchClock, BenchSchedule, LatencyTally, run_open_loop
from millstream_client import AsyncMillstream, AsyncQueue, AsyncStream, Retries
from millstream_client.calls import IDEMPOTENCY_KEY, Call
from millstream_client.messages import path
from millstream_client.records import read_shard

FILL_BATCH_MAX = 1_000
ARRIVAL_GRACE_S = 10.0
POLL_S = 5.0
POLL_MESSAGES = 100


@dataclass(frozen=True)
class BenchLoad:
    """Configuration of one bench."""

    what: BenchOperation
    pace: BenchSchedule
    size: int
    batch: int
    protocol: Protocol
    over: Over


async def run_load(url: str, api_key: str, load: BenchLoad, clock: BenchClock) -> LatencyTally:
    """Run a load and measure it.

    Raises MillstreamError when the service cannot be reached, or refuses the preparation.
    """
    retries = Retries(seconds=0)
    async with AsyncMillstream(url, api_key, retries=retries) as client:
        name = f"bench-{uuid.uuid4().hex[:12]}"
        if load.what in (BenchOperation.PUT, BenchOperation.READ):
            async with _own(client.stream(name)) as stream:
                return await _of_stream(client, stream, load, clock)
        async with _own(client.queue(name)) as queue:
            return await _of_queue(client, queue, load, clock)


@asynccontextmanager
async def _own(thing: Any) -> AsyncIterator[Any]:
    """Create a queue or stream while the block runs."""
    config = {"archive": False} if isinstance(thing, AsyncStream) else {}
    await thing.create(only_new=True, **config)
    try:
        yield thing
    finally:
        await thing.delete()


async def _of_stream(
    client: AsyncMillstream, stream: AsyncStream, load: BenchLoad, clock: BenchClock
) -> LatencyTally:
    if load.what is BenchOperation.PUT:
        return await run_open_loop(_posting(client, load, stream.name), load.pace, clock)
    filled = max(FILL_BATCH_MAX, load.batch)
    await stream.put_many([b"x" * load.size] * filled)
    positions = max(1, filled - load.batch)

    async def read(number: int) -> int:
        query = {"offset": number * load.batch % positions, "limit": load.batch}
        return len((await client.call(read_shard(stream.name, 0, query))).records)

    return await run_open_loop(read, load.pace, clock)


async def _of_queue(
    client: AsyncMillstream, queue: AsyncQueue, load: BenchLoad, clock: BenchClock
) -> LatencyTally:
    if load.what is BenchOperation.SEND:
        return await run_open_loop(_posting(client, load, queue.name), load.pace, clock)
    if load.what is BenchOperation.END_TO_END:
        return await _end_to_end(client, queue, load, clock)
    messages_total = load.pace.calls * load.batch
    for begin in range(0, messages_total, FILL_BATCH_MAX):
        await queue.send_many([b"x" * load.size] * min(FILL_BATCH_MAX, messages_total - begin))

    async def receive(number: int) -> int:
        received = await queue.receive(load.batch, wait_seconds=0)
        await queue.ack(received)
        return len(received)

    return await run_open_loop(receive, load.pace, clock)


# ── Sending ──


def _posting(
    client: AsyncMillstream,
    load: BenchLoad,
    name: str,
    body_of: Callable[[int], bytes] | None = None,
) -> BenchCall:
    """Return a function that sends or appends a batch in the configured protocol."""
    is_queue = load.what is not BenchOperation.PUT
    operation = "send_messages" if is_queue else "append_records"
    target = path("queues", name, "messages") if is_queue else path("streams", name, "records")
    outer, inner = ("messages", "body") if is_queue else ("records", "data")
    payload = b"x" * load.size

    async def post(number: int) -> int:
        body = body_of(number) if body_of else payload
        content, media_type = _written({outer: [{inner: body}] * load.batch}, inner, load.protocol)
        headers = {"content-type": media_type, "accept": media_type}
        headers[IDEMPOTENCY_KEY] = uuid.uuid4().hex
        call = Call(operation, "POST", target, _decoded, headers=headers, content=content)
        return len((await client.call(call))[outer])

    return post


def _written(batch: dict[str, Any], field: str, protocol: Protocol) -> tuple[bytes, str]:
    if protocol is Protocol.MSGPACK:
        return msgspec.msgpack.encode(batch), "application/msgpack"
    content = {
        outer: [{field: item[field].decode()} for item in items] for outer, items in batch.items()
    }
    return msgspec.json.encode(content), "application/json"


def _decoded(response: httpx.Response) -> dict[str, Any]:
    packed = "msgpack" in response.headers.get("content-type", "")
    content: dict[str, Any] = (msgspec.msgpack if packed else msgspec.json).decode(response.content)
    return content


# ── End to end ──


class Arrivals:
    """Receiver's tally of messages, each with its call's number.

    Their latency counts from when the call was due.
    """

    def __init__(self, load: BenchLoad, clock: BenchClock) -> None:
        self._load = load
        self._clock = clock
        self.began = clock.now()
        self.tally = LatencyTally()
        self.all = asyncio.Event()
        self._missing = load.pace.calls * load.batch

    def body(self, number: int) -> bytes:
        """Return the body of a call's messages: its number, padded."""
        return b"%d " % number + b"x" * (self._load.size - 12)

    def arrived(self, body: bytes) -> None:
        """Count a message at its receiver."""
        number = int(body.partition(b" ")[0])
        now = self._clock.now() - self.began
        if self._load.pace.counts(number):
            self.tally.succeeded(1, now - self._load.pace.due(number), now)
        self._missing -= 1
        if self._missing <= 0:
            self.all.set()

    def settle(self, sent: LatencyTally) -> LatencyTally:
        """Count messages that never arrived as failed, and calls that could not send."""
        pace = self._load.pace
        expected = sum(map(pace.counts, range(pace.calls))) * self._load.batch
        lost = expected - self.tally.items
        if lost > 0:
            self.tally.failed = lost
            self.tally.failures = {**sent.failures, "NotArrived": lost}
        return self.tally


async def _end_to_end(
    client: AsyncMillstream, queue: AsyncQueue, load: BenchLoad, clock: BenchClock
) -> LatencyTally:
    take = _poll if load.over is Over.POLL else _subscribe
    ready = asyncio.Event()
    arrivals = Arrivals(load, clock)
    receiving = asyncio.create_task(take(queue, arrivals, ready))
    try:
        await _unless_failed(ready.wait(), receiving)
        arrivals.began = clock.now()
        send = _posting(client, load, queue.name, arrivals.body)
        sent = await run_open_loop(send, load.pace, clock)
        with suppress(TimeoutError):
            await asyncio.wait_for(arrivals.all.wait(), ARRIVAL_GRACE_S)
    finally:
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
    return arrivals.settle(sent)


async def _unless_failed(waiting: Any, other: asyncio.Task[None]) -> None:
    """Wait, but raise as soon as the other task fails."""
    task = asyncio.ensure_future(waiting)
    await asyncio.wait({task, other}, return_when=asyncio.FIRST_COMPLETED)
    if other.done():
        task.cancel()
        other.result()


async def _poll(queue: AsyncQueue, arrivals: Arrivals, ready: asyncio.Event) -> None:
    ready.set()
    while True:
        received = await queue.receive(POLL_MESSAGES, wait_seconds=POLL_S)
        for message in received:
            arrivals.arrived(message.body)
        if received:
            await queue.ack(received)


async def _subscribe(queue: AsyncQueue, arrivals: Arrivals, ready: asyncio.Event) -> None:
    async with queue.subscribe(messages=1_000) as messages, asyncio.TaskGroup() as acks:
        ready.set()
        async for message in messages:
            arrivals.arrived(message.body)
            acks.create_task(message.ack())
