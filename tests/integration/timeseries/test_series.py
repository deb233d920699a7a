"""Time series: sampling of queues, streams and groups, and reading of charts."""

import random
from statistics import fmean

import pytest
import redis

from consumers.maintenance.tasks.group_offsets import copy_group_offsets
from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.errors import QueueNotFound, StorageUnavailable
from storage.domain.groups.group import Commit, GroupKind, GroupSpec
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues.consumer import ConsumerProtocol, queue_consumer
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from storage.domain.timeseries.history import StateCondition
from storage.domain.timeseries.rollup import is_sampled
from storage.domain.timeseries.samples import FINEST, QUARTERS, QUEUE
from storage.settings import StorageSettings

ORDERS = QueueName("orders")
CLICKS = StreamName("clicks")
READERS = GroupName("readers")
STEP_MS = limits.SERIES_STEP_MS


@pytest.fixture
async def storage(engines):
    await engines.catalog.put_queue(ORDERS, QueueSpec())
    return engines


@pytest.fixture
async def other(redis_url, database_url, clock):
    """Another process of the same deployment."""
    settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    async with open_storage(settings, clock=clock) as storage:
        yield storage


async def send(storage, count=1, queue=ORDERS):
    await storage.queues.send(queue, [NewMessage(b"x")] * count)


async def tick(storage, clock, ms=STEP_MS):
    clock.advance(ms=ms)
    return await storage.time_series.sample()


async def charted(storage, column, ms=limits.HOUR_MS, last=4):
    chart = await storage.time_series.of_queue(ORDERS, ms)
    return chart.columns[column][-last:]


