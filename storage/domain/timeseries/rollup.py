"""Rollup of samples into the rows of a ring, and of rows into a chart.

A ring has a row for a slot only where something changed: in other slots the values are as before, if the slot was
measured at all, which `Tick`s record. A row of a ring has as many numbers as its columns need
(`storage.domain.timeseries.samples`):

    LEVEL   the mean, in hundredths              SINCE   when it would have begun, had it ended with the slot
    PEAK    the mean, in hundredths; the maximum COUNT   the count           LAST, HIGHEST   the value
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from storage.domain import limits
from storage.domain.timeseries.samples import (
    Measure,
    Ring,
    SampleColumn,
    Samples,
    Shape,
    Values,
)

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
    return sum(_column_width(column) for column in shape.columns)


def _column_width(column: SampleColumn) -> int:
    return 2 if column.measure is Measure.PEAK else 1


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


def _hundredths(value: int | None) -> int | None:
    return None if value is None else value * HUNDREDTHS


def roll_up(shape: Shape[Any], rows: Sequence[Row], times_ms: Sequence[int]) -> Row:
    """Return the row of a longer slot, from its rows of the finest ring and their times."""
    columns = zip(*rows, strict=True)
    rolled: list[int | None] = []
    for column in shape.columns:
        numbers = next(columns)
        match column.measure:
            case Measure.LEVEL:
                rolled.append(_mean(numbers))
            case Measure.PEAK:
                present = [value for value in next(columns) if value is not None]
                rolled += (_mean(numbers), max(present, default=None))
            case Measure.SINCE:
                rolled.append(_longest_since(numbers, times_ms))
            case Measure.HIGHEST:
                present = [value for value in numbers if value is not None]
                rolled.append(max(present, default=None))
            case _:
                rolled.append(numbers[-1])
    return tuple(rolled)


def _mean(numbers: Row) -> int | None:
    present = [value for value in numbers if value is not None]
    return (sum(present) + len(present) // 2) // len(present) if present else None


def _longest_since(numbers: Row, times_ms: Sequence[int]) -> int | None:
    ages = [
        at_ms - since for since, at_ms in zip(numbers, times_ms, strict=True) if since is not None
    ]
    return times_ms[-1] - max(ages) if ages else None


# Chunks

_BEFORE = -1  # slot number of the row before a chunk's first row
_decoder = msgspec.msgpack.Decoder(list[int | None])
_encoder = msgspec.msgpack.Encoder()


class Addition(NamedTuple):
    """A row to append to a ring; `before` stood before it, None for a new resource."""

    ring: Ring
    slot: int
    before: Row | None
    row: Row

    @property
    def begin(self) -> bytes:
        """Encode the beginning of the chunk, written if the chunk does not exist."""
        return _encode_entry(_BEFORE, self.before or ())

    @property
    def entry(self) -> bytes:
        """Encode the row."""
        return _encode_entry(self.slot % self.ring.chunk_slots, self.row)


def _encode_entry(nth: int, row: Row) -> bytes:
    packed = _encoder.encode((nth, *row))
    return len(packed).to_bytes(2, "little") + packed


class SeriesChunk(msgspec.Struct, frozen=True):
    """The row before a chunk's first row, and its rows by slot.

    The later row of a slot that was written twice counts.
    """

    before: Row | None
    rows: Mapping[int, Row]


def read_chunk(packed: bytes, first_slot: int, wide: int) -> SeriesChunk:
    """Decode a chunk that begins at that slot, with rows of `wide` numbers.

    A column that the chunk does not have is None.
    """
    entries = {
        nth: (*row[:wide], *(None,) * (wide - len(row))) if row else None
        for nth, *row in _entries(packed)
    }
    before = entries.pop(_BEFORE, None)
    return SeriesChunk(
        before, {first_slot + (nth or 0): row for nth, row in entries.items() if row is not None}
    )


def read_chunks(
    packed: Mapping[int, bytes], ring: Ring, shape: Shape[Any]
) -> dict[int, SeriesChunk]:
    """Decode chunks of a ring, by number."""
    wide = width(shape)
    return {
        number: read_chunk(chunk, number * ring.chunk_slots, wide)
        for number, chunk in packed.items()
    }


def _entries(packed: bytes) -> Iterator[list[int | None]]:
    view = memoryview(packed)
    place = 0
    while place < len(view):
        end = place + 2 + int.from_bytes(view[place : place + 2], "little")
        yield _decoder.decode(view[place + 2 : end])
        place = end


# Charts


def rows_of(
    chunks: Mapping[int, SeriesChunk], ring: Ring, first: int, last: int, otherwise: Row | None
) -> list[Row | None]:
    """Return a row for each slot from `first` to `last`.

    The row is `otherwise` if no chunk exists at all.
    """
    ordered = [chunks.get(chunk_number) for chunk_number in ring.chunks(first, last)]
    existing = [chunk for chunk in ordered if chunk is not None]
    now = existing[0].before if existing else otherwise
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
    columns: Collection[str] | None = None,
) -> Samples:
    """Return the chart of `slots`.

    `rows` and `ticks` also cover SERIES_RATE_STEPS slots before, for the first rate. `columns`: names of a chart; None for
    all.
    """
    ahead = len(rows) - len(slots)
    first = slots.start - ahead
    measured = [
        _measured(ticks.get(first + nth), first + nth, resource_id) for nth in range(len(rows))
    ]
    measured_rows = [
        row if tick is not None else None for row, tick in zip(rows, measured, strict=True)
    ]
    values: dict[str, tuple[float | None, ...]] = {}
    place = 0
    for column in shape.columns:
        for name, series in _series_of(column, measured_rows, measured, place, columns):
            values[name] = series[ahead:]
        place += _column_width(column)
    return Samples(step_ms=ring.step_ms, start_ms=slots.start * ring.step_ms, columns=values)


def _series_of(
    column: SampleColumn,
    rows: Sequence[Row | None],
    ticks: Sequence[Tick | None],
    place: int,
    columns: Collection[str] | None,
) -> Iterator[tuple[str, tuple[float | None, ...]]]:
    """Yield the names and values of a column in a chart, of those that are requested."""
    name, highest = column.chart_name, f"{column.chart_name}_max"
    if columns is None or name in columns:
        match column.measure:
            case Measure.LEVEL | Measure.PEAK:
                yield name, _levels(rows, place)
            case Measure.SINCE:
                yield name, _ages(rows, ticks, place)
            case Measure.HIGHEST:
                yield name, _plain(rows, place)
            case Measure.COUNT:
                yield name, _rates(rows, ticks, place)
            case Measure.LAST:
                pass
    if column.measure is Measure.PEAK and (columns is None or highest in columns):
        yield highest, _plain(rows, place + 1)


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
