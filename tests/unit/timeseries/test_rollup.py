"""Time-series rings: encoding and roll-up, compared with plain lists."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.timeseries.changes import LONGER, ResourceState, SlotProgress
from storage.domain.timeseries.rollup import (
    Tick,
    added,
    chart,
    decode_row,
    encode_row,
    initial_bucket,
    is_sampled,
    rate,
    read_chunk,
    rows_of,
    width,
)
from storage.domain.timeseries.samples import (
    FINEST,
    GROUP,
    QUEUE,
    RINGS,
    STREAM,
    TOTAL,
    GroupSample,
    Measure,
    QueueSample,
    Shape,
    TotalSample,
    ring_for,
)
from storage.timeseries.totals import add_increments, total_of

SHAPES: list[Shape[Any]] = [QUEUE, STREAM, GROUP, TOTAL]
COUNTS = st.integers(0, 2**53 - 1)

rows = st.lists(st.tuples(COUNTS | st.none(), COUNTS, st.integers(-5, 5)), min_size=1, max_size=60)


@given(rows, st.none() | st.tuples(COUNTS, COUNTS, COUNTS))
def test_chunk_round_trips(told, before):
    packed = initial_bucket(before)
    last = before
    for nth, row in enumerate(told):
        packed += added(nth, row, last if nth % 7 else None)
        last = row

    chunk = read_chunk(packed, 600, 3)

    assert chunk.begins == before
    assert chunk.rows == {600 + nth: row for nth, row in enumerate(told)}


def test_column_missing_in_older_chunk_is_unknown():
    chunk = read_chunk(initial_bucket((1, 2)) + added(0, (3, 4), (1, 2)), 0, 3)

    assert chunk.begins == (1, 2, None)
    assert chunk.rows == {0: (3, 4, None)}


def test_column_of_newer_version_is_ignored():
    chunk = read_chunk(initial_bucket(None) + added(0, (3, 4, 5), None), 0, 2)

    assert chunk.rows == {0: (3, 4)}


def test_last_sample_of_a_slot_counts():
    packed = initial_bucket(None) + added(3, (1,), None) + added(3, (2,), None)

    assert read_chunk(packed, 0, 1).rows == {3: (2,)}


@given(st.sampled_from(SHAPES), st.data())
def test_row_of_finest_ring_round_trips_as_sample(shape, data):
    values = tuple(data.draw(st.none() | COUNTS) for _ in shape.names)

    row = encode_row(shape, values)

    assert len(row) == width(shape)
    assert decode_row(shape, row) == values


def test_measures_of_columns_are_consistent():
    for shape in SHAPES:
        assert {shape.columns[nth].measure for nth in shape.counts} == {Measure.COUNT}
        for column in shape.columns:
            if column.name.endswith("_at_ms"):
                assert column.measure in (Measure.SINCE, Measure.LAST)


def test_window_selects_the_ring():
    assert ring_for(1) is FINEST
    assert ring_for(limits.HOUR_MS) is FINEST
    assert ring_for(limits.HOUR_MS + 1) is RINGS[1]
    assert ring_for(limits.DAY_MS) is RINGS[1]
    assert ring_for(400 * limits.DAY_MS) is RINGS[2]


def test_chunk_outlives_every_window_that_can_read_it():
    for ring in RINGS:
        chunk_ms = ring.chunk_slots * ring.step_ms
        asked_ms = ring.reach_ms + limits.SERIES_RATE_STEPS * ring.step_ms

        assert ring.life_ms >= asked_ms + chunk_ms


@given(st.integers(1, 7), st.integers(0, 2**64 - 1))
def test_resource_is_measured_once_per_cycle(parts, number):
    turns = [slot for slot in range(parts) if is_sampled(f"{number:016x}", slot, parts)]

    assert len(turns) == 1


def test_decreasing_counter_has_no_rate():
    assert rate(5, 4, 10_000) is None
    assert rate(5, 25, 10_000) == 2
    assert rate(5, 25, 0) is None


class Store:
    """In-memory stand-in for the rings of one resource."""

    def __init__(self):
        self.chunks: dict[tuple[int, int], bytes] = {}

    def take(self, additions):
        for ring, chunk, begin, samples in additions:
            key = (ring.nth, chunk)
            if key not in self.chunks:
                assert begin
                self.chunks[key] = begin
            self.chunks[key] += samples

    def rows(self, ring, first, last, otherwise):
        chunks = {
            number: read_chunk(
                self.chunks[ring.nth, number], number * ring.chunk_slots, width(GROUP)
            )
            for number in ring.chunks(first, last)
            if (ring.nth, number) in self.chunks
        }
        return rows_of(chunks, ring, first, last, otherwise)


looks = st.lists(
    st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=400
)


@given(looks, st.integers(0, 200))
def test_rings_match_a_list_of_all_samples(told, begin):
    resource_state, store = ResourceState(GROUP, "0"), Store()
    longer: list[SlotProgress] = []
    by_slot: dict[int, tuple[int, int, int]] = {}
    begin += 170_000_000  # an arbitrary slot
    committed = 0
    for nth, (looked, lag, more) in enumerate(told):
        slot = begin + nth
        at_ms = slot * FINEST.step_ms + nth % 7
        if not looked:
            continue
        committed += more
        now = [ring.slot(at_ms) for ring in LONGER]
        if not longer:
            longer = [SlotProgress(one, 0, 0) for one in now]
        for place, ring in enumerate(LONGER):
            if longer[place].slot != now[place]:
                additions, _ = resource_state.close(ring, longer[place])
                store.take(additions)
                longer[place] = SlotProgress(now[place], 0, longer[place].last_at_ms)
        values = GROUP.values(GroupSample(lag_records=lag, committed=committed))
        store.take(resource_state.record(values, at_ms, longer))
        longer = [SlotProgress(one.slot, one.samples + 1, at_ms) for one in longer]
        by_slot[slot] = (lag, committed, at_ms)
    if not by_slot:
        return
    end = begin + len(told) - 1

    for ring in RINGS:
        per = ring.step_ms // FINEST.step_ms
        first, last = begin // per - 2, end // per - (ring is not FINEST)
        if last < first:
            continue
        assert resource_state.values is not None
        stood = encode_row(GROUP, resource_state.values)
        within = {
            slot: [by_slot[at] for at in range(slot * per, slot * per + per) if at in by_slot]
            for slot in range(first, last + 1)
        }
        if ring is not FINEST:  # a slot is rolled up at the first sample after it
            open_slot = longer[ring.nth - 1].slot
            within = {slot: seen if slot < open_slot else [] for slot, seen in within.items()}
        ticks = {slot: Tick(seen[-1][2]) for slot, seen in within.items() if seen}
        actual_chart = chart(
            GROUP,
            ring=ring,
            slots=range(first, last + 1),
            ticks=ticks,
            rows=store.rows(ring, first, last, stood),
            resource_id="",
        )
        for nth, seen in enumerate(within.values()):
            mean, most = (
                actual_chart.columns["lag_records"][nth],
                actual_chart.columns["lag_records_max"][nth],
            )
            if seen:
                assert most == max(lag for lag, _, _ in seen)
                assert mean is not None
                assert abs(mean - sum(lag for lag, _, _ in seen) / len(seen)) <= 0.006
            else:
                assert mean is None
                assert most is None


def test_totals_sum_counts_and_take_the_worst_age():
    queue_sample = QueueSample(ready=2, oldest_ready_at_ms=500, sent=10)
    two = QueueSample(ready=3, oldest_ready_at_ms=200, sent=7)
    increments: dict[str, int] = {}
    add_increments(increments, QUEUE, None, QUEUE.values(queue_sample))
    add_increments(increments, QUEUE, QUEUE.values(QueueSample(sent=9)), QUEUE.values(two))
    group = GROUP.values(GroupSample(lag_records=4))

    total = total_of(
        TotalSample(sent=100),
        {
            QUEUE.kind: [QUEUE.values(queue_sample), QUEUE.values(two)],
            STREAM.kind: [],
            GROUP.kind: [group, GROUP.values(GroupSample(lag_records=9))],
        },
        increments,
    )

    assert (total.queues, total.streams, total.groups) == (2, 0, 2)
    assert (total.ready, total.oldest_ready_at_ms, total.lag_records) == (5, 200, 9)
    assert (total.sent, total.messages_in) == (110, 10)