def keys_of_series(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        return {key.decode() for key in client.scan_iter("*series*", count=10_000)}


async def test_queue_depth_and_rates_are_charted(storage, clock):
    await storage.time_series.sample()
    for count in (3, 0, 5):
        clock.advance(ms=STEP_MS)
        if count:
            await send(storage, count)
        await storage.time_series.sample()

    chart = await storage.time_series.of_queue(ORDERS, limits.HOUR_MS)

    assert chart.step_ms == STEP_MS
    assert chart.start_ms == clock.now_ms() // STEP_MS * STEP_MS - 359 * STEP_MS
    assert chart.columns["ready"][-5:] == (None, 0, 3, 3, 8)
    assert chart.columns["ready_max"][-5:] == (None, 0, 3, 3, 8)
    assert chart.columns["sent_per_second"][-5:] == (None, None, 0.3, 0, 0.5)
    assert {len(values) for values in chart.columns.values()} == {360}


async def test_oldest_message_ages_without_writes(storage, clock, redis_url):
    await send(storage)
    await storage.time_series.sample()
    await tick(storage, clock)
    before = keys_of_series(redis_url)
    for _ in range(3):
        await tick(storage, clock)

    ages = await charted(storage, "oldest_age_ms")

    assert ages == (10_000, 20_000, 30_000, 40_000)
    assert keys_of_series(redis_url) == before


async def test_missed_sample_is_reported_as_gap_and_not_zero(storage, clock):
    await storage.time_series.sample()
    await send(storage, 2)
    await tick(storage, clock)
    await send(storage, 4)
    await tick(storage, clock, ms=2 * STEP_MS)

    assert await charted(storage, "ready") == (0, 2, None, 6)
    assert await charted(storage, "sent_per_second") == (None, 0.2, None, 0.2)


async def test_first_rate_after_long_gap_is_unknown(storage, clock):
    await storage.time_series.sample()
    await send(storage, 100)
    await tick(storage, clock, ms=10 * STEP_MS)
    await tick(storage, clock)

    latest = await storage.time_series.latest_queues("default")

    assert await charted(storage, "sent_per_second") == (None, None, None, 0)
    assert latest["orders"].sent_per_second == 0


async def test_concurrent_samplers_sample_once(storage, other, clock):
    first, second = await storage.time_series.sample(), await other.time_series.sample()
    third = await tick(other, clock)

    assert (first, second, third) == (1, 0, 1)


async def test_latest_sample_is_one_read_and_has_its_time(storage, clock):
    await send(storage, 3)
    await storage.time_series.sample()
    await tick(storage, clock)

    latest = await storage.time_series.latest_queues("default")

    assert latest.at_ms == clock.now_ms()
    assert list(latest) == ["orders"]
    assert latest["orders"].ready == 3
    assert latest["orders"].oldest_age_ms(clock.now_ms()) == STEP_MS


async def test_dead_letters_are_counted_by_cause(storage, clock):
    await storage.time_series.sample()
    await send(storage)
    [message] = await storage.queues.receive(ORDERS, visibility_timeout_ms=1_000)
    reject = Settlement(message.receipt_handle, SettleAction.REJECT, reason="poison")
    await storage.queues.settle(ORDERS, [reject])
    await tick(storage, clock)

    latest = await storage.time_series.latest_queues("default")
    total = (await storage.time_series.latest_namespaces())[""]

    assert (latest["orders"].dead_lettered, latest["orders"].dead_rejected) == (1, 1)
    assert (total.dead_rejected, total.dead_exhausted, total.dead_full) == (1, 0, 0)


async def test_recreated_queue_has_its_own_chart(storage, clock):
    await send(storage, 9)
    await storage.time_series.sample()
    await tick(storage, clock)
    await storage.catalog.delete_queue(ORDERS)
    await storage.catalog.put_queue(ORDERS, QueueSpec())
    await tick(storage, clock)

    assert await charted(storage, "ready") == (None, None, None, 0)
    assert (await storage.time_series.latest_namespaces())["default"].sent == 9


async def test_deleted_queue_leaves_no_series(storage, clock, redis_url):
    await storage.time_series.sample()
    without = keys_of_series(redis_url)
    extra = QueueName("extra")
    queue, *_ = await storage.catalog.put_queue(extra, QueueSpec())
    await send(storage, 2, extra)
    await tick(storage, clock)
    with_it = keys_of_series(redis_url)
    await storage.catalog.delete_queue(extra)
    await tick(storage, clock)

    assert any(queue.log_id in key for key in with_it)
    assert keys_of_series(redis_url) <= with_it
    assert not any(queue.log_id in key for key in keys_of_series(redis_url))
    assert without <= with_it
    assert list(await storage.time_series.latest_queues("default")) == ["orders"]
    with pytest.raises(QueueNotFound):
        await storage.time_series.of_queue(extra, limits.HOUR_MS)


async def test_streams_and_groups_are_charted_with_lag(storage, clock):
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=2))
    await storage.groups.put(READERS, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
    await storage.time_series.sample()
    clock.advance(ms=STEP_MS)
    await storage.streams.append(CLICKS, [Record(b"x", f"key-{n}") for n in range(20)])
    await storage.time_series.sample()
    clock.advance(ms=STEP_MS)
    states = await storage.record_reader.shards(CLICKS)
    first = states[0]
    await storage.groups.commit(READERS, [Commit(shard=0, offset=first.next)])
    await copy_group_offsets.work(storage)
    await storage.time_series.sample()

    stream = await storage.time_series.of_stream(CLICKS, limits.HOUR_MS)
    group = await storage.time_series.of_group(READERS, limits.HOUR_MS)
    latest = (await storage.time_series.latest_groups("default"))["readers"]
    total = await storage.time_series.of_namespace("default", limits.HOUR_MS)

    assert stream.columns["records"][-3:] == (0, 20, 20)
    assert stream.columns["records_in_per_second"][-2:] == (2, 0)
    assert stream.columns["bytes_in_per_second"][-2] > 0
    assert stream.columns["lag_records"][-3:] == (0, 20, 20 - first.next)
    assert group.columns["lag_records"][-3:] == (0, 20, 20 - first.next)
    assert group.columns["lag_ms"][-3:] == (0, 0, STEP_MS)
    assert group.columns["committed_per_second"][-1] == first.next / 10
    assert latest.last_commit_ms is not None
    assert total.columns["lag_records"][-1] == 20 - first.next
    assert total.columns["messages_in_per_second"][-2:] == (2, 0)


async def test_first_samples_are_charted_by_quarters_too(storage, clock):
    """Charts of more than an hour were empty until the first quarter of an hour was over."""
    await send(storage, 2)
    await storage.time_series.sample()
    clock.advance(ms=STEP_MS)
    await send(storage, 2)
    await storage.time_series.sample()

    chart = await storage.time_series.of_queue(ORDERS, 6 * limits.HOUR_MS)

    assert len(chart.columns["ready"]) == 24
    assert chart.columns["ready"][-1] == 3
    assert chart.columns["ready_max"][-1] == 4
    assert set(chart.columns["ready"][:-1]) == {None}


async def test_page_of_charts_is_read_together(storage, clock):
    names = [QueueName(f"page-{nth}") for nth in range(50)]
    for name in names:
        await storage.catalog.put_queue(name, QueueSpec())
    await storage.time_series.sample()
    await send(storage, 4, names[7])
    await tick(storage, clock)

    charts = await storage.time_series.of_queues(names, limits.HOUR_MS)

    assert list(charts) == names
    assert [charts[name].columns["ready"][-1] for name in names[6:9]] == [0, 4, 0]


async def test_page_of_charts_omits_unknown_queues(storage, clock):
    await storage.time_series.sample()

    charts = await storage.time_series.of_queues([ORDERS, QueueName("nothing")], limits.HOUR_MS)
    streams = await storage.time_series.of_streams([StreamName("nothing")], limits.HOUR_MS)

    assert (list(charts), streams) == ([ORDERS], {})


async def test_deployment_chart_includes_its_store(storage, clock):
    await storage.time_series.sample()

    chart = await storage.time_series.of_deployment(limits.HOUR_MS)

    assert chart.columns["memory_used_bytes"][-1] > 0
    assert chart.columns["queues"][-1] == 1
    assert "sampled_at_ms" not in chart.columns


async def unreachable():
    raise StorageUnavailable


async def interrupted(*_, **__):
    raise StorageUnavailable


class Model:
    """The expected chart after every completed sample: (ready, sent) by slot."""

    def __init__(self):
        self.looks = {}

    def look(self, at_ms, ready, sent):
        self.looks[at_ms // STEP_MS] = (ready, sent, at_ms)

    def slots(self, step_ms, now_ms, length):
        last = now_ms // step_ms
        per = step_ms // STEP_MS
        for slot in range(last - length + 1, last + 1):
            yield [self.looks[at] for at in range(slot * per, slot * per + per) if at in self.looks]

    def expected(self, step_ms, now_ms, length):
        means: list[float | None] = []
        most: list[int | None] = []
        rates: list[float | None] = []
        before, since = (0, 0), 99
        for looks in self.slots(step_ms, now_ms, length + 3):
            since += 1
            if not looks:
                means.append(None)
                most.append(None)
                rates.append(None)
                continue
            means.append(round(fmean(ready for ready, _, _ in looks), 2))
            most.append(max(ready for ready, _, _ in looks))
            _, sent, at_ms = looks[-1]
            ms = at_ms - before[1]
            rates.append(round((sent - before[0]) * 1000 / ms, 3) if since <= 3 else None)
            before, since = (sent, at_ms), 0
        return [tuple(column[3:]) for column in (means, most, rates)]


@pytest.mark.parametrize("seed", [1, 2])
async def test_rings_match_reference_model_across_samplers(
    storage, other, clock, seed, monkeypatch
):
    chance, model = random.Random(seed), Model()
    handles, ready, sent = [], 0, 0
    clock.advance(ms=chance.randrange(STEP_MS))
    for _ in range(210):
        busy = chance.random() < 0.4
        if busy and chance.random() < 0.7:
            count = chance.randint(1, 5)
            await send(storage, count)
            ready, sent = ready + count, sent + count
        elif busy and ready:
            received = await storage.queues.receive(ORDERS, messages_max=3, visibility_timeout_ms=1)
            handles = [Settlement(message.receipt_handle, SettleAction.ACK) for message in received]
            await storage.queues.settle(ORDERS, handles)
            ready -= len(received)
        looker = storage if chance.random() < 0.8 else other
        if chance.random() < 0.05:  # it crashes in the middle
            with monkeypatch.context() as patched:
                patched.setattr(looker.time_series._sampler._store, "memory", unreachable)
                with pytest.raises(StorageUnavailable):
                    await looker.time_series.sample()
        elif chance.random() < 0.9:
            assert await looker.time_series.sample()
            model.look(clock.now_ms(), ready, sent)
        clock.advance(ms=chance.choice([STEP_MS] * 20 + [STEP_MS * 7]))
    assert await other.time_series.sample()
    model.look(clock.now_ms(), ready, sent)

    assert (await other.time_series.latest_namespaces())[""].sent == sent
    for window_ms, step_ms in (
        (limits.HOUR_MS, STEP_MS),
        (QUARTERS.reach_ms, QUARTERS.step_ms),
    ):
        chart = await other.time_series.of_queue(ORDERS, window_ms)
        length = len(chart.columns["ready"])
        means, most, rates = model.expected(step_ms, clock.now_ms(), length)
        assert chart.columns["ready"] == pytest.approx(means, abs=0.006), step_ms
        assert chart.columns["ready_max"] == most, step_ms
        assert chart.columns["sent_per_second"] == rates, step_ms


async def test_totals_count_each_increase_once_after_interruption(
    storage, other, clock, monkeypatch
):
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=1))
    await storage.time_series.sample()
    await send(storage, 5)
    await storage.streams.append(CLICKS, [Record(b"x", "key")] * 3)
    with monkeypatch.context() as patched:
        patched.setattr(storage.time_series._sampler._store, "memory", unreachable)
        with pytest.raises(StorageUnavailable):
            await tick(storage, clock)
    await send(storage, 2)
    await tick(other, clock)

    totals = await other.time_series.latest_namespaces()
    stream = (await other.time_series.latest_streams("default"))["clicks"]

    assert [(totals[name].sent, totals[name].records_in) for name in ("", "default")] == [
        (7, 3)
    ] * 2
    assert stream.records_in == 3


