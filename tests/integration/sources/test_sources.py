"""Engine of sources: outbox, expiry of tokens, repeated transfers, deletion, lost secrets."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
import redis
from msgspec.structs import replace

from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain import limits
from storage.domain.clock import ManualClock
from storage.domain.errors import (
    OutboxFull,
    ProducerFenced,
    SecretUnreadable,
    SourceNotFound,
    StorageUnavailable,
    ValidationFailed,
)
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, SourceName, StreamName
from storage.domain.queues.queue import QueueSpec
from storage.domain.sources.signatures import sign
from storage.domain.sources.source import (
    HmacScheme,
    InboundSource,
    SourceSpec,
    SourceTarget,
    WebhookProvider,
)
from storage.domain.streams.idempotence import SequencedBatch
from storage.domain.streams.stream import EventTimes, ReadFrom, StreamSpec
from storage.hot_store.outbox import Acceptance, OfferedEvent
from storage.redis.keys import outbox_keys
from storage.settings import StorageSettings
from storage.sources.backlog import SourceBacklog
from storage.sources.engine import day_of, outbox_of, producer_on
from tests.conditions import eventually

pytestmark = pytest.mark.one_store

NAME, QUEUE, STREAM = SourceName("github"), QueueName("orders"), StreamName("payments")
SECRET = "It's a Secret to Everybody"


def spec_into(into: SourceTarget) -> SourceSpec:
    scheme = HmacScheme(signature_header="x-sum", id_header="x-id")
    return SourceSpec(provider=WebhookProvider.HMAC, hmac=scheme, secrets=(SECRET,), into=into)


@pytest.fixture
def settings(redis_url, database_url) -> StorageSettings:
    return StorageSettings(redis_url=redis_url, database_url=database_url, secret_keys=(new_key(),))


@pytest.fixture
async def storage(settings, clock) -> AsyncIterator[Storage]:
    async with open_storage(settings, clock=clock) as storage:
        await storage.catalog.put_queue(QUEUE, QueueSpec())
        await storage.catalog.put_stream(STREAM, StreamSpec(shards=2))
        yield storage


async def put(storage: Storage, into: SourceTarget) -> InboundSource:
    return (await storage.sources.put(NAME, spec_into(into))).definition


async def send(storage: Storage, source: InboundSource, bodies: Sequence[bytes]) -> None:
    """Accept events with ids of their own."""
    for nth, body in enumerate(bodies):
        headers = sign(source.spec, SECRET, body, event_id=f"id-{nth}", timestamp=0)
        await storage.source_receiver.receive(source, headers, body)


async def bodies_in(storage: Storage) -> list[bytes]:
    found = []
    for state in await storage.record_reader.shards(STREAM):
        page = await storage.record_reader.read_shard(
            STREAM, state.shard.index, ReadFrom(offset=state.start)
        )
        found += [entry.record.data for entry in page.records]
    return sorted(found)


async def test_full_outbox_refuses_events_and_keeps_those_that_wait(storage, clock):
    source = await put(storage, SourceTarget(queue="orders"))
    outboxes, outbox = storage.source_transfer._outboxes, outbox_of(source)

    async def accept(payload: bytes) -> Acceptance:
        outcome: Acceptance = await outboxes.accept(
            outbox, OfferedEvent("", payload, limits.MINUTE_MS), 10, clock.script_time()
        )
        return outcome

    outcomes = [await accept(payload) for payload in (b"12345", b"123456", b"12345")]

    entries, is_last = await outboxes.pending(outbox, 10)
    assert outcomes == [Acceptance.ACCEPTED, Acceptance.FULL, Acceptance.ACCEPTED]
    assert ([entry.payload for entry in entries], is_last) == ([b"12345", b"12345"], True)
    await outboxes.clear(outbox, [entries[0].sequence])
    assert await accept(b"12345") is Acceptance.ACCEPTED


async def test_pending_says_whether_more_follows(storage, clock):
    source = await put(storage, SourceTarget(queue="orders"))
    outboxes, outbox = storage.source_transfer._outboxes, outbox_of(source)
    for _ in range(3):
        await outboxes.accept(
            outbox, OfferedEvent("", b"event", limits.MINUTE_MS), 100, clock.script_time()
        )

    counts = {}
    for entries_max in (2, 3, 4):
        entries, is_last = await outboxes.pending(outbox, entries_max)
        counts[entries_max] = (len(entries), is_last)

    assert counts == {2: (2, False), 3: (3, True), 4: (3, True)}


async def test_full_outbox_is_reported_to_the_provider(storage, monkeypatch):
    source = await put(storage, SourceTarget(queue="orders"))
    monkeypatch.setattr(limits, "OUTBOX_BYTES_MAX", 1)

    with pytest.raises(OutboxFull):
        await send(storage, source, [b"{}"])


async def test_old_token_expires_with_the_overlap(storage, clock):
    first = (await put(storage, SourceTarget(queue="orders"))).tokens[0].value
    await storage.sources.rotate_token(NAME, overlap_ms=limits.MINUTE_MS)

    assert (await storage.source_receiver.find("github", first)).name == NAME
    clock.advance(ms=limits.MINUTE_MS)

    with pytest.raises(SourceNotFound):
        await storage.source_receiver.find("github", first)


async def test_event_keeps_its_shard_when_the_key_is_changed_between_attempts(storage, monkeypatch):
    """The target recognizes an event by its shard: one was lost and another was doubled."""
    source = await put(storage, SourceTarget(stream="payments", key="/a"))
    bodies = [b'{"a": "%d", "b": "%d"}' % (n, n + 1) for n in range(20)]
    append, refused = storage.streams.append_idempotent_batch, StorageUnavailable()

    async def half(name, batch, records):
        """Append to one shard alone, as when the other's server fails."""
        stream = await storage.catalog.stream(name)
        first = stream.open_shards[0]
        chosen = [
            nth
            for nth, record in enumerate(records)
            if stream.open_shards_for([record.key]) == [first]
        ]
        claims = [(batch.producer_ids[nth], batch.sequences[nth]) for nth in chosen]
        producer_ids, sequences = map(list, zip(*claims, strict=True))
        await append(
            name, SequencedBatch(producer_ids, sequences), [records[nth] for nth in chosen]
        )
        raise refused

    monkeypatch.setattr(storage.streams, "append_idempotent_batch", half)
    await send(storage, source, bodies)
    await eventually(lambda: is_idle(storage), True)
    monkeypatch.setattr(storage.streams, "append_idempotent_batch", append)
    changed = await put(storage, SourceTarget(stream="payments", key="/b"))

    await storage.source_transfer.complete(changed)

    assert await bodies_in(storage) == sorted(bodies)


