"""Time-series rings: encoding and roll-up, compared with plain lists."""

from statistics import fmean
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.timeseries.rollup import (
    Addition,
    Tick,
    chart,
    encode_row,
    is_sampled,
    rate,
    read_chunk,
    read_chunks,
    roll_up,
    rows_of,
    width,
)
from storage.domain.timeseries.samples import (
    FINEST,
    GROUP,
    QUARTERS,
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
from storage.timeseries.state import ResourceState
from storage.timeseries.totals import add_all, increments_of, total_of, with_increments

SHAPES: list[Shape[Any]] = [QUEUE, STREAM, GROUP, TOTAL]
COUNTS = st.integers(0, 2**53 - 1)

rows = st.lists(st.tuples(COUNTS | st.none(), COUNTS, st.integers(-5, 5)), min_size=1, max_size=60)


def addition(nth, row, before=None):
    return Addition(FINEST, 600 * FINEST.chunk_slots + nth, before, row)


@given(rows, st.none() | st.tuples(COUNTS, COUNTS, COUNTS))
def test_chunk_round_trips(samples, before):
    additions = [addition(nth, row, before) for nth, row in enumerate(samples)]
    packed = additions[0].begin + b"".join(one.entry for one in additions)

    chunk = read_chunk(packed, additions[0].slot, 3)

    assert chunk.before == before
    assert chunk.rows == {one.slot: one.row for one in additions}


def test_column_missing_in_older_chunk_is_unknown():
    older = addition(0, (3, 4), before=(1, 2))

    chunk = read_chunk(older.begin + older.entry, 0, 3)

    assert chunk.before == (1, 2, None)
    assert chunk.rows == {0: (3, 4, None)}


def test_column_of_newer_version_is_ignored():
    newer = addition(0, (3, 4, 5))

    chunk = read_chunk(newer.begin + newer.entry, 0, 2)

    assert chunk.rows == {0: (3, 4)}


def test_last_sample_of_a_slot_counts():
    first, second = addition(3, (1,)), addition(3, (2,))

    chunk = read_chunk(first.begin + first.entry + second.entry, 0, 1)

    assert chunk.rows == {3: (2,)}


@given(st.sampled_from(SHAPES), st.data())
def test_standing_values_roll_up_to_their_row(shape, data):
    values = tuple(data.draw(st.none() | COUNTS) for _ in shape.names)
    row = encode_row(shape, values)

    rolled = roll_up(shape, [row] * 3, [2**53, 2**53 + 1, 2**53 + 2])

    assert len(row) == width(shape)
    assert rolled == row


def test_measures_of_columns_are_consistent():
    for shape in SHAPES:
        assert {shape.columns[nth].measure for nth in shape.counts} == {Measure.COUNT}
        for column in shape.columns:
            if column.name.endswith("_at_ms"):
                assert column.measure in (Measure.SINCE, Measure.LAST)


def test_window_selects_the_ring():
    assert ring_for(1) is FINEST
    assert ring_for(limits.HOUR_MS) is FINEST
    assert ring_for(limits.HOUR_MS + 1) is QUARTERS
    assert ring_for(400 * limits.DAY_MS) is QUARTERS


def test_chunk_of_finest_ring_is_a_slot_of_the_longer():
    assert FINEST.chunk_slots * FINEST.step_ms == QUARTERS.step_ms


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
    """In-memory stand-in for a ring of one resource."""

    def __init__(self, ring):
        self.ring = ring
        self.chunks: dict[int, bytes] = {}

    def add(self, row):
        if row is not None:
            chunk = self.ring.chunk(row.slot)
            self.chunks[chunk] = self.chunks.get(chunk, row.begin) + row.entry

    def rows(self, first, last, otherwise=None):
        chunks = read_chunks(self.chunks, self.ring, GROUP)
        return rows_of(chunks, self.ring, first, last, otherwise)


looks = st.lists(
    st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 3), st.booleans()),
    min_size=1,
    max_size=200,
)


@given(looks, st.integers(0, 200))
def test_finest_ring_matches_a_list_of_all_samples(samples, begin):
    state, store = ResourceState(GROUP, "0"), Store(FINEST)
    by_slot: dict[int, tuple[int, int]] = {}
    committed, first = 0, begin + 170_000_000  # an arbitrary slot
    for slot, (is_measured, lag, more, is_loaded) in enumerate(samples, start=first):
        if is_measured:
            committed += more
            values = GROUP.values(GroupSample(lag_records=lag, committed=committed))
            state.is_loaded = is_loaded
            store.add(state.record(values, slot * FINEST.step_ms + slot % 7))
            by_slot[slot] = (lag, slot * FINEST.step_ms + slot % 7)
    stood = None if state.values is None else encode_row(GROUP, state.values)

    drawn = chart(
        GROUP,
        ring=FINEST,
        slots=range(first, first + len(samples)),
        ticks={slot: Tick(at_ms) for slot, (_, at_ms) in by_slot.items()},
        rows=store.rows(first, first + len(samples) - 1, stood),
        resource_id="",
    )

    expected = tuple(by_slot.get(first + nth, (None,))[0] for nth in range(len(samples)))
    assert drawn.columns["lag_records"] == drawn.columns["lag_records_max"] == expected


lags = st.lists(st.tuples(st.integers(0, 99), st.none() | st.integers(0, 5_000)), min_size=1)


@given(lags)
def test_rollup_has_mean_maximum_and_longest_wait(samples):
    times_ms = [10_000 + nth * FINEST.step_ms for nth in range(len(samples))]
    rows = [
        encode_row(GROUP, GROUP.values(GroupSample(lag, since, committed=nth)))
        for nth, (lag, since) in enumerate(samples)
    ]

    row = dict(zip(_NUMBERS, roll_up(GROUP, rows, times_ms), strict=True))

    waits = [
        at - since for (_, since), at in zip(samples, times_ms, strict=True) if since is not None
    ]
    assert row["lag_records"] is not None
    assert abs(row["lag_records"] - fmean(lag * 100 for lag, _ in samples)) <= 0.5
    assert row["lag_records_max"] == max(lag for lag, _ in samples)
    assert row["unread_at_ms"] == (times_ms[-1] - max(waits) if waits else None)
    assert row["committed"] == len(samples) - 1


_NUMBERS = (
    *("lag_records", "lag_records_max", "unread_at_ms", "members", "last_commit_ms", "committed"),
)


def test_totals_sum_counts_and_take_the_worst_age():
    queue_sample = QueueSample(ready=2, oldest_ready_at_ms=500, sent=10)
    two = QueueSample(ready=3, oldest_ready_at_ms=200, sent=7)
    increments: dict[str, int] = {}
    add_all(increments, increments_of(QUEUE, None, QUEUE.values(queue_sample)))
    before = QUEUE.values(QueueSample(sent=9))
    add_all(increments, increments_of(QUEUE, before, QUEUE.values(two)))
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


def test_total_counts_increase_and_levels_stay():
    before = TOTAL.values(TotalSample(sent=100, ready=7))

    total = TOTAL.made(with_increments(before, {"sent": 5}), ())

    assert (total.sent, total.ready, total.received) == (105, 7, 0)