async def test_suspended_sampler_stores_nothing_after_takeover(storage, other, clock, monkeypatch):
    memory = storage.time_series._sampler._store.memory
    visits: list[str] = []

    async def suspended():
        if not visits:
            visits.append("first")
            await send(storage, 3)
            await tick(other, clock)
        return await memory()

    await storage.time_series.sample()
    clock.advance(ms=STEP_MS)
    monkeypatch.setattr(storage.time_series._sampler._store, "memory", suspended)

    count = await storage.time_series.sample()
    total = (await other.time_series.latest_namespaces())[""]

    assert count == 0
    assert (total.sent, total.sampled_at_ms) == (3, clock.now_ms())


async def test_row_of_interrupted_round_does_not_stand(storage, other, clock, monkeypatch):
    """With many logs, the next round did not measure what the interrupted one had."""
    monkeypatch.setattr(limits, "SERIES_LOGS_PER_TICK", 1)
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=1))
    stream_id = (await storage.catalog.stream(CLICKS)).stream_id
    for _ in range(2):
        await tick(storage, clock)
    if is_sampled(stream_id, FINEST.slot(clock.now_ms()), 2):
        await tick(storage, clock)
    await storage.groups.put(READERS, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))
    with monkeypatch.context() as patched:
        patched.setattr(storage.time_series._sampler._hot, "store_latest", interrupted)
        with pytest.raises(StorageUnavailable):
            await tick(storage, clock)
    await storage.groups.delete(READERS)
    for _ in range(4):
        await tick(other, clock)

    chart = await storage.time_series.of_stream(CLICKS, limits.HOUR_MS)

    assert [value for value in chart.columns["groups"][-4:] if value is not None] == [0, 0]