async def is_idle(storage: Storage) -> bool:
    return not storage.source_transfer._running


async def test_event_that_is_accepted_at_the_end_of_a_transfer_waits_for_no_sweep(
    storage, monkeypatch
):
    """A request that came between the last read and the end of the task was forgotten."""
    source = await put(storage, SourceTarget(queue="orders"))
    transfer, visits = storage.source_transfer, 0

    async def visit(*_: object) -> int:
        nonlocal visits
        visits += 1
        if visits == 1:
            loop = asyncio.get_running_loop()
            loop.call_soon(lambda: loop.call_soon(transfer.begin, source))
            await asyncio.sleep(0)
        return 0

    monkeypatch.setattr(transfer, "_visit", visit)
    transfer.begin(source)

    async def visited() -> int:
        return visits

    await eventually(visited, 2)


async def test_closed_shard_of_a_live_source_expires(storage, clock):
    """The target knew the source's events in its closed shards for as long as the source lived."""
    source = await put(storage, SourceTarget(stream="payments"))
    await send(storage, source, [b"%d" % nth for nth in range(20)])
    await eventually(lambda: is_idle(storage), True)
    await storage.streams.resharder.set_shard_count(STREAM, 1)
    clock.advance(ms=8 * limits.DAY_MS)
    await storage.streams.trim(STREAM, 1_000)

    before = await storage.streams.expire_shards(STREAM)
    await storage.source_transfer.sweep()
    after = await storage.streams.expire_shards(STREAM)

    assert (before, after) == (0, 2)


async def test_producer_of_an_event_is_retired_after_its_transfer(storage, clock):
    """One that waits for days must not be refused by its target."""
    source = await put(storage, SourceTarget(stream="payments"))
    stream = await storage.catalog.stream(STREAM)
    await storage.catalog.delete_stream(STREAM)
    await send(storage, source, [b"waits"])
    await eventually(lambda: is_idle(storage), True)
    for _ in range(3):
        clock.advance(ms=limits.DAY_MS)
        await storage.source_transfer.sweep()
    await storage.catalog.put_stream(STREAM, stream.spec)
    clock.advance(ms=limits.DAY_MS)

    transferred = await storage.source_transfer.sweep()

    assert (transferred, await bodies_in(storage)) == (1, [b"waits"])


async def test_sequence_of_an_event_is_the_time_of_its_acceptance(storage, clock, monkeypatch):
    source = await put(storage, SourceTarget(queue="orders"))
    monkeypatch.setattr(storage.source_transfer, "begin", lambda _: None)
    await send(storage, source, [b"{}"])

    [entry], _ = await storage.source_transfer._outboxes.pending(outbox_of(source), 10)

    assert entry.sequence // limits.OUTBOX_SEQUENCES_PER_MS == clock.now_ms()


async def test_running_transfer_continues_to_the_new_target(storage, monkeypatch):
    """While events kept coming, a transfer went on to the target that it began with."""
    source = await put(storage, SourceTarget(stream="payments"))
    append, began, may_go = (
        storage.streams.append_idempotent_batch,
        asyncio.Event(),
        asyncio.Event(),
    )

    async def late(*arguments):
        began.set()
        await may_go.wait()
        return await append(*arguments)

    monkeypatch.setattr(storage.streams, "append_idempotent_batch", late)
    await send(storage, source, [b"{}"])
    await began.wait()
    changed = await put(storage, SourceTarget(queue="orders"))
    headers = sign(changed.spec, SECRET, b"[]", event_id="later", timestamp=0)
    await storage.source_receiver.receive(changed, headers, b"[]")
    may_go.set()

    await eventually(lambda: waiting_in(storage, changed), 0)
    received = await storage.queues.receive(QUEUE, messages_max=9)
    assert await bodies_in(storage) == [b"{}"]
    assert [message.body for message in received] == [b"[]"]


