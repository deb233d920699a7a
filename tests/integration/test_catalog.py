"""The catalog: definitions change in one step, are heard of everywhere, and go with their logs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import psycopg
import pytest
from msgspec.structs import replace

from storage.catalog import Catalog, open_catalog
from storage.domain.clock import ManualClock
from storage.domain.errors import (
    InvalidCursor,
    PreconditionFailed,
    QueueNotFound,
    StorageUnavailable,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.limits import DEFINITION_AGE_MS_MAX, HOUR_MS
from storage.domain.names import DEFAULT_NAMESPACE, LogId, QueueName, StreamName
from storage.domain.queues import (
    DeadLetterTarget,
    QueueSpec,
    QueueType,
    RedriveAllow,
    RedrivePermission,
)
from storage.domain.quotas import NO_QUOTAS, Quotas
from storage.domain.streams import RING_SIZE, StreamSpec
from storage.postgres.database import open_database
from storage.postgres.listener import Listener
from storage.postgres.reservations import Reservations
from storage.settings import StorageSettings
from tests.databases import nobody_connects
from tests.waiting import eventually

ORDERS = QueueName("orders")
CLICKS = StreamName("clicks")
FIFO = QueueSpec(type=QueueType.FIFO)
OpenCatalog = Callable[[], AbstractAsyncContextManager[Catalog]]


class Graves:
    """Where deleted logs are buried, unless it is out of order."""

    def __init__(self) -> None:
        self.buried: list[tuple[str, LogId]] = []
        self.out_of_order = False

    async def bury(self, namespace: str, log_ids: Sequence[LogId]) -> None:
        if self.out_of_order:
            raise StorageUnavailable
        self.buried += [(namespace, log_id) for log_id in log_ids]


@pytest.fixture
def graves() -> Graves:
    return Graves()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def process(database_url: str, clock: ManualClock, graves: Graves) -> OpenCatalog:
    """Opens a catalog as one process of the deployment has it."""
    where = StorageSettings(redis_url="redis://unused", database_url=database_url)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Catalog]:
        async with (
            open_database(where) as database,
            open_catalog(database, Listener(where.database_url), clock, graves.bury) as catalog,
        ):
            yield catalog

    return opened


@pytest.fixture
async def catalog(process: OpenCatalog) -> AsyncIterator[Catalog]:
    async with process() as catalog:
        yield catalog


@pytest.fixture
async def other(process: OpenCatalog) -> AsyncIterator[Catalog]:
    """The same deployment's catalog in another process."""
    async with process() as catalog:
        yield catalog


@pytest.fixture
async def reservations(database_url: str) -> AsyncIterator[Reservations]:
    where = StorageSettings(redis_url="redis://unused", database_url=database_url)
    async with open_database(where) as database:
        yield Reservations(database)


# Putting


async def test_a_queue_is_created_and_found(catalog, clock):
    created, is_new = await catalog.put_queue(ORDERS, FIFO)

    assert is_new
    assert created.version == 1
    assert created.created_at_ms == created.changed_at_ms == clock.now_ms()
    assert await catalog.queue(ORDERS) == created


async def test_a_queue_that_does_not_exist_is_not_found(catalog):
    with pytest.raises(QueueNotFound, match="orders"):
        await catalog.queue(ORDERS)


async def test_putting_the_same_again_changes_nothing(catalog, clock):
    created, _ = await catalog.put_queue(ORDERS, FIFO)

    clock.advance(ms=1_000)
    again, is_new = await catalog.put_queue(ORDERS, FIFO)

    assert not is_new
    assert again == created


async def test_putting_something_else_makes_the_next_version_of_the_same_queue(catalog, clock):
    created, _ = await catalog.put_queue(ORDERS, QueueSpec())

    clock.advance(ms=1_000)
    changed, is_new = await catalog.put_queue(ORDERS, QueueSpec(delay_ms=500))

    assert not is_new
    assert changed.log_id == created.log_id
    assert changed.version == 2
    assert changed.changed_at_ms == created.created_at_ms + 1_000
    assert await catalog.queue(ORDERS) == changed


async def test_a_queue_keeps_its_type(catalog):
    await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(ValidationFailed) as refused:
        await catalog.put_queue(ORDERS, FIFO)

    assert [fault.pointer for fault in refused.value.faults] == ["/type"]