async def next_quarter(storage, clock):
    await tick(storage, clock, ms=QUARTERS.step_ms)


async def of_two_weeks(storage, column):
    return await charted(storage, column, ms=QUARTERS.reach_ms)


@pytest.mark.one_store
async def test_slot_has_its_last_sample_when_others_expired(storage, clock, redis_url):
    clock.advance(ms=QUARTERS.step_ms - clock.now_ms() % QUARTERS.step_ms)
    await send(storage, 2)
    await storage.time_series.sample()
    await send(storage, 2)
    await tick(storage, clock)
    with redis.Redis.from_url(redis_url) as client:
        for key in keys_of_series(redis_url):
            if f":{FINEST.name}:" in key:
                client.delete(key)
    await tick(storage, clock, ms=2 * QUARTERS.step_ms)
    await next_quarter(storage, clock)

    assert await of_two_weeks(storage, "ready") == (4, None, 4, 4)


@pytest.mark.one_store
async def test_restart_writes_no_slots_of_idle_queue(storage, other, clock, redis_url):
    for _ in range(4):
        await next_quarter(storage, clock)
    log_id = (await storage.catalog.queue(ORDERS)).log_id
    before = sizes_of_quarters(redis_url, log_id)
    for _ in range(4):
        await next_quarter(other, clock)

    assert before
    assert sizes_of_quarters(redis_url, log_id) == before
    assert await of_two_weeks(other, "ready") == (0, 0, 0, 0)


