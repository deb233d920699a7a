"""Clients of the recreated stream: its writer, and readers that run until they have its last records."""

import asyncio
from collections import Counter

from tests.chaos.callers import Caller
from tests.chaos.drain import LOOK_S, Patience
from tests.chaos.recreation.push_readers import EventReader, SocketReader
from tests.chaos.recreation.readers import CursorReader, Member, Place, RecreatedReader, ShardReader
from tests.chaos.recreation.stream import STREAM, Writer, delete_stream
from tests.chaos.stage import PAUSE_S, Stage

WRITES_S = 5 * PAUSE_S
READS_S = 10 * PAUSE_S
LAST_RECORDS = 6
LAST_WRITES_S = 60.0


class RecreationClients:
    """The writer and the readers of the stream, and the fault that deletes it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._readers: list[RecreatedReader] = []
        self._members: list[Member] = []

    async def start(self) -> None:
        """Start to write and to read."""
        self._operator = await self._caller("operator")
        self._writer = Writer(await self._caller("writer"), self._stage.chance(f"{STREAM}-writer"))
        self._writing = asyncio.create_task(self._write())
        chance, url = self._stage.chance, self._stage.url
        socket = SocketReader(await self._caller("socket"), url, chance(f"{STREAM}-socket"))
        self._readers = [
            socket,
            EventReader(await self._caller("events"), chance(f"{STREAM}-events")),
            CursorReader(await self._caller("cursor")),
            ShardReader(await self._caller("shards")),
        ]
        self._members = [Member(await self._caller(f"member-{copy}")) for copy in range(2)]
        self._tasks = [
            asyncio.create_task(socket.session.keep(self._over)),
            *(asyncio.create_task(self._read(reader)) for reader in self._readers),
            *(asyncio.create_task(self._read(member)) for member in self._members),
        ]

    async def _caller(self, name: str) -> Caller:
        return await self._stage.caller(f"{STREAM}-{name}")

    async def _write(self) -> None:
        while self._stage.goes_on:
            await self._writer.write()
            await asyncio.sleep(WRITES_S)

    async def _read(self, reader: RecreatedReader) -> None:
        while not self._over.is_set():
            await reader.read()
            await asyncio.sleep(READS_S)

    async def delete(self) -> None:
        """Delete the stream; the writer recreates it."""
        await delete_stream(self._operator)

    async def write_last(self) -> None:
        """Append the last records, after all clients have stopped to write."""
        await self._writing
        accepted = 0
        async with asyncio.timeout(LAST_WRITES_S):
            while accepted < LAST_RECORDS:
                accepted += await self._writer.write()

    async def read_to_the_end(self) -> None:
        """Read the last stream, wait until every reader has, or makes no progress, and stop."""
        ends = await self._ends()
        patience = Patience(self._stage.history.now)
        while patience.lasts(self._progress()):
            if self._is_at(ends):
                break
            await asyncio.sleep(LOOK_S)
        await self.stop()

    async def _ends(self) -> dict[Place, int]:
        """Read the last stream from its start; return the ends of its shards."""
        drain = ShardReader(await self._caller("drain"))
        reached: dict[Place, int] | None = None
        while reached != drain.track.reached:
            reached = dict(drain.track.reached)
            await drain.read()
        return reached or {}

    def _is_at(self, ends: dict[Place, int]) -> bool:
        """Return whether each reader, and the members together, have reached these offsets."""
        return all(
            reached.get(place, 0) >= end
            for reached in (*(reader.track.reached for reader in self._readers), self._of_group())
            for place, end in ends.items()
        )

    def _of_group(self) -> dict[Place, int]:
        reached: Counter[Place] = Counter()
        for member in self._members:
            reached |= Counter(member.track.reached)
        return reached

    def _progress(self) -> int:
        tracks = [reader.track for reader in (*self._readers, *self._members)]
        return sum(sum(track.reached.values()) for track in tracks)

    async def stop(self) -> None:
        """Stop reading, and raise what a client raised."""
        self._over.set()
        await asyncio.gather(*self._tasks)

    async def cancel(self) -> None:
        """Cancel what still runs."""
        self._over.set()
        tasks = [self._writing, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