async def test_a_stream_keeps_its_number_of_shards(catalog):
    await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    with pytest.raises(ValidationFailed) as refused:
        await catalog.put_stream(CLICKS, StreamSpec(shards=3))

    assert [fault.pointer for fault in refused.value.faults] == ["/shards"]


async def test_a_specification_that_is_not_valid_is_not_stored(catalog):
    with pytest.raises(ValidationFailed):
        await catalog.put_queue(ORDERS, QueueSpec(delay_ms=-1))

    with pytest.raises(QueueNotFound):
        await catalog.fresh_queue(ORDERS)


async def test_a_put_that_must_create_refuses_a_queue_that_exists(catalog):
    await catalog.put_queue(ORDERS, QueueSpec(), create_only=True)

    with pytest.raises(PreconditionFailed, match="exists"):
        await catalog.put_queue(ORDERS, QueueSpec(), create_only=True)


async def test_a_put_that_names_a_version_needs_that_version(catalog):
    await catalog.put_queue(ORDERS, QueueSpec())
    await catalog.put_queue(ORDERS, QueueSpec(delay_ms=1), if_match=1)

    with pytest.raises(PreconditionFailed, match="version is 2, not 1"):
        await catalog.put_queue(ORDERS, QueueSpec(delay_ms=2), if_match=1)


async def test_a_put_that_names_a_version_creates_nothing(catalog):
    with pytest.raises(PreconditionFailed):
        await catalog.put_queue(ORDERS, QueueSpec(), if_match=1)


async def test_of_those_who_create_at_once_one_does(catalog, other):
    puts = await asyncio.gather(
        *(each.put_queue(ORDERS, QueueSpec()) for each in (catalog, other) * 5)
    )

    assert sorted(is_new for _, is_new in puts) == [False] * 9 + [True]
    assert len({queue.log_id for queue, _ in puts}) == 1


async def test_a_queue_and_a_stream_may_have_one_name(catalog):
    await catalog.put_queue(QueueName("both"), QueueSpec())
    await catalog.put_stream(StreamName("both"), StreamSpec())

    assert (await catalog.queue(QueueName("both"))).version == 1
    assert (await catalog.stream(StreamName("both"))).version == 1


async def test_namespaces_hold_different_queues_of_one_name(catalog):
    await catalog.namespaces.put("acme", NO_QUOTAS)
    await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(QueueNotFound):
        await catalog.queue(QueueName("orders", "acme"))


async def test_a_namespace_keeps_its_account_id(catalog):
    first, _ = await catalog.namespaces.put("acme", NO_QUOTAS)

    again, _ = await catalog.namespaces.put("acme", Quotas(queues_max=1))

    assert again.account_id == first.account_id
    assert len(first.account_id) == 12


# Streams


async def test_a_streams_shards_share_the_ring(catalog):
    stream, _ = await catalog.put_stream(CLICKS, StreamSpec(shards=3))

    found = await catalog.fresh_stream(CLICKS)

    assert found == stream
    assert [shard.index for shard in found.shards] == [0, 1, 2]
    assert found.shards[0].first_hash_key == 0
    assert found.shards[-1].last_hash_key == RING_SIZE - 1
    assert len({shard.log_id for shard in found.shards}) == 3


async def test_the_logs_of_a_stream_can_be_opened(catalog, reservations):
    stream, _ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    for shard in stream.shards:
        assert await reservations.open_log(shard.log_id, 1, None, 100) is not None


async def test_a_stream_is_changed_and_keeps_its_shards(catalog):
    stream, _ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    changed = await catalog.change_stream(CLICKS, lambda spec: replace(spec, retention_ms=HOUR_MS))

    assert changed.shards == stream.shards
    assert changed.spec.retention_ms == HOUR_MS
    assert await catalog.stream(CLICKS) == changed


# Changing


async def test_changes_made_at_once_are_all_made(catalog, other):
    await catalog.put_queue(ORDERS, QueueSpec(delay_ms=0))

    await asyncio.gather(
        *(each.change_queue(ORDERS, one_more_delay) for each in (catalog, other) * 5)
    )

    queue = await catalog.fresh_queue(ORDERS)
    assert queue.spec.delay_ms == 10
    assert queue.version == 11


async def test_a_change_of_a_queue_that_does_not_exist_is_refused(catalog):
    with pytest.raises(QueueNotFound):
        await catalog.change_queue(ORDERS, one_more_delay)