def sizes_of_quarters(redis_url, log_id):
    ring = f"{{{log_id}}}:series:{QUARTERS.name}:"
    with redis.Redis.from_url(redis_url) as client:
        return {key: client.strlen(key) for key in keys_of_series(redis_url) if ring in key}


@pytest.mark.one_store
async def test_chunks_of_former_rings_are_not_read(storage, clock, redis_url):
    """A version before had three rings, numbered from 0, in another encoding."""
    log_id = (await storage.catalog.queue(ORDERS)).log_id
    with redis.Redis.from_url(redis_url) as client:
        for step_ms, slots, ring in ((STEP_MS, 60, 0), (QUARTERS.step_ms, 96, 2)):
            chunk = clock.now_ms() // step_ms // slots
            client.set(f"ms:default:{{{log_id}}}:series:{ring}:{chunk}", b"former")
    for _ in range(2):
        await next_quarter(storage, clock)

    assert await of_two_weeks(storage, "ready") == (None, None, 0, 0)


@pytest.mark.one_store
async def test_ten_thousand_queues_take_bounded_calls_and_memory(
    engines, clock, redis_url, database_url, monkeypatch
):
    _make_queues(database_url, 10_000)
    calls = []
    pipeline = engines.time_series._hot._pipeline

    def counted(run):
        def call(name, *rest, **more):
            calls.append(name)
            return run(name, *rest, **more)

        return call

    monkeypatch.setattr(pipeline, "read", counted(pipeline.read))
    monkeypatch.setattr(pipeline, "write", counted(pipeline.write))
    await engines.time_series.sample()
    calls.clear()

    clock.advance(ms=STEP_MS)
    looked_at = await engines.time_series.sample()
    ticking = list(calls)
    calls.clear()
    latest = await engines.time_series.latest_queues("default")
    again = await engines.time_series.latest_queues("default")

    assert looked_at == len(latest) == 10_000
    assert again is latest
    assert ticking.count("sample_queue") == 10_000
    assert (
        len(ticking) - 10_000 <= 30
    )  # rates are known now: 20 calls keep them; claim, totals, finish
    assert calls == ["get_latest_samples", "get_latest_samples"]
    with redis.Redis.from_url(redis_url) as client:
        chunks = set(client.scan_iter("*series:*", count=10_000))
        memory_usage = client.memory_usage("ms:default:{series}:queues", samples=0)
        assert sum(client.memory_usage(key) for key in list(chunks)[:300]) / 100 < 2_000
    assert memory_usage / 10_000 < 300


