"""Shared state of a run's clients: URL, history, seed, and whether the run is over."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import Any, Protocol, Self

import httpx

from tests.chaos.callers import ANSWER_S, Caller
from tests.chaos.history import History, Kind, Operation, Outcome, Seen
from tests.chaos.kinesis_protocol import Kinesis, boto3_client

PAUSE_S = 0.02
RESHARD_S = 4.0
BOTO_THREADS = 6

WORK, LINE, FRAGILE, DOOMED, MORGUE = "work", "line.fifo", "fragile", "doomed", "morgue"
EVENTS, READERS = "events", "readers"
POSTED, POSTED_LINE, POSTING = "posted", "posted.fifo", "posting"
INBOX, INBOX_EVENTS = "inbox", "inbox.events"
NOTICES, ROUTED, REMADE = "notices", "routed", "remade"
QUOTES = "quotes"
LEDGER = "ledger"
SHARDS, SHARDS_MIN, SHARDS_MAX = 3, 2, 6
VISIBILITY_S = 2.0
RECEIVES_MAX = 2
SESSION_S = 6.0  # above the five seconds below which an outage is not noticed

QUEUES: dict[str, dict[str, Any]] = {
    WORK: {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None},
    LINE: {"type": "fifo", "visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None},
    INBOX: {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None},
    FRAGILE: {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": 2},
    MORGUE: {"visibility_timeout_seconds": VISIBILITY_S, "attempts_max": None},
    DOOMED: {
        "visibility_timeout_seconds": VISIBILITY_S,
        "attempts_max": None,
        "dead_letters": {"queue": MORGUE, "receives_max": RECEIVES_MAX},
    },
}
"""Queues in the order of creation; they are emptied in reverse."""

POSTED_QUEUES: dict[str, dict[str, Any]] = {
    POSTED: {"attempts_max": None},
    POSTED_LINE: {"type": "fifo", "attempts_max": None},
}
"""Queues that only a webhook receives from."""


class ClientContext(Protocol):
    """The part of `Stage` that clients need who can run elsewhere too: in `tests.simulator`."""

    @property
    def history(self) -> History: ...

    @property
    def goes_on(self) -> bool: ...

    async def pause(self, chance: Random, seconds: float = PAUSE_S) -> None: ...

    async def insist(self, ask: Callable[[], Awaitable[Operation]]) -> Operation: ...


class Stage:
    """Shared state and helpers of the clients."""

    def __init__(self, url: str, history: History, seed: int, pace: float = 1.0) -> None:
        """Prepare them. `pace`: factor of the pauses of all clients."""
        self._pace = pace
        self.url = url
        self.history = history
        self.over = asyncio.Event()
        self._threads = ThreadPoolExecutor(BOTO_THREADS, "boto3")
        self._boto3 = boto3_client(url)
        self.reshard_s = RESHARD_S
        self._seed = seed
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._open.__aenter__()
        self._open.callback(self._threads.shutdown)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self._open.aclose()

    @property
    def goes_on(self) -> bool:
        """Return whether clients should continue."""
        return not self.over.is_set()

    def chance(self, name: str) -> Random:
        """The random generator of a client."""
        return Random(f"{self._seed} {name}")

    async def caller(self, name: str) -> Caller:
        """Create a client with its own connections."""
        http = httpx.AsyncClient(base_url=self.url, timeout=ANSWER_S, trust_env=False)
        return Caller(name, self.history, await self._open.enter_async_context(http))

    def kinesis(self, caller: Caller) -> Kinesis:
        """Return the Kinesis protocol of a client."""
        return Kinesis(caller, self._boto3, self._threads)

    async def pause(self, chance: Random, seconds: float = PAUSE_S) -> None:
        """Sleep for about this long."""
        await asyncio.sleep(chance.uniform(0.5, 1.5) * seconds * self._pace)

    async def insist(self, ask: Callable[[], Awaitable[Operation]]) -> Operation:
        """Repeat until accepted, or the run is over."""
        while True:
            done = await ask()
            if done.outcome is Outcome.OK or not self.goes_on:
                return done
            await asyncio.sleep(5 * PAUSE_S)

    def note(
        self,
        client: str,
        kind: Kind,
        log: str,
        *,
        seen: tuple[Seen, ...] = (),
        counts: dict[str, int] | None = None,
        target: str = "",
        outcome: Outcome = Outcome.OK,
    ) -> None:
        """Record a fact that was determined without a call that could fail."""
        now = self.history.now()
        self.history.add(
            Operation(
                client=client,
                kind=kind,
                log=log,
                invoked=now,
                ended=now,
                outcome=outcome,
                seen=seen,
                counts=counts or {},
                target=target,
            )
        )