async def test_a_change_that_is_not_valid_leaves_the_queue_as_it_was(catalog):
    created, _ = await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(ValidationFailed):
        await catalog.change_queue(ORDERS, lambda spec: replace(spec, delay_ms=-1))

    assert await catalog.fresh_queue(ORDERS) == created


async def test_a_change_that_names_another_version_is_refused(catalog):
    await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(PreconditionFailed):
        await catalog.change_queue(ORDERS, one_more_delay, if_match=7)


# Deleting


async def test_a_deleted_queue_is_gone_and_its_log_is_buried(catalog, graves):
    queue, _ = await catalog.put_queue(ORDERS, QueueSpec())

    deleted = await catalog.delete_queue(ORDERS)

    assert deleted == queue
    assert graves.buried == [(DEFAULT_NAMESPACE, queue.log_id)]
    with pytest.raises(QueueNotFound):
        await catalog.queue(ORDERS)


async def test_a_deleted_stream_is_gone_and_all_its_logs_are_buried(catalog, graves):
    stream, _ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    await catalog.delete_stream(CLICKS)

    assert graves.buried == [(DEFAULT_NAMESPACE, shard.log_id) for shard in stream.shards]
    with pytest.raises(StreamNotFound):
        await catalog.stream(CLICKS)


async def test_the_log_of_a_deleted_queue_cannot_be_opened(catalog, reservations):
    """A process that still holds the definition must not make the log anew."""
    queue, _ = await catalog.put_queue(ORDERS, QueueSpec())
    await reservations.open_log(queue.log_id, 1, None, 100)
    await reservations.open_log(queue.log_id, 2, 10, 100)

    await catalog.delete_queue(ORDERS)

    assert await reservations.open_log(queue.log_id, 2, None, 100) is None
    assert await reservations.holes(queue.log_id) == []


async def test_a_queue_made_anew_has_a_log_of_its_own(catalog):
    first, _ = await catalog.put_queue(ORDERS, QueueSpec())
    await catalog.delete_queue(ORDERS)

    second, is_new = await catalog.put_queue(ORDERS, QueueSpec())

    assert is_new
    assert second.version == 1
    assert second.log_id != first.log_id


async def test_a_queue_that_does_not_exist_cannot_be_deleted(catalog):
    with pytest.raises(QueueNotFound):
        await catalog.delete_queue(ORDERS)


async def test_a_deletion_that_names_another_version_is_refused(catalog):
    await catalog.put_queue(ORDERS, QueueSpec())

    with pytest.raises(PreconditionFailed):
        await catalog.delete_queue(ORDERS, if_match=2)

    assert (await catalog.fresh_queue(ORDERS)).version == 1


async def test_a_log_that_cannot_be_buried_is_left_for_the_sweep(catalog, graves):
    queue, _ = await catalog.put_queue(ORDERS, QueueSpec())
    graves.out_of_order = True

    await catalog.delete_queue(ORDERS)

    assert await catalog.deleted_logs(0) == [(DEFAULT_NAMESPACE, queue.log_id)]


async def test_deleted_logs_are_found_by_their_age_and_page_by_page(catalog, clock):
    queue, _ = await catalog.put_queue(ORDERS, QueueSpec())
    stream, _ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await catalog.delete_queue(ORDERS)
    clock.advance(ms=1_000)
    await catalog.delete_stream(CLICKS)

    shards = [shard.log_id for shard in stream.shards]
    everything = sorted([queue.log_id, *shards])

    assert [log_id for _, log_id in await catalog.deleted_logs(1_000)] == [queue.log_id]
    assert [log_id for _, log_id in await catalog.deleted_logs(0)] == everything
    assert await catalog.deleted_logs(0, after=everything[0], limit=1) == [
        (DEFAULT_NAMESPACE, everything[1])
    ]


async def test_what_is_forgotten_is_not_found_again_and_what_lives_stays(catalog):
    queue, _ = await catalog.put_queue(ORDERS, QueueSpec())
    stream, _ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))
    living, _ = await catalog.put_queue(QueueName("living"), QueueSpec())
    await catalog.delete_queue(ORDERS)
    await catalog.delete_stream(CLICKS)

    await catalog.forget_deleted([queue.log_id, living.log_id, stream.shards[0].log_id])

    assert await catalog.deleted_logs(0) == [(DEFAULT_NAMESPACE, stream.shards[1].log_id)]
    assert await catalog.fresh_queue(living.name) == living


