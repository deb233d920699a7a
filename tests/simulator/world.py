"""A simulated deployment: two stores, several processes, and clients whose calls are recorded."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, nullcontext
from random import Random
from typing import Any, TypeVar

from storage.access.secret_box import new_key
from storage.bootstrap import Storage, Stores, open_storage
from storage.domain.errors import ErrorCode, MillstreamError, OutcomeUnknown
from storage.domain.limits import Limits
from storage.settings import StorageSettings
from tests.chaos.history import History, Kind, Operation, Outcome
from tests.chaos.stage import PAUSE_S
from tests.simulator.clock import VirtualClock
from tests.simulator.database import Postgres, SimulatedDatabase, SimulatedListener
from tests.simulator.hot_store.connection import SimulatedNodes
from tests.simulator.hot_store.server import SimulatedServer

PROCESSES = 2
ANSWER_S = 8.0
RETRY_S = 0.2
_PAUSE_S = 0.15
LIMITS = Limits(
    reservation_offsets_min=20, reservation_ms=0
)  # small, so that schedules reach the ceilings
_SETTINGS = StorageSettings(
    redis_url="redis://simulated",
    database_url="postgresql://simulated/simulated",
    secret_keys=(new_key(),),
)
_TABLES = (
    "leases",
    "sources",
    "moves",
    "groups",
    "log_holes",
    "shards",
    "streams",
    "queue_partitions",
    "queues",
    "logs",
)
_EMPTY = "; ".join(
    (
        *(f"DELETE FROM {table}" for table in _TABLES),
        "UPDATE attendance SET seen_ms = 0, back_since_ms = 0",
    )
)

T = TypeVar("T")


class VirtualHistory(History):
    """A history in virtual time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()


