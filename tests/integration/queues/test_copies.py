"""Copies of queues: whatever happens to a queue's messages, its copy becomes the same."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import redis.asyncio

from consumers.mirrors.queue_copier import CopyRefused, CopySuperseded, QueueCopier
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.clock import ManualClock
from storage.domain.errors import BacklogFull, FenceMismatch, MessageInFlight, MessageNotFound
from storage.domain.names import QueueName
from storage.domain.queues.copies import QueueChanges, QueueContentsPage
from storage.domain.queues.message import NewMessage, SettleAction, Settlement, WhichDead
from storage.domain.queues.policies import Overflow
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec, QueueType
from storage.redis.keys import key
from tests.conditions import eventually
from tests.queue_operations import receive, send

ORIGIN, COPY = QueueName("origin"), QueueName("copy")
STEPS = 120
GROUPS = ("", "a", "b", "c")


class SameDeployment:
    """Origin in the same deployment; `position` replaces that of the next call."""

    def __init__(self, storage: Storage) -> None:
        self._copies = storage.queue_copies
        self.position: str | None = None

    async def changes(
        self, queue: str, position: str, *, partition: int, next_offset: int, wait_ms: int
    ) -> QueueChanges:
        replaced, self.position = self.position, None
        return await self._copies.changes(
            QueueName(queue),
            position if replaced is None else replaced,
            partition=partition,
            next_offset=next_offset,
            wait_ms=wait_ms,
        )

    async def contents(
        self, queue: str, *, partition: int, after: int, dead: bool
    ) -> QueueContentsPage:
        return await self._copies.contents(
            QueueName(queue), partition=partition, after=after, dead=dead
        )


@pytest.fixture
def origin(engines) -> SameDeployment:
    return SameDeployment(engines)


@pytest.fixture
def copier(engines, origin) -> Callable[[], Awaitable[QueueCopier]]:
    async def begin() -> QueueCopier:
        one = QueueCopier(ORIGIN.name, COPY, origin, engines.queue_copies)
        await one.begin()
        return one

    return begin


async def create(engines: Storage, **spec: Any) -> None:
    for name in (ORIGIN, COPY):
        await engines.catalog.put_queue(name, QueueSpec(attempts_max=3, **spec))


async def contents(engines: Storage, name: QueueName) -> list[tuple[Any, ...]]:
    """Return messages and dead letters by id; delays of messages of a group do not count."""
    live, _ = await engines.inspector.browse(name, messages_max=limits.BROWSE_SCANNED_MAX)
    dead, _ = await engines.dead_letters.browse(name, messages_max=limits.BROWSE_SCANNED_MAX)
    rows: list[tuple[Any, ...]] = [
        (
            message.message_id,
            message.body,
            message.group,
            message.due_at_ms if message.state == "delayed" and not message.group else None,
            (message.failures, message.crash_count),
        )
        for message in live
    ]
    rows += [
        (
            letter.message_id,
            letter.body,
            letter.group,
            letter.died_at_ms,
            letter.reason,
            letter.failures,
        )
        for letter in dead
    ]
    return sorted(rows, key=lambda row: row[0])


async def mapped(engines: Storage, redis_url: str) -> int:
    """Return how many messages of the origin the copy remembers."""
    log_id = (await engines.catalog.queue(COPY)).log_id
    async with redis.asyncio.from_url(redis_url) as client:
        keys = [key("default", log_id, part) for part in ("copies", "dead_copies")]
        return sum([await client.zcard(one) for one in keys])


class Owner:
    """Random owner, producers and consumers of the origin."""

    def __init__(self, engines: Storage, clock: ManualClock, seed: int, fifo: bool) -> None:
        self._engines = engines
        self._clock = clock
        self._random = random.Random(seed)
        self._fifo = fifo
        self._handles: list[str] = []
        self._sent = 0

    async def act(self) -> None:
        acts = [self._send, self._send, self._receive, self._receive, self._settle, self._settle]
        acts += [self._advance, self._own, self._own]
        if self._random.random() < 0.02:
            acts = [self._purge]
        with suppress(MessageNotFound, MessageInFlight):
            await self._random.choice(acts)()

    async def _send(self) -> None:
        group = self._random.choice(GROUPS[1:] if self._fifo else GROUPS)
        messages = []
        for _ in range(self._random.randint(1, 4)):
            self._sent += 1
            options: dict[str, Any] = {"group": group}
            if not self._fifo:
                options["delay_ms"] = self._random.choice([None, None, 20_000])
                options["priority"] = 0 if group else self._random.choice([0, 0, 3])
            else:
                options["dedup_id"] = f"d{self._sent}"
            if self._random.random() < 0.2:
                options["ttl_ms"] = 90_000
            messages.append(NewMessage(b"m%d" % self._sent, **options))
        await self._engines.queues.send(ORIGIN, messages)

    async def _receive(self) -> None:
        received = await self._engines.queues.receive(
            ORIGIN, messages_max=self._random.randint(1, 4), visibility_timeout_ms=30_000
        )
        self._handles += [message.receipt_handle for message in received]

    async def _settle(self) -> None:
        if not self._handles:
            return
        handle = self._handles.pop(self._random.randrange(len(self._handles)))
        action = self._random.choice(
            [SettleAction.ACK, SettleAction.ACK, SettleAction.NACK, SettleAction.REJECT]
        )
        reason = "" if action is SettleAction.ACK else "no"
        await self._engines.queues.settle(ORIGIN, [Settlement(handle, action, reason=reason)])

    async def _advance(self) -> None:
        self._clock.advance(self._random.choice([1_000, 15_000, 40_000]))
        await self._engines.queues.sweep(ORIGIN)

    async def _purge(self) -> None:
        await self._engines.queues.purge(ORIGIN)

    async def _own(self) -> None:
        """Do to a random message or dead letter what an owner may do."""
        inspector, dead_letters = self._engines.inspector, self._engines.dead_letters
        letters, _ = await dead_letters.browse(ORIGIN)
        if letters and self._random.random() < 0.5:
            if self._random.random() < 0.5:
                await dead_letters.redrive(ORIGIN, WhichDead())
            else:
                await inspector.drop(ORIGIN, self._random.choice(letters).message_id)
            return
        live, _ = await inspector.browse(ORIGIN)
        if not live:
            return
        reference = self._random.choice(live).message_id
        choice = self._random.randrange(3)
        if choice == 0:
            await inspector.drop(ORIGIN, reference)
        elif choice == 1:
            await inspector.replace(ORIGIN, reference, b"edited", "text/plain")
        elif not self._fifo:
            await inspector.change(ORIGIN, reference, delay_ms=25_000, priority=None)


@pytest.mark.parametrize("fifo", [False, True], ids=["standard", "fifo"])
@pytest.mark.parametrize("seed", range(4))
async def test_copy_becomes_what_the_queue_is(
    engines, redis_url, clock, copier, origin, seed, fifo
):
    await create(engines, type=QueueType.FIFO if fifo else QueueType.STANDARD)
    owner, chance = Owner(engines, clock, seed, fifo), random.Random(seed)
    for _ in range(STEPS // 4):
        await owner.act()
    copy = await copier()
    for _ in range(STEPS):
        await owner.act()
        if chance.random() < 0.3:
            await copy.copy(0)
        if chance.random() < 0.05:
            copy = await copier()  # another process
        if chance.random() < 0.05:
            origin.position = chance.choice(["", "0-0", "1-999999999"])  # changes are missing
    await copy.copy(0)
    await copy.copy(0)

    copied = await contents(engines, COPY)
    assert copied == await contents(engines, ORIGIN)
    assert await mapped(engines, redis_url) == len(copied)


async def test_purge_reaches_the_copy_and_spares_dead_letters(engines, copier):
    await create(engines)
    await send(engines.queues, ORIGIN, b"dead", b"purged", b"purged, too")
    [message] = await engines.queues.receive(ORIGIN)
    verdict = Settlement(message.receipt_handle, SettleAction.REJECT, reason="no")
    await engines.queues.settle(ORIGIN, [verdict])
    copy = await copier()
    await copy.copy(0)
    await engines.queues.purge(ORIGIN)
    await send(engines.queues, ORIGIN, b"later")
    await copy.copy(0)

    assert [body for _, body, *_ in await contents(engines, COPY)] == [b"dead", b"later"]


async def test_dropped_message_leaves_the_copy(engines, copier):
    await create(engines, messages_max=2, overflow=Overflow.DROP_OLDEST)
    await send(engines.queues, ORIGIN, b"one", b"two")
    copy = await copier()
    await copy.copy(0)
    await send(engines.queues, ORIGIN, b"three")
    await copy.copy(0)

    assert [body for _, body, *_ in await contents(engines, COPY)] == [b"two", b"three"]


async def test_message_that_moved_to_its_dead_letter_queue_leaves_the_copy(engines, copier):
    await engines.catalog.put_queue(QueueName("dead"), QueueSpec())
    await create(engines, dead_letters=DeadLetterTarget("dead", receives_max=1))
    await send(engines.queues, ORIGIN, b"one", b"two")
    copy = await copier()
    await copy.copy(0)
    [message] = await engines.queues.receive(ORIGIN)
    release = Settlement(message.receipt_handle, SettleAction.RELEASE)
    await engines.queues.settle(ORIGIN, [release])
    assert await receive(engines.queues, ORIGIN) == [b"two"]
    await copy.copy(0)

    assert [body for _, body, *_ in await contents(engines, COPY)] == [b"two"]


async def test_ended_copy_delivers_what_was_not_acknowledged_in_order(engines, clock, copier):
    await create(engines, type=QueueType.FIFO)
    await send(engines.queues, ORIGIN, b"a1", b"a2", b"a3", group="a")
    await send(engines.queues, ORIGIN, b"b1", b"b2", group="b")
    copy = await copier()
    await copy.copy(0)
    [first] = await engines.queues.receive(ORIGIN)
    await engines.queues.settle(ORIGIN, [Settlement(first.receipt_handle, SettleAction.ACK)])
    await engines.queues.receive(ORIGIN)  # in flight
    await copy.copy(0)

    while_copied = await engines.queues.receive(COPY)
    assert await engines.queue_copies.end(COPY)
    received = await engines.queues.receive(COPY, messages_max=10)

    assert while_copied == []
    assert sorted(one.body for one in received if one.group == "a") == [b"a2", b"a3"]
    assert [one.body for one in received if one.group == "a"] == [b"a2", b"a3"]
    assert [one.body for one in received if one.group == "b"] == [b"b1", b"b2"]
    assert not await engines.queue_copies.end(COPY)


async def test_copy_takes_no_messages_and_an_older_copier_changes_nothing(engines, copier):
    await create(engines)
    await send(engines.queues, ORIGIN, b"one")
    older = await copier()
    newer = await copier()
    await newer.copy(0)

    with pytest.raises(CopySuperseded):
        await older.copy(0)
    with pytest.raises(FenceMismatch):
        await send(engines.queues, COPY, b"own")
    await engines.queue_copies.end(COPY)
    with pytest.raises(CopySuperseded):
        await newer.copy(0)
    await send(engines.queues, COPY, b"own")
    assert await receive(engines.queues, COPY) == [b"one", b"own"]


async def test_queue_with_messages_of_its_own_is_not_touched(engines, copier):
    await create(engines)
    await send(engines.queues, COPY, b"own")

    with pytest.raises(CopyRefused):
        await copier()

    assert await receive(engines.queues, COPY) == [b"own"]


async def test_fenced_queue_takes_and_delivers_nothing_but_settlements(engines):
    await create(engines)
    await send(engines.queues, ORIGIN, b"one", b"two")
    [message] = await engines.queues.receive(ORIGIN)
    await engines.queue_copies.set_fence(ORIGIN, "mirror")

    with pytest.raises(FenceMismatch):
        await send(engines.queues, ORIGIN, b"three")
    assert await engines.queues.receive(ORIGIN) == []
    [settled] = await engines.queues.settle(
        ORIGIN, [Settlement(message.receipt_handle, SettleAction.ACK)]
    )
    with pytest.raises(FenceMismatch):
        await engines.queue_copies.set_fence(ORIGIN, "", expected="other")
    await engines.queue_copies.set_fence(ORIGIN, "", expected="mirror")

    assert settled.error is None
    assert await receive(engines.queues, ORIGIN) == [b"two"]


async def test_way_back_replaces_what_was_moved(engines, copier, origin):
    """The origin is fenced, its copy continues, and is copied back."""
    await create(engines)
    await send(engines.queues, ORIGIN, b"one", b"two")
    copy = await copier()
    await engines.queue_copies.set_fence(ORIGIN, "mirror")
    await copy.copy(0)
    await engines.queue_copies.end(COPY)
    [message] = await engines.queues.receive(COPY)
    await engines.queues.settle(COPY, [Settlement(message.receipt_handle, SettleAction.ACK)])
    await send(engines.queues, COPY, b"three")

    back = QueueCopier(COPY.name, ORIGIN, origin, engines.queue_copies)
    await back.begin()
    await back.copy(0)

    assert await contents(engines, ORIGIN) == await contents(engines, COPY)


async def test_messages_that_were_never_copied_survive_the_way_back(engines, copier, origin):
    await create(engines)
    copy = await copier()
    await copy.copy(0)
    await engines.queue_copies.end(COPY)
    await send(engines.queues, ORIGIN, b"after")
    await engines.queue_copies.set_fence(ORIGIN, "mirror")
    await send(engines.queues, COPY, b"there")

    back = QueueCopier(COPY.name, ORIGIN, origin, engines.queue_copies)
    await back.begin()
    await back.copy(0)

    bodies = [body for _, body, *_ in await contents(engines, ORIGIN)]
    assert sorted(bodies) == [b"after", b"there"]


async def test_move_into_read_only_queue_fails_and_puts_messages_back(engines):
    await create(engines)
    dead = DeadLetterTarget(ORIGIN.name, receives_max=1)
    await engines.catalog.put_queue(QueueName("source"), QueueSpec(dead_letters=dead))
    await send(engines.queues, ORIGIN, b"one", b"two")
    await engines.queue_copies.set_fence(COPY, "mirror")

    move = await engines.moves.start(ORIGIN, COPY)
    await eventually(lambda: _state_of(engines, move.move_id), ("failed", "queue_read_only"))

    assert sorted(await receive(engines.queues, ORIGIN)) == [b"one", b"two"]


async def _state_of(engines: Storage, move_id: str) -> tuple[str, str]:
    move = await engines.moves.get(move_id)
    return str(move.state), move.failure


async def test_dead_letters_wait_for_their_read_only_queue(engines):
    dead = DeadLetterTarget(COPY.name, receives_max=1)
    await engines.catalog.put_queue(COPY, QueueSpec())
    await engines.catalog.put_queue(ORIGIN, QueueSpec(dead_letters=dead))
    await send(engines.queues, ORIGIN, b"one")
    await engines.queue_copies.set_fence(COPY, "mirror")
    [message] = await engines.queues.receive(ORIGIN)
    await engines.queues.settle(ORIGIN, [Settlement(message.receipt_handle, SettleAction.RELEASE)])
    assert await engines.queues.receive(ORIGIN) == []

    await engines.queues.sweep(ORIGIN)
    waiting = (await engines.queues.stats(ORIGIN)).moving
    await engines.queue_copies.set_fence(COPY, "")
    await engines.queues.sweep(ORIGIN)

    assert waiting == 1
    assert await receive(engines.queues, COPY) == [b"one"]


async def test_large_changed_messages_are_copied_in_several_rounds(engines, copier, monkeypatch):
    await create(engines)
    await send(engines.queues, ORIGIN, *(b"%d" % number * 100 for number in range(6)))
    copy = await copier()
    await copy.copy(0)
    received = await engines.queues.receive(ORIGIN, messages_max=6)
    verdicts = [
        Settlement(message.receipt_handle, SettleAction.REJECT, reason="no") for message in received
    ]
    await engines.queues.settle(ORIGIN, verdicts)
    monkeypatch.setattr(limits, "BROWSE_BYTES_MAX", 250)

    dead = []
    for _ in range(6):
        await copy.copy(0)
        dead.append((await engines.queues.stats(COPY)).dead_lettered)

    assert 0 < dead[0] < 6
    assert dead[-1] == 6


async def test_changes_end_without_a_reader_and_a_copy_begins_anew(engines, clock, copier):
    await create(engines)
    await send(engines.queues, ORIGIN, b"one", b"two", b"three")
    copy = await copier()
    await copy.copy(0)
    before = await engines.queue_copies.changes(ORIGIN, "")
    clock.advance(limits.COPY_CHANGES_RETENTION_MS + 1)
    await engines.queues.sweep(ORIGIN)
    [message] = await engines.queues.receive(ORIGIN)
    await engines.queues.settle(ORIGIN, [Settlement(message.receipt_handle, SettleAction.ACK)])

    after = await engines.queue_copies.changes(ORIGIN, before.position)
    await copy.copy(0)

    assert not after.complete
    assert await contents(engines, COPY) == await contents(engines, ORIGIN)


async def test_counts_of_a_copy_add_up(engines, clock, copier):
    await create(engines)
    owner = Owner(engines, clock, seed=7, fifo=False)
    copy = await copier()
    for _ in range(STEPS):
        await owner.act()
        await copy.copy(0)
    counts = await engines.queues.stats(COPY)

    states = ("ready", "delayed", "in_flight", "parked", "dead_lettered", "moving")
    ends = ("acknowledged", "expired", "purged", "dropped", "moved_out")
    assert counts.sent + counts.moved_in == sum(getattr(counts, name) for name in (*states, *ends))
    assert counts.moved_in > 20
    assert counts.bytes_held >= 0


async def test_full_store_accepts_removals_but_no_new_messages(engines, copier):
    await create(engines)
    await send(engines.queues, ORIGIN, b"one", b"two")
    copy = await copier()
    await copy.copy(0)
    [message] = await engines.queues.receive(ORIGIN)
    await engines.queues.settle(ORIGIN, [Settlement(message.receipt_handle, SettleAction.ACK)])
    await send(engines.queues, ORIGIN, b"three")
    guard = engines.memory_guard
    guard.full = guard.is_shedding = True

    with pytest.raises(BacklogFull):
        await copy.copy(0)
    bodies = [body for _, body, *_ in await contents(engines, COPY)]
    guard.full = guard.is_shedding = False
    await copy.copy(0)

    assert bodies == [b"two"]
    assert await contents(engines, COPY) == await contents(engines, ORIGIN)