# Listing


async def test_queues_are_listed_by_name_in_pages(catalog):
    for name in ("b", "a", "C", "a.b", "a-b"):
        await catalog.put_queue(QueueName(name), QueueSpec())

    page = await catalog.list_queues(DEFAULT_NAMESPACE, limit=3)
    rest = await catalog.list_queues(DEFAULT_NAMESPACE, after=page[-1].name.name)

    assert [queue.name.name for queue in page + rest] == ["C", "a", "a-b", "a.b", "b"]


async def test_queues_are_listed_by_prefix(catalog):
    for name in ("order", "orders", "orders.late", "other"):
        await catalog.put_queue(QueueName(name), QueueSpec())

    found = await catalog.list_queues(DEFAULT_NAMESPACE, prefix="orders")

    assert [queue.name.name for queue in found] == ["orders", "orders.late"]


@pytest.mark.parametrize("prefix", ["%", "_", "\x00", "é", "\ud800"])
async def test_a_prefix_that_no_name_has_finds_nothing(catalog, prefix):
    await catalog.put_queue(ORDERS, QueueSpec())

    assert await catalog.list_queues(DEFAULT_NAMESPACE, prefix=prefix) == []


async def test_a_page_after_what_no_name_can_be_is_refused(catalog):
    with pytest.raises(InvalidCursor):
        await catalog.list_queues(DEFAULT_NAMESPACE, after="\x00")


async def test_deleted_streams_and_those_of_other_namespaces_are_not_listed(catalog):
    await catalog.namespaces.put("acme", NO_QUOTAS)
    await catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await catalog.put_stream(StreamName("gone"), StreamSpec())
    await catalog.put_stream(StreamName("theirs", "acme"), StreamSpec())
    await catalog.delete_stream(StreamName("gone"))

    found = await catalog.list_streams(DEFAULT_NAMESPACE)

    assert [(str(stream.name), len(stream.shards)) for stream in found] == [("default/clicks", 2)]


async def test_a_sweep_sees_every_queue_of_every_namespace_once(catalog, monkeypatch):
    monkeypatch.setattr("storage.domain.limits.PAGE_ITEMS_MAX", 2)
    await catalog.namespaces.put("acme", NO_QUOTAS)
    names = [QueueName(f"q{n}", "acme" if n % 2 else DEFAULT_NAMESPACE) for n in range(7)]
    for name in names:
        await catalog.put_queue(name, QueueSpec())

    seen = [queue.name async for queue in catalog.every_queue()]

    assert sorted(map(str, seen)) == sorted(map(str, names))


async def test_a_sweep_sees_every_stream(catalog):
    created, _ = await catalog.put_stream(CLICKS, StreamSpec(shards=2))

    assert [stream async for stream in catalog.every_stream()] == [created]


# What other processes do


async def test_a_change_in_one_process_is_heard_in_another(catalog, other):
    await catalog.put_queue(ORDERS, QueueSpec())
    await other.queue(ORDERS)

    changed, _ = await catalog.put_queue(ORDERS, QueueSpec(delay_ms=1))

    await eventually(lambda: other.queue(ORDERS), changed)


async def test_a_deletion_in_one_process_is_heard_in_another(catalog, other):
    await catalog.put_stream(CLICKS, StreamSpec())
    await other.stream(CLICKS)

    await catalog.delete_stream(CLICKS)

    with pytest.raises(StreamNotFound):
        await eventually(lambda: other.stream(CLICKS), None)


async def test_a_definition_is_cached(catalog, database_url):
    created, _ = await catalog.put_queue(ORDERS, QueueSpec())
    await eventually(lambda: is_cached(catalog, ORDERS), True)

    change_unheard(database_url)

    assert await catalog.queue(ORDERS) == created
    assert (await catalog.fresh_queue(ORDERS)).version == 99


async def test_a_change_that_was_not_heard_is_seen_after_a_minute(catalog, clock, database_url):
    await catalog.put_queue(ORDERS, QueueSpec())
    await eventually(lambda: is_cached(catalog, ORDERS), True)
    change_unheard(database_url)

    clock.advance(ms=DEFINITION_AGE_MS_MAX)

    assert (await catalog.queue(ORDERS)).version == 99


async def test_losing_the_listen_connection_empties_the_cache(catalog, database_url):
    await catalog.put_queue(ORDERS, QueueSpec())
    await eventually(lambda: is_cached(catalog, ORDERS), True)
    change_unheard(database_url)

    end_listeners(database_url)

    await eventually(lambda: version_of(catalog, ORDERS), 99)