def _make_queues(database_url, count):
    import psycopg

    from storage.postgres.database import conninfo

    with psycopg.connect(conninfo(database_url), autocommit=True) as connection:
        connection.execute(
            "insert into queues (log_id, namespace, name, spec, version, created_at_ms, changed_at_ms)"
            " select lpad(to_hex(n), 16, '0'), 'default', 'q-' || n, '{}', 1, 0, 0"
            " from generate_series(1, %s) n",
            [count],
        )


async def test_logs_beyond_sampling_bound_take_turns(engines, clock, monkeypatch):
    monkeypatch.setattr(limits, "SERIES_LOGS_PER_TICK", 2)
    names = [QueueName(f"q{nth}") for nth in range(4)]
    for name in names:
        await engines.catalog.put_queue(name, QueueSpec())
    for _ in range(2):
        await engines.time_series.sample()
        clock.advance(ms=STEP_MS)
    for name in names:
        await send(engines, 20, name)
    for _ in range(6):
        await engines.time_series.sample()
        clock.advance(ms=STEP_MS)
    clock.advance(ms=-STEP_MS)

    charts = await engines.time_series.of_queues(names, limits.HOUR_MS)

    for chart in charts.values():
        depth, rates = chart.columns["ready"][-6:], chart.columns["sent_per_second"][-6:]
        assert sorted(value is None for value in depth) == [False] * 3 + [True] * 3
        assert {value for value in depth if value is not None} == {20}
        assert {value for value in rates if value is not None} == {0, 1}


def test_column_names_are_unique():
    shown = [column.chart_name for column in QUEUE.columns]

    assert len(set(shown)) == len(shown)


async def test_sample_counts_recent_consumers(storage, clock):
    consumer = queue_consumer("shop", ConsumerProtocol.REST, "192.0.2.7", b"test/1")
    await storage.queues.receive(ORDERS, consumer=consumer)
    await storage.queue_consumers.report()
    await send(storage, 1)
    await tick(storage, clock)
    before = (await storage.time_series.latest_queues("default"))["orders"].consumers
    await tick(storage, clock, ms=limits.CONSUMER_WINDOW_MS)
    after = (await storage.time_series.latest_queues("default"))["orders"].consumers

    assert (before, after) == (1, 0)


async def test_history_of_another_process_reaches_beyond_the_hour(storage, other, clock):
    """A state is traced in the samples, so that each process finds the same start."""
    for _ in range(QUARTERS.step_ms // STEP_MS + 2):
        await tick(storage, clock)
    began_ms = clock.now_ms()
    await send(storage, 3)
    for _ in range((limits.HOUR_MS + QUARTERS.step_ms) // STEP_MS + 2):
        await tick(storage, clock)

    histories = await other.time_series.queue_histories(
        [ORDERS, QueueName("missing")], ["ready", "sent_per_second"]
    )

    [history] = histories.values()
    start = history.start_of(StateCondition(("ready",)))
    assert start is not None
    assert not start.or_earlier
    assert abs(start.at_ms - began_ms) <= QUARTERS.step_ms
    assert set(history.hour.columns) == {"ready", "sent_per_second"}
    assert not history.has_been_positive("sent_per_second", limits.MINUTE_MS)
    assert history.has_been_positive("sent_per_second", limits.DAY_MS)
