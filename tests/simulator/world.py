"""A simulated deployment: two stores, several processes, and clients whose calls are recorded."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any, TypeVar

from storage.access.secret_box import new_key
from storage.bootstrap import Storage, Stores, open_storage
from storage.domain.errors import ErrorCode, MillstreamError, OutcomeUnknown
from storage.domain.limits import Limits
from storage.settings import StorageSettings
from tests.chaos.history import History, Kind, Operation, Outcome
from tests.simulator.clock import VirtualClock
from tests.simulator.database import Postgres, SimulatedDatabase, SimulatedListener
from tests.simulator.hot_server import HotServer, SimulatedNodes

PROCESSES = 2
ANSWER_S = 8.0
RETRY_S = 0.2
LIMITS = Limits(reservation_offsets_min=20)  # small, so that schedules reach the ceilings
_SETTINGS = StorageSettings(
    redis_url="redis://simulated",
    database_url="postgresql://simulated/simulated",
    secret_keys=(new_key(),),
)
_TABLES = ("sources", "moves", "groups", "log_holes", "shards", "streams", "queues", "logs")
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
        self._nodes: SimulatedNodes | None = None
        self.storage: Storage | None = None

    async def start(self) -> None:
        """Open the engines, retrying while a store is away."""
        world = self._world

        def nodes(_: str) -> SimulatedNodes:
            self._nodes = SimulatedNodes(world.hot)
            return self._nodes

        stores = Stores(
            database=lambda _: world.database(),
            listener=lambda _: SimulatedListener(world.postgres, world.chance),
            nodes=nodes,
        )
        while self.storage is None:
            try:
                opened = open_storage(_SETTINGS, clock=world.clock, limits=LIMITS, stores=stores)
                self.storage = await self._open.enter_async_context(opened)
            except MillstreamError:
                await asyncio.sleep(0.1)

    async def kill(self) -> None:
        """End it as SIGKILL does: its calls have no answer, and nothing it still does has an effect."""
        storage, self.storage = self.storage, None
        if storage is None:
            return
        if self._nodes is not None:
            self._nodes.cut_off()
        await self.stop()

    async def stop(self) -> None:
        self.storage = None
        await self._open.aclose()
        self._open = AsyncExitStack()


class World:
    """Everything that a schedule runs in. All chance comes from its seed."""

    def __init__(self, postgres: Postgres, seed: int) -> None:
        random.seed(seed)  # for the jitter and the shard choices of the product
        self.chance = Random(seed)
        self.seed = seed
        self.postgres = postgres
        self.clock = VirtualClock()
        self.hot = HotServer(self.chance)
        self.history = VirtualHistory()
        self.commits_fail = 0.0
        self.over = False
        self._processes: list[Process] = []

    @asynccontextmanager
    async def database(self) -> AsyncGenerator[SimulatedDatabase]:
        yield SimulatedDatabase(
            self.postgres, self.clock, lambda: self.chance.random() < self.commits_fail
        )

    async def __aenter__(self) -> "World":
        self.postgres.run(_EMPTY)
        self._processes = [Process(self) for _ in range(PROCESSES)]
        for process in self._processes:
            await process.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            await process.stop()

    async def storage(self) -> Storage:
        """Return the engines of a process that is up, waiting for one if need be."""
        up = [one.storage for one in self._processes if one.storage is not None]
        if up:
            return self.chance.choice(up)
        await asyncio.sleep(RETRY_S)
        return await self.storage()

    async def restart_process(self) -> None:
        """Kill a process and start it again."""
        process = self.chance.choice(self._processes)
        if process.storage is not None:
            await process.kill()
            await asyncio.sleep(self.chance.random())
            await process.start()


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
        storage = await self.world.storage()
        invoked = self.world.history.now()
        outcome, code, fields = Outcome.UNKNOWN, "", dict[str, Any]()
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await verb(storage)
        except OutcomeUnknown as error:
            code = error.code.value
        except MillstreamError as error:
            outcome, code = Outcome.FAIL, error.code.value
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
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
        storage = await self.world.storage()
        try:
            async with asyncio.timeout(ANSWER_S):
                return await verb(storage)
        except (MillstreamError, TimeoutError):
            return None
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
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
