"""Replica of definitions: what is read when, and what stands in an outage."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec import Struct

from storage.catalog.definition_replica import DefinitionReplica
from storage.domain import limits
from storage.domain.clock import ManualClock
from storage.domain.errors import QueueNotFound, StorageUnavailable


class Definition(Struct, frozen=True):
    """A definition of nothing else than its name and version."""

    name: str
    version: int
    spec: None = None
    created_at_ms: int = 0
    changed_at_ms: int = 0


class Source:
    """Definitions by name, and the reads of them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.stored = {"a": Definition("a", 1), "b": Definition("b", 1)}
        self.reads: list[str] = []
        self.is_down = False
        self.is_notified = True
        self.replica = DefinitionReplica[str, Definition](
            self.read_all, self.read, lambda: self.is_notified, self.clock
        )

    async def read_all(self) -> AsyncIterator[Definition]:
        self.reads.append("*")
        await asyncio.sleep(0)
        for definition in list(self.stored.values()):
            if self.is_down:
                raise StorageUnavailable
            yield definition

    async def read(self, name: str) -> Definition:
        self.reads.append(name)
        if self.is_down:
            raise StorageUnavailable
        if name not in self.stored:
            raise QueueNotFound
        return self.stored[name]

    def put(self, name: str, version: int) -> None:
        self.stored[name] = Definition(name, version)
        self.replica.note_change(name)


@pytest.fixture
def source() -> Source:
    return Source()


async def test_definitions_are_read_whole_once(source):
    await source.replica.get()

    assert await source.replica.get() == source.stored
    assert source.reads == ["*"]


async def test_concurrent_callers_wait_for_the_first_read(source):
    first, second = await asyncio.gather(source.replica.get(), source.replica.get())

    assert first == second == source.stored
    assert source.reads == ["*"]


async def test_changed_definition_is_read_again_alone(source):
    await source.replica.get()
    source.put("b", 2)
    source.put("c", 1)
    del source.stored["a"]
    source.replica.note_change("a")

    assert await source.replica.get() == {"b": Definition("b", 2), "c": Definition("c", 1)}
    assert sorted(source.reads) == ["*", "a", "b", "c"]


@pytest.mark.parametrize("because", ["loss", "age", "clock set back", "many changes"])
async def test_definitions_are_read_whole_again(source, because):
    await source.replica.get()
    source.stored["c"] = Definition("c", 1)
    match because:
        case "loss":
            source.replica.note_change(None)
        case "age":
            source.clock.advance(limits.DEFINITION_REPLICA_AGE_MS_MAX)
        case "clock set back":
            source.clock.advance(-1)
        case _:
            for number in range(limits.DEFINITION_CHANGES_MAX + 1):
                source.replica.note_change(f"changed-{number}")

    assert await source.replica.get() == source.stored
    assert source.reads == ["*", "*"]


async def test_last_state_stands_in_outage_and_is_corrected_after_it(source):
    await source.replica.get()
    source.is_down = True
    source.put("b", 2)
    assert (await source.replica.get())["b"] == Definition("b", 1)
    source.replica.note_change(None)
    assert (await source.replica.get())["b"] == Definition("b", 1)

    source.is_down = False

    assert await source.replica.get() == source.stored


async def test_outage_before_first_read_is_raised(source):
    source.is_down = True

    with pytest.raises(StorageUnavailable):
        await source.replica.get()


async def test_change_during_whole_read_is_not_lost(source):
    replica = source.replica
    read_all = source.read_all

    async def changing() -> AsyncIterator[Definition]:
        async for definition in read_all():
            yield definition
            source.put("a", 2)

    replica._read_all = changing
    await replica.get()

    assert (await replica.get())["a"] == Definition("a", 2)


async def test_read_while_no_announcement_can_arrive_is_repeated(source):
    """A change that was made before the connection for announcements was back was missed for minutes."""
    source.is_notified = False
    await source.replica.get()
    source.stored["a"] = Definition("a", 2)
    source.is_notified = True

    assert (await source.replica.get())["a"].version == 2
    assert (await source.replica.get())["a"].version == 2
    assert source.reads == ["*", "*"]