async def test_what_is_known_outlives_a_short_absence_of_the_database(
    catalog, database_url, monkeypatch
):
    monkeypatch.setattr("storage.postgres.listener._GRACE_SECONDS", 1.0)
    created, _ = await catalog.put_queue(ORDERS, QueueSpec())
    await eventually(lambda: is_cached(catalog, ORDERS), True)

    with nobody_connects(database_url):
        await asyncio.sleep(0.2)  # the connection's end is heard
        known = await catalog.queue(ORDERS)
        with pytest.raises(StorageUnavailable):
            await eventually(lambda: catalog.queue(ORDERS), None)

    assert known == created
    await eventually(lambda: is_cached(catalog, ORDERS), True)


async def test_the_listen_connection_comes_back_and_the_cache_with_it(catalog, other, database_url):
    await catalog.put_queue(ORDERS, QueueSpec())
    end_listeners(database_url)
    await eventually(lambda: is_cached(other, ORDERS), True)

    changed, _ = await catalog.put_queue(ORDERS, QueueSpec(delay_ms=1))

    await eventually(lambda: other.queue(ORDERS), changed)


async def test_what_a_later_version_stored_in_a_specification_is_ignored(catalog, database_url):
    created, _ = await catalog.put_queue(ORDERS, QueueSpec())

    execute(database_url, """update queues set spec = spec || '{"shiny": true}'""")

    assert await catalog.fresh_queue(ORDERS) == created


async def test_a_catalog_whose_database_is_away_says_so(clock, graves):
    where = StorageSettings(redis_url="redis://unused", database_url="postgresql:///?host=/nowhere")
    async with (
        open_database(where) as database,
        open_catalog(database, Listener(where.database_url), clock, graves.bury) as catalog,
    ):
        with pytest.raises(StorageUnavailable):
            await catalog.queue(ORDERS)
        with pytest.raises(StorageUnavailable):
            await catalog.put_queue(ORDERS, QueueSpec())


def one_more_delay(spec: QueueSpec) -> QueueSpec:
    return replace(spec, delay_ms=spec.delay_ms + 1)


async def version_of(catalog: Catalog, name: QueueName) -> int:
    return (await catalog.queue(name)).version


async def is_cached(catalog: Catalog, name: QueueName) -> bool:
    """Whether two readings give one and the same object."""
    return await catalog.queue(name) is await catalog.queue(name)


def change_unheard(url: str) -> None:
    """A change whose announcement is lost."""
    execute(url, "update queues set version = 99")


def end_listeners(url: str) -> None:
    execute(
        url,
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'millstream-listener' and datname = current_database()",
    )


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.mark.parametrize(
    ("target", "spec"),
    [
        ("orders", None),
        ("missing", None),
        ("other", QueueSpec(type=QueueType.FIFO)),
        ("other", QueueSpec(redrive_allow=RedriveAllow(RedrivePermission.DENY_ALL))),
        ("other", QueueSpec(redrive_allow=RedriveAllow(RedrivePermission.BY_QUEUE, ("x",)))),
    ],
)
async def test_dead_letters_go_only_to_a_queue_that_takes_them(catalog, target, spec):
    if spec is not None:
        await catalog.put_queue(QueueName(target), spec)
    dying = QueueSpec(dead_letters=DeadLetterTarget(target, 3))

    with pytest.raises(ValidationFailed) as refused:
        await catalog.put_queue(ORDERS, dying)

    assert [fault.pointer for fault in refused.value.faults] == ["/dead_letters/queue"]


async def test_the_sources_of_a_dead_letter_queue_are_found(catalog):
    allowing = RedriveAllow(RedrivePermission.BY_QUEUE, ("a", "b"))
    await catalog.put_queue(QueueName("dead"), QueueSpec(redrive_allow=allowing))
    for name in ("b", "a"):
        await catalog.put_queue(
            QueueName(name), QueueSpec(dead_letters=DeadLetterTarget("dead", 3))
        )

    every = await catalog.dead_letter_sources(QueueName("dead"))
    later = await catalog.dead_letter_sources(QueueName("dead"), after="a")

    assert [queue.name.name for queue in every] == ["a", "b"]
    assert [queue.name.name for queue in later] == ["b"]
