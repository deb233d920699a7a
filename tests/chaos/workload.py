"""Clients at work on two queues, a queue that everything fails in, a stream and a group: seeded, each value once.

    work        standard   sent and received through REST and SQS; some messages come back
    line.fifo   FIFO       each sender has groups of its own, and repeats a send with its id until it is accepted
    fragile     standard   every message is refused until it is a dead letter
    events      3 shards   appended to with idempotency keys, and by producers on a shard's address
    readers     group      two members read and commit

Afterwards everything is drained.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from random import Random
from types import TracebackType
from typing import Any, Self

import httpx

from tests.chaos.callers import (
    ANSWER_S,
    Caller,
    Delivery,
    QueueDoor,
    RestQueues,
    SqsQueues,
    Streams,
)
from tests.chaos.checker import STAYING
from tests.chaos.history import History, Kind, Operation, Outcome, Seen

WORK, LINE, FRAGILE = "work", "line.fifo", "fragile"
EVENTS, READERS, SHARDS = "events", "readers", 3
VISIBILITY_S = 3
GROUPS = 4
PAUSE_S = 0.02
FRAGILE_PAUSE_S = 0.2
DRAIN_S = 60.0
PAGE = 100
ROUNDS = 5  # of everything going well in a row, each on new connections, so that several processes answer

QUEUES: dict[str, dict[str, Any]] = {
    WORK: {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None},
    LINE: {"type": "fifo", "visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None},
    FRAGILE: {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": 2},
}


class Workload:
    """Everybody who uses the service."""

    def __init__(self, url: str, history: History, seed: int) -> None:
        self.history = history
        self._url = url
        self._seed = seed
        self._over = asyncio.Event()
        self._open = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._open.__aenter__()
        caller = await self._caller("setup")
        for name, config in QUEUES.items():
            await _insist(caller.http, "PUT", f"/v1/queues/{name}", config)
        await _insist(caller.http, "PUT", f"/v1/streams/{EVENTS}", {"shards": SHARDS})
        group = {"stream": EVENTS, "session_timeout_seconds": 6}
        await _insist(caller.http, "PUT", f"/v1/groups/{READERS}", group)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._open.aclose()

    async def start(self) -> None:
        """Let everybody begin."""
        for number, door in enumerate((RestQueues, SqsQueues)):
            name = door.__name__.lower()
            await self._run(f"{name}-sender", door, self._send)
            await self._run(f"{name}-fifo-sender", door, self._send_in_order)
            for copy in range(2):
                await self._run(f"{name}-worker-{copy}", door, self._work)
                await self._run(f"{name}-fifo-worker-{copy}", door, self._work_in_order)
            await self._run(f"appender-{number}", Streams, self._append)
            await self._run(f"producer-{number}", Streams, self._produce)
            await self._run(f"member-{number}", Streams, self._read_and_commit)
        await self._run("breaker-sender", RestQueues, self._send_slowly)
        await self._run("breaker", RestQueues, self._break)
        await self._run("watcher", Streams, self._watch)

    async def stop(self) -> None:
        """Let everybody finish what they are at. What a client raised is raised."""
        self._over.set()
        await asyncio.gather(*self._tasks)

    def failed(self) -> bool:
        """Whether a client ended before it was told to."""
        return any(task.done() for task in self._tasks)

    async def _caller(self, name: str) -> Caller:
        http = httpx.AsyncClient(base_url=self._url, timeout=ANSWER_S, trust_env=False)
        return Caller(name, self.history, await self._open.enter_async_context(http))

    async def _run(
        self,
        name: str,
        door: Callable[[Caller], Any],
        work: Callable[[str, Any, Random], Coroutine[Any, Any, None]],
    ) -> None:
        caller = await self._caller(name)
        chance = Random(f"{self._seed} {name}")
        self._tasks.append(asyncio.create_task(work(name, door(caller), chance)))

    async def _pause(self, chance: Random, seconds: float = PAUSE_S) -> None:
        await asyncio.sleep(chance.uniform(0.5, 1.5) * seconds)

    async def _send(self, name: str, door: QueueDoor, chance: Random) -> None:
        number = 0
        while not self._over.is_set():
            await door.send(WORK, f"{name}:{number}")
            number += 1
            await self._pause(chance)

    async def _send_slowly(self, name: str, door: QueueDoor, chance: Random) -> None:
        number = 0
        while not self._over.is_set():
            await door.send(FRAGILE, f"{name}:{number}")
            number += 1
            await self._pause(chance, FRAGILE_PAUSE_S)

    async def _send_in_order(self, name: str, door: QueueDoor, chance: Random) -> None:
        number = 0
        while not self._over.is_set():
            group = f"{name}-{chance.randrange(GROUPS)}"
            await self._repeat(partial(door.send, LINE, f"{name}:{number}", group=group))
            number += 1
            await self._pause(chance)

    async def _repeat(self, ask: Callable[[], Awaitable[Operation]]) -> Operation:
        """Ask until it is accepted, or everything is over."""
        while True:
            done = await ask()
            if done.outcome is Outcome.OK or self._over.is_set():
                return done
            await asyncio.sleep(5 * PAUSE_S)

    async def _work(self, name: str, door: QueueDoor, chance: Random) -> None:
        """Acknowledge most, give some back, forget some."""
        while not self._over.is_set():
            received = await door.receive(WORK, chance.randint(1, 10), wait_s=1)
            for delivery in received.seen:
                luck = chance.random()
                if luck < 0.90:
                    await door.settle(WORK, delivery, Kind.ACK)
                elif luck < 0.97:
                    await door.settle(WORK, delivery, Kind.NACK)
            if received.outcome is not Outcome.OK:
                await self._pause(chance)

    async def _work_in_order(self, name: str, door: QueueDoor, chance: Random) -> None:
        """Acknowledge one after another; sometimes stop in the middle, and everything behind must wait."""
        while not self._over.is_set():
            received = await door.receive(LINE, chance.randint(1, 10), wait_s=1)
            for delivery in received.seen:
                if chance.random() < 0.03:
                    break
                await door.settle(LINE, delivery, Kind.ACK)
            if received.outcome is not Outcome.OK:
                await self._pause(chance)

    async def _break(self, name: str, door: QueueDoor, chance: Random) -> None:
        while not self._over.is_set():
            received = await door.receive(FRAGILE, 10, wait_s=1)
            for delivery in received.seen:
                await door.settle(FRAGILE, delivery, Kind.NACK)
            if received.outcome is not Outcome.OK:
                await self._pause(chance)

    async def _append(self, name: str, door: Streams, chance: Random) -> None:
        number = 0
        while not self._over.is_set():
            key = f"{name}-{chance.randrange(GROUPS)}"
            await self._repeat(partial(door.append, EVENTS, f"{name}:{number}", key))
            number += 1
            await self._pause(chance)

    async def _produce(self, name: str, door: Streams, chance: Random) -> None:
        shard, sequence = chance.randrange(SHARDS), 0
        while not self._over.is_set():
            size = chance.randint(1, 5)
            values = tuple(f"{name}:{number}" for number in range(sequence, sequence + size))
            await self._repeat(partial(door.produce, EVENTS, shard, values, sequence))
            sequence += size
            await self._pause(chance)

    async def _read_and_commit(self, name: str, door: Streams, chance: Random) -> None:
        while not self._over.is_set():
            read, token = await door.read_as(EVENTS, READERS)
            if token and read.seen and chance.random() < 0.9:
                await door.commit(EVENTS, READERS, token)
            await self._pause(chance)
        await door.leave(READERS)

    async def _watch(self, name: str, door: Streams, chance: Random) -> None:
        """Read from random places while records arrive, and ask where the group stands."""
        most = [0] * SHARDS
        while not self._over.is_set():
            shard = chance.randrange(SHARDS)
            read = await door.read(EVENTS, shard, chance.randint(0, most[shard]))
            most[shard] = max([most[shard], *(seen.offset for seen in read.seen)])
            await door.standing(EVENTS, READERS)
            await self._pause(chance, 5 * PAUSE_S)

    async def recovered(self, bound_s: float) -> float | None:
        """How long it takes until everything goes well again, several times in a row; None: longer than that."""
        began = self.history.now()
        well, number = 0, 0
        while well < ROUNDS:
            if self.history.now() - began > bound_s:
                return None
            well = well + 1 if await self._everything_goes_well(number) else 0
            number += 1
        return self.history.now() - began

    async def _everything_goes_well(self, number: int) -> bool:
        async with httpx.AsyncClient(base_url=self._url, timeout=ANSWER_S, trust_env=False) as http:
            caller = Caller("probe", self.history, http)
            streams = Streams(caller)
            told: list[Operation] = []
            for door in (RestQueues(caller), SqsQueues(caller)):
                value = f"probe:{type(door).__name__}:{number}"
                told.append(await door.send(WORK, value))
                told.append(await door.send(LINE, f"{value}:line", group="probe"))
                received = await door.receive(WORK, 1, wait_s=0)
                told.append(received)
                told += [await door.settle(WORK, one, Kind.ACK) for one in received.seen]
            told.append(await streams.append(EVENTS, f"probe:{number}", "probe"))
            told.append(await streams.read(EVENTS, 0, 0))
            told.append(await streams.standing(EVENTS, READERS))
            ready = await http.get("/readyz")
            return ready.is_success and all(one.outcome is Outcome.OK for one in told)

    async def drain(self) -> None:
        """Empty every queue, read every record, bring the group to the end, and write down what is left."""
        caller = await self._caller("drain")
        queues, streams = RestQueues(caller), Streams(caller)
        await asyncio.gather(*(self._empty(caller, queues, name) for name in QUEUES))
        for name in QUEUES:
            await self._list_dead_letters(caller, name)
        ends = [await self._read_all(streams, shard) for shard in range(SHARDS)]
        await self._read_group_to(streams, ends)

    async def _empty(self, caller: Caller, door: QueueDoor, queue: str) -> None:
        """Until the counts say that nothing waits; the last counts are in the history."""
        give_up_at = self.history.now() + DRAIN_S
        settle = Kind.NACK if queue == FRAGILE else Kind.ACK
        while True:
            received = await door.receive(queue, 10, wait_s=0)
            for delivery in received.seen:
                assert isinstance(delivery, Delivery)
                await door.settle(queue, delivery, settle)
            counts = (await caller.http.get(f"/v1/queues/{queue}/stats")).raise_for_status().json()
            if not any(counts[name] for name in STAYING) or self.history.now() > give_up_at:
                break
            if not received.seen:
                await asyncio.sleep(5 * PAUSE_S)
        numbers = {name: count for name, count in counts.items() if isinstance(count, int)}
        self._note(Kind.STATS, queue, counts=numbers)

    async def _list_dead_letters(self, caller: Caller, queue: str) -> None:
        cursor: str | None = ""
        seen: list[Seen] = []
        while cursor is not None:
            query: dict[str, Any] = {"limit": PAGE, **({"cursor": cursor} if cursor else {})}
            answer = await caller.http.get(f"/v1/queues/{queue}/dead-letters", params=query)
            page = answer.raise_for_status().json()
            seen += [Seen(value=one["body"], id=one["id"]) for one in page["items"]]
            cursor = page["next_cursor"]
        self._note(Kind.DEAD_LETTERS, queue, seen=tuple(seen))

    def _note(
        self,
        kind: Kind,
        log: str,
        *,
        seen: tuple[Seen, ...] = (),
        counts: dict[str, int] | None = None,
    ) -> None:
        now = self.history.now()
        self.history.add(
            Operation(
                client="drain",
                kind=kind,
                log=log,
                invoked=now,
                ended=now,
                outcome=Outcome.OK,
                seen=seen,
                counts=counts or {},
            )
        )

    async def _read_all(self, streams: Streams, shard: int) -> int:
        """Read a shard from its start; its next offset."""
        offset = 0
        while True:
            read = await streams.read(EVENTS, shard, offset)
            assert read.outcome is Outcome.OK, f"the drain was answered {read.status} {read.code}"
            if not read.seen:
                return offset
            offset = read.seen[-1].offset + 1

    async def _read_group_to(self, streams: Streams, ends: list[int]) -> None:
        """Until the group stands at the end of every shard, or the time is over."""
        give_up_at = self.history.now() + DRAIN_S
        while self.history.now() < give_up_at:
            _, token = await streams.read_as(EVENTS, READERS)
            if token:
                await streams.commit(EVENTS, READERS, token)
            standing = await streams.standing(EVENTS, READERS)
            if {one.shard: one.offset for one in standing.seen} == dict(enumerate(ends)):
                return


async def _insist(http: httpx.AsyncClient, method: str, path: str, body: Any) -> None:
    (await http.request(method, path, json=body)).raise_for_status()