async def waiting_in(storage: Storage, source: InboundSource) -> int:
    return (await storage.source_transfer.counts(source)).waiting


async def test_backlog_has_the_waiting_events_of_all_sources(storage, clock):
    source = await put(storage, SourceTarget(queue="orders"))
    other = spec_into(SourceTarget(stream="payments"))
    await storage.sources.put(SourceName("idle"), other)
    await storage.catalog.delete_queue(QUEUE)
    await send(storage, source, [b"1", b"2"])
    before = await storage.source_backlog.read()
    clock.advance(ms=limits.SOURCE_BLOCKED_MS)

    after = await storage.source_backlog.read()

    assert before == SourceBacklog(sources=2, waiting=2, oldest_age_ms=0, blocked=0)
    assert after == before._replace(oldest_age_ms=limits.SOURCE_BLOCKED_MS, blocked=1)


async def test_backlog_is_measured_without_outbox_that_cannot_be(storage, redis_url):
    source = await put(storage, SourceTarget(queue="orders"))
    await storage.sources.put(SourceName("idle"), spec_into(SourceTarget(stream="payments")))
    with redis.Redis.from_url(redis_url) as client:
        client.set(outbox_keys(*outbox_of(source))[1], "no stream")

    assert await storage.source_backlog.read() == SourceBacklog(sources=2)


async def test_deleted_source_leaves_no_outbox_and_no_producer(storage, clock):
    source = await put(storage, SourceTarget(stream="payments"))
    await send(storage, source, [b"{}"])
    await eventually(lambda: bodies_in(storage), [b"{}"])

    await storage.sources.delete(NAME)

    entries, _ = await storage.source_transfer._outboxes.pending(outbox_of(source), 10)
    assert entries == []
    with pytest.raises(ProducerFenced):
        await storage.streams.append_idempotent(
            STREAM, producer_on(source, day_of(clock.now_ms())), [2**52], [Record(b"late")]
        )


async def test_failed_deletion_can_be_repeated(storage, monkeypatch):
    """The outbox stayed for ever when the store failed after the definition was gone."""
    await put(storage, SourceTarget(queue="orders"))
    outboxes = storage.sources._outboxes
    delete = outboxes.delete

    async def fail(_: object) -> None:
        raise StorageUnavailable

    monkeypatch.setattr(outboxes, "delete", fail)
    with pytest.raises(StorageUnavailable):
        await storage.sources.delete(NAME)
    monkeypatch.setattr(outboxes, "delete", delete)

    assert (await storage.sources.delete(NAME)).name == NAME


async def test_source_whose_secrets_are_lost_is_listed_paused_and_deleted(storage, settings):
    """One unreadable source stopped the list and the sweep of all."""
    await put(storage, SourceTarget(queue="orders"))
    other = settings.model_copy(update={"secret_keys": (new_key(),)})
    async with open_storage(other, clock=ManualClock()) as without_key:
        sources = without_key.sources
        healthy = SourceName("healthy")
        made = await sources.put(healthy, spec_into(SourceTarget(queue="orders")))

        listed = await sources.list_sources("default")
        swept = await without_key.source_transfer.sweep()
        paused = await sources.pause(NAME, paused=True)
        answers = await asyncio.gather(
            sources.current(NAME), sources.current(healthy), return_exceptions=True
        )

        assert [source.name for source in listed] == [NAME, healthy]
        assert [len(source.spec.secrets or ()) for source in listed] == [1, 1]
        assert swept == 0
        assert paused.spec.paused
        assert isinstance(answers[0], SecretUnreadable)
        assert answers[1] == made.definition
        with pytest.raises(SecretUnreadable):
            await sources.get_with_secrets(NAME)
    stored = await storage.sources.get_with_secrets(NAME)
    assert (stored.spec.secrets, len(stored.tokens)) == ((SECRET,), 1)
    await storage.sources.delete(NAME)


async def test_stream_that_requires_event_times_is_refused_as_target(storage):
    """Events for it were accepted, and blocked the outbox."""
    stream = await storage.catalog.stream(STREAM)
    await put(storage, SourceTarget(stream="payments"))
    required = replace(stream.spec, event_times=EventTimes.CLIENT_REQUIRE)
    await storage.catalog.put_stream(STREAM, required)
    source = await storage.sources.get_with_secrets(NAME)

    with pytest.raises(ValidationFailed):
        await send(storage, source, [b"{}"])
    with pytest.raises(ValidationFailed):
        await put(storage, SourceTarget(stream="payments"))
