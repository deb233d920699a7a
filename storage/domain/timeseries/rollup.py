"""Rollup of samples into the rows of a ring, and of rows into a chart.

A ring has a row for a slot only where something changed: in other slots the values are as before, if the slot was
measured at all, which `Tick`s record. A row of a ring has as many numbers as its columns need
(`storage.domain.timeseries.samples`):

    LEVEL   the mean, in hundredths              SINCE   when it would have begun, had it ended with the slot
    PEAK    the mean, in hundredths; the maximum COUNT   the count           LAST   the value
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.timeseries.samples import Measure, Ring, SampleColumn, Samples, Shape, Values

HUNDREDTHS = 100

Row = tuple[int | None, ...]
"""A slot of a ring: `width(shape)` numbers."""


class Tick(msgspec.Struct, frozen=True, gc=False):
    """A measured slot, and when it was measured.

    `parts`: one in this many resources was sampled, according to `is_sampled`; in a longer step each was.
    """

    at_ms: int
    parts: int = 1


def is_sampled(resource_id: str, slot: int, parts: int) -> bool:
    """Return whether a resource is sampled in that slot.

    Totals, which have no id, are sampled in each.
    """
    return parts == 1 or not resource_id or int(resource_id, 36) % parts == slot % parts


def width(shape: Shape[Any]) -> int:
    """Return how many numbers a row has."""
    return sum(2 if column.measure is Measure.PEAK else 1 for column in shape.columns)


def encode_row(shape: Shape[Any], values: Values) -> Row:
    """Return the row of a slot throughout which these values held."""
    row: list[int | None] = []
    for value, column in zip(values, shape.columns, strict=True):
        match column.measure:
            case Measure.LEVEL:
                row.append(_hundredths(value))
            case Measure.PEAK:
                row += (_hundredths(value), value)
            case _:
                row.append(value)
    return tuple(row)


def decode_row(shape: Shape[Any], row: Row) -> Values:
    """Return the values of a row of the finest ring, which comes from a single sample."""
    values: list[int | None] = []
    numbers = iter(row)
    for column in shape.columns:
        value = next(numbers)
        match column.measure:
            case Measure.LEVEL:
                values.append(None if value is None else value // HUNDREDTHS)
            case Measure.PEAK:
                values.append(next(numbers))
            case _:
                values.append(value)
    return tuple(values)


def _hundredths(value: int | None) -> int | None:
    return None if value is None else value * HUNDREDTHS


class SlotAccumulator:
    """Accumulator of a resource's values over the samples of one slot of a longer step.

    It is updated only when values change. Samples are numbered from 0; `begins` is the first one that includes the
    resource.
    """

    __slots__ = ("_columns", "_longest", "_most", "_sums", "_upto", "_weights")

    def __init__(self, columns: Sequence[SampleColumn], begins: int = 0) -> None:
        self._columns = columns
        self._upto = begins
        self._sums = [0] * len(columns)
        self._weights = [0] * len(columns)
        self._most: list[int | None] = [None] * len(columns)
        self._longest = [-1] * len(columns)

    def stood(self, values: Values, end_sample: int, last_at_ms: int) -> None:
        """Record that these values held up to and excluding sample number `end_sample`.

        `last_at_ms` is the time of the last of these samples.
        """
        stood_for, self._upto = end_sample - self._upto, end_sample
        if stood_for <= 0:
            return
        for nth, value in enumerate(values):
            if value is None:
                continue
            measure = self._columns[nth].measure
            if measure is Measure.SINCE:
                self._longest[nth] = max(self._longest[nth], last_at_ms - value)
            elif measure is Measure.LEVEL or measure is Measure.PEAK:
                self._sums[nth] += value * stood_for
                self._weights[nth] += stood_for
                most = self._most[nth]
                self._most[nth] = value if most is None or value > most else most

    def row(self, values: Values, last_at_ms: int) -> Row:
        """Return the row of the slot, which ended with these values at that time.

        The values must have been passed to `stood`.
        """
        row: list[int | None] = []
        for nth, column in enumerate(self._columns):
            match column.measure:
                case Measure.LEVEL:
                    row.append(self._mean(nth))
                case Measure.PEAK:
                    row += (self._mean(nth), self._most[nth])
                case Measure.SINCE:
                    longest = self._longest[nth]
                    row.append(None if longest < 0 else last_at_ms - longest)
                case _:
                    row.append(values[nth])
        return tuple(row)

    def _mean(self, nth: int) -> int | None:
        weight = self._weights[nth]
        return None if not weight else round(self._sums[nth] * HUNDREDTHS / weight)


# Chunks

_NOTHING = -1  # slot number of the row that a chunk begins with
_decoder = msgspec.msgpack.Decoder(list[int | None])
_encoder = msgspec.msgpack.Encoder()


def initial_bucket(row: Row | None) -> bytes:
    """Encode the beginning of a chunk: the row before it, None for no row."""
    return _packed([_NOTHING] if row is None else [_NOTHING, (1 << len(row)) - 1, *row])


def added(nth: int, row: Row, before: Row | None) -> bytes:
    """Encode the `nth` slot of a chunk.

    Only the differences from `before`, the chunk's last row, if that is known.
    """
    if before is None or len(before) != len(row):
        return _packed([nth, (1 << len(row)) - 1, *row])
    changed = [place for place, value in enumerate(row) if value != before[place]]
    return _packed([nth, sum(1 << place for place in changed), *(row[place] for place in changed)])


def _packed(entry: list[int | None]) -> bytes:
    packed = _encoder.encode(entry)
    return len(packed).to_bytes(2, "little") + packed


class SeriesChunk(msgspec.Struct, frozen=True):
    """The row before a chunk's first row, and its rows by slot.

    The later row of a slot that was written twice counts.
    """

    begins: Row | None
    rows: Mapping[int, Row]


def read_chunk(packed: bytes, first_slot: int, wide: int) -> SeriesChunk:
    """Decode a chunk that begins at that slot, with rows of `wide` numbers.

    A column that the chunk does not have is None.
    """
    begins: Row | None = None
    now: list[int | None] = [None] * wide
    rows: dict[int, Row] = {}
    for nth, mask, values in _entries(packed):
        for value in values:
            place = (mask & -mask).bit_length() - 1
            mask &= mask - 1
            if place < wide:
                now[place] = value
        if nth == _NOTHING:
            begins = tuple(now) if values else None
        else:
            rows[first_slot + nth] = tuple(now)
    return SeriesChunk(begins, rows)


def _entries(packed: bytes) -> Iterator[tuple[int, int, list[int | None]]]:
    view = memoryview(packed)
    place = 0
    while place < len(view):
        size = int.from_bytes(view[place : place + 2], "little")
        place += 2
        nth, *rest = _decoder.decode(view[place : place + size])
        place += size
        yield nth or 0, (rest[0] or 0) if rest else 0, rest[1:]


# Charts


def rows_of(
    chunks: Mapping[int, SeriesChunk], ring: Ring, first: int, last: int, otherwise: Row | None
) -> list[Row | None]:
    """Return a row for each slot from `first` to `last`.

    The row is `otherwise` if no chunk exists at all.
    """
    ordered = [chunks.get(chunk_number) for chunk_number in ring.chunks(first, last)]
    existing = [chunk for chunk in ordered if chunk is not None]
    now = existing[0].begins if existing else otherwise
    rows: list[Row | None] = []
    slot = ring.chunk(first) * ring.chunk_slots
    for chunk in ordered:
        for slot_number in range(slot, slot + ring.chunk_slots):
            if chunk is not None:
                now = chunk.rows.get(slot_number, now)
            if first <= slot_number <= last:
                rows.append(now)
        slot += ring.chunk_slots
    return rows


def chart(
    shape: Shape[Any],
    *,
    ring: Ring,
    slots: range,
    ticks: Mapping[int, Tick],
    rows: Sequence[Row | None],
    resource_id: str,
) -> Samples:
    """Return the chart of `slots`.

    `rows` and `ticks` also cover SERIES_RATE_STEPS slots before, for the first rate.
    """
    ahead = len(rows) - len(slots)
    first = slots.start - ahead
    measured = [
        _measured(ticks.get(first + nth), first + nth, resource_id) for nth in range(len(rows))
    ]
    measured_rows = [
        row if tick is not None else None for row, tick in zip(rows, measured, strict=True)
    ]
    columns: dict[str, tuple[float | None, ...]] = {}
    place = 0
    for column in shape.columns:
        match column.measure:
            case Measure.LEVEL:
                columns[column.chart_name] = _levels(measured_rows, place)[ahead:]
            case Measure.PEAK:
                columns[column.chart_name] = _levels(measured_rows, place)[ahead:]
                columns[f"{column.chart_name}_max"] = _plain(measured_rows, place + 1)[ahead:]
                place += 1
            case Measure.SINCE:
                columns[column.chart_name] = _ages(measured_rows, measured, place)[ahead:]
            case Measure.COUNT:
                columns[column.chart_name] = _rates(measured_rows, measured, place)[ahead:]
            case Measure.LAST:
                pass
        place += 1
    return Samples(step_ms=ring.step_ms, start_ms=slots.start * ring.step_ms, columns=columns)


def _measured(tick: Tick | None, slot: int, resource_id: str) -> Tick | None:
    return tick if tick is not None and is_sampled(resource_id, slot, tick.parts) else None


def _levels(rows: Sequence[Row | None], place: int) -> tuple[float | None, ...]:
    return tuple(
        None if row is None or (value := row[place]) is None else value / HUNDREDTHS for row in rows
    )


def _plain(rows: Sequence[Row | None], place: int) -> tuple[float | None, ...]:
    return tuple(None if row is None else row[place] for row in rows)


def _ages(
    rows: Sequence[Row | None], ticks: Sequence[Tick | None], place: int
) -> tuple[float | None, ...]:
    return tuple(
        None if row is None or tick is None else _age(row[place], tick.at_ms)
        for row, tick in zip(rows, ticks, strict=True)
    )


def _age(since_ms: int | None, at_ms: int) -> int:
    return 0 if since_ms is None else max(0, at_ms - since_ms)


def _rates(
    rows: Sequence[Row | None], ticks: Sequence[Tick | None], place: int
) -> tuple[float | None, ...]:
    rates: list[float | None] = []
    before: tuple[int, int, int] | None = None  # slot, when, count
    for nth, (row, tick) in enumerate(zip(rows, ticks, strict=True)):
        count = None if row is None else row[place]
        if count is None or tick is None:
            rates.append(None)
            continue
        steps_max = limits.SERIES_RATE_STEPS * tick.parts
        has_previous = before is not None and nth - before[0] <= steps_max
        rates.append(
            rate(before[2], count, tick.at_ms - before[1]) if has_previous and before else None
        )
        before = (nth, tick.at_ms, count)
    return tuple(rates)


def rate(before: int, after: int, ms: int) -> float | None:
    """Return the rate per second; None when the count restarted, or no time has passed."""
    if after < before or ms <= 0:
        return None
    return round((after - before) * limits.SECOND_MS / ms, 3)