class Process:
    """One process of the service, which can be killed and started again."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._open = AsyncExitStack()
        self._calls: dict[asyncio.Task[Any], None] = {}
        self._connections: tuple[SimulatedDatabase | SimulatedNodes, ...] = ()
        self._storage: Storage | None = None

    @property
    def is_up(self) -> bool:
        return self._storage is not None

    async def start(self) -> None:
        """Open the engines, retrying while a store is away."""
        while self._storage is None:
            stores = self._connect()
            opened = open_storage(_SETTINGS, clock=self._world.clock, limits=LIMITS, stores=stores)
            try:
                self._storage = await self._open.enter_async_context(opened)
            except MillstreamError:
                await asyncio.sleep(0.1)

    def _connect(self) -> Stores:
        world, nodes = self._world, SimulatedNodes(self._world.hot)
        database = SimulatedDatabase(
            world.postgres, world.chance, lambda: world.chance.random() < world.commits_fail
        )
        self._connections = database, nodes
        return Stores(
            database=lambda _: nullcontext(database),
            listener=lambda _: SimulatedListener(world.postgres, world.chance),
            nodes=lambda _: nodes,
        )

    async def call(self, verb: Callable[[Storage], Awaitable[T]]) -> T:
        """Call a verb of the engines. Raises Killed if the process is killed meanwhile."""
        storage = self._storage
        assert storage is not None
        task = asyncio.ensure_future(verb(storage))
        self._calls[task] = None
        try:
            return await task
        except (Exception, asyncio.CancelledError):
            if _is_cancelled() or self._storage is storage:
                raise
            raise Killed from None
        finally:
            del self._calls[task]

    async def kill(self) -> None:
        """End it as SIGKILL does: its calls have no answer, and nothing it still does has an effect.

        What it has sent before arrives.
        """
        for connections in self._connections:
            connections.cut_off()
        for task in self._calls:
            task.cancel()
        await self.stop()

    async def stop(self) -> None:
        self._storage = None
        await self._open.aclose()
        self._open = AsyncExitStack()


class Killed(Exception):
    """The process was killed during the call, which has no answer."""


class World:
    """Everything that a schedule runs in. All chance comes from its seed."""

    def __init__(self, postgres: Postgres, seed: int) -> None:
        random.seed(seed)  # for the jitter and the shard choices of the product
        self.chance = Random(seed)
        self.seed = seed
        self.postgres = postgres
        self.clock = VirtualClock()
        self.hot = SimulatedServer(self.chance)
        self.history = VirtualHistory()
        self.commits_fail = 0.0
        self.goes_on = True
        """False as soon as the clients should come to their ends."""
        self.waits_for = "the clients"
        """Condition that the schedule waits for, for the report when it never holds."""
        self._processes: list[Process] = []

    async def __aenter__(self) -> "World":
        self.postgres.run(_EMPTY)
        self._processes = [Process(self) for _ in range(PROCESSES)]
        for process in self._processes:
            await process.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            await process.stop()

    async def process(self) -> Process:
        """Return a process that is up, waiting for one if need be."""
        up = [process for process in self._processes if process.is_up]
        if up:
            return self.chance.choice(up)
        await asyncio.sleep(RETRY_S)
        return await self.process()

    async def pause(self, chance: Random, seconds: float = PAUSE_S) -> None:
        """Sleep longer than in a chaos run: operations cost real time, and waiting does not."""
        await asyncio.sleep(chance.uniform(0.0, 2.0) * (seconds + _PAUSE_S))

    async def insist(self, ask: Callable[[], Awaitable[Operation]]) -> Operation:
        """Repeat until accepted, or the run is over."""
        while True:
            done = await ask()
            if done.outcome is Outcome.OK or not self.goes_on:
                return done
            await asyncio.sleep(RETRY_S)

    async def restart_process(self) -> None:
        """Kill a process and start it again."""
        process = self.chance.choice(self._processes)
        if process.is_up:
            await process.kill()
            await asyncio.sleep(self.chance.random())
            await process.start()


Client = Callable[[World, str], Coroutine[Any, Any, None]]
Read = Callable[[Any], dict[str, Any]]


class SimulatedCaller:
    """One client: its calls go to any process, and are recorded with their outcomes."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.chance = Random(f"{world.seed} {name}")

    async def call(
        self,
        kind: Kind,
        log: str,
        verb: Callable[[Storage], Awaitable[Any]],
        read: Read,
        **about: Any,
    ) -> Operation:
        """Call a verb of the engines and record what came of it.

        `read` returns the fields of the operation that the answer gives.
        """
        process = await self.world.process()
        invoked = self.world.history.now()
        outcome, code, fields = Outcome.UNKNOWN, "", dict[str, Any]()
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await process.call(verb)
        except OutcomeUnknown as error:
            code = error.code.value
        except MillstreamError as error:
            outcome, code = Outcome.FAIL, error.code.value
        except (TimeoutError, Killed):
            pass
        else:
            outcome, fields = Outcome.OK, read(answer)
            if (error_code := fields.pop("error", None)) is not None:
                is_unknown = error_code is ErrorCode.STORAGE_TIMEOUT
                outcome, code = (
                    Outcome.UNKNOWN if is_unknown else Outcome.FAIL,
                    error_code.value,
                )
        operation = Operation(
            client=self.name,
            kind=kind,
            log=log,
            invoked=invoked,
            ended=self.world.history.now(),
            outcome=outcome,
            code=code,
            **{**about, **fields},
        )
        self.world.history.add(operation)
        return operation

    async def attempt(self, verb: Callable[[Storage], Awaitable[T]]) -> T | None:
        """Call a verb whose outcome no invariant needs; None if it failed."""
        process = await self.world.process()
        try:
            async with asyncio.timeout(ANSWER_S):
                return await process.call(verb)
        except (MillstreamError, TimeoutError, Killed):
            return None

    async def insist(self, verb: Callable[[Storage], Awaitable[T]]) -> T:
        """Call a verb until it succeeds."""
        while True:
            result = await self.attempt(verb)
            if result is not None:
                return result
            await self.pause(RETRY_S)

    def note(
        self, kind: Kind, log: str, *, invoked: float | None = None, **about: Any
    ) -> Operation:
        """Record a fact that is true now."""
        now = self.world.history.now()
        operation = Operation(
            client=self.name,
            kind=kind,
            log=log,
            invoked=now if invoked is None else invoked,
            ended=now,
            outcome=Outcome.OK,
            **about,
        )
        self.world.history.add(operation)
        return operation

    async def pause(self, seconds: float) -> None:
        """Wait for up to twice this time."""
        await asyncio.sleep(2 * seconds * self.chance.random())


def _is_cancelled() -> bool:
    """Return whether this client is ended; otherwise the process that it called was killed."""
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())
