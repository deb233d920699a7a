"""Changes of a view's rows, as its sinks get them.

A sink sees the rows for which its condition holds. What a batch does to them is an insert, an update or a delete:

    before    after     change
    not       visible   insert
    visible   visible   update, if the row is another one
    visible   not       delete
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec

from storage.domain import limits
from storage.domain.filters.conditions import Path, SqlCondition
from storage.domain.log.json_body import NOTHING
from storage.domain.views.final_position import FinalPosition
from storage.domain.views.plan import ViewPlan
from storage.domain.views.sink import Emit, ViewSink, column_of

_row = msgspec.json.Decoder(dict[str, Any])


class ChangeKind(StrEnum):
    """Kind of a change. final: a row of an ended window; correction: a later change of it."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    FINAL = "final"
    CORRECTION = "correction"


class RowUpdate(NamedTuple):
    """Row before and after a batch, as JSON; None where there is none that a read returns.

    `replaced`: rows that this one replaces, whose keys are others.
    """

    key: bytes
    before: str | None
    after: str | None
    window_end_ms: int | None = None
    replaced: tuple[str, ...] = ()


class SinkMessage(NamedTuple):
    """Message for a sink: a change, the row's key as text, and the row as JSON."""

    sink: str
    change: ChangeKind
    key: str
    row: str | None
    before: str | None

    @property
    def rows(self) -> tuple[str | None, ...]:
        """The rows."""
        return self.row, self.before


class SinkReport(msgspec.Struct, frozen=True):
    """Messages that a back-test has for a sink: their number, and the first of them."""

    sink: str
    messages: int = 0
    samples: tuple[SinkMessage, ...] = ()

    def with_messages(self, messages: Sequence[SinkMessage], most: int) -> "SinkReport":
        """Return the report with those of the messages that are for this sink."""
        own = [message for message in messages if message.sink == self.sink]
        samples = first_samples([*self.samples, *own[:most]], most)
        return SinkReport(self.sink, self.messages + len(own), samples)


class RowDifference(msgspec.Struct, frozen=True):
    """Row of a revision and of the one that it replaces, as JSON; None where there is none."""

    before: str | None
    after: str | None

    @property
    def rows(self) -> tuple[str | None, ...]:
        """The rows."""
        return self.before, self.after


Sample = TypeVar("Sample", SinkMessage, RowDifference)


def first_samples(samples: Iterable[Sample], most: int) -> tuple[Sample, ...]:
    """Return the first samples, at most `most`, whose rows have at most VIEW_SAMPLES_BYTES."""
    chosen, size = list[Sample](), 0
    for sample in islice(samples, most):
        size += sum(len(row.encode()) for row in sample.rows if row is not None)
        if size > limits.VIEW_SAMPLES_BYTES:
            break
        chosen.append(sample)
    return tuple(chosen)


class _Row:
    """Row as conditions see it: its columns are the names."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def value(self, path: Path) -> object:
        value: object = self._columns.get(column_of(path), NOTHING)
        for name in path[2:] if path[0] == "headers" else path[1:]:
            value = value.get(name, NOTHING) if isinstance(value, dict) else NOTHING
        return value


class ViewChanges:
    """Converts updates of a view's rows to the messages for its sinks."""

    def __init__(self, plan: ViewPlan, sinks: Sequence[ViewSink]) -> None:
        self._sinks = [(sink, _filter_of(sink)) for sink in sinks]
        self._key_columns = [column.name for column in plan.key if column.name]
        emits = {sink.emit for sink in sinks}
        self.has_changes = Emit.CHANGES in emits
        self.has_finals = Emit.FINAL in emits and plan.has_windows

    def of_update(self, update: RowUpdate, final: FinalPosition | None) -> Iterator[SinkMessage]:
        """Return the messages about an update; `final` is the position before the batch."""
        if update.before == update.after:
            return
        end_ms = update.window_end_ms
        is_final = end_ms is not None and final is not None and final.includes(end_ms, update.key)
        for sink, holds in self._sinks:
            change = _change(holds(update.before), holds(update.after))
            if change is None:
                continue
            if sink.once_per_key and (
                change is not ChangeKind.INSERT or any(map(holds, update.replaced))
            ):
                continue
            if sink.emit is Emit.FINAL:
                if not is_final or sink.once_per_key:
                    continue
                change = ChangeKind.CORRECTION
            yield self._message(sink, change, update.before, update.after)

    def of_final(self, row: str) -> Iterator[SinkMessage]:
        """Return the messages about the row of a window that has ended."""
        for sink, holds in self._sinks:
            if sink.emit is Emit.FINAL and holds(row):
                yield self._message(sink, ChangeKind.FINAL, None, row)

    def _message(
        self, sink: ViewSink, change: ChangeKind, before: str | None, after: str | None
    ) -> SinkMessage:
        shown = after if after is not None else before
        assert shown is not None
        row = None if change is ChangeKind.DELETE else after
        return SinkMessage(sink.label, change, self._key(shown), row, before)

    def _key(self, row: str) -> str:
        """Return the values of the key's columns: one as text, several as a JSON array."""
        columns = _row.decode(row)
        values = [columns.get(name) for name in self._key_columns]
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
        return msgspec.json.encode(values[0] if len(values) == 1 else values).decode()


def _filter_of(sink: ViewSink) -> Callable[[str | None], bool]:
    if not sink.when:
        return lambda row: row is not None
    condition = SqlCondition(sink.when)
    return lambda row: row is not None and condition.holds(_Row(_row.decode(row)))


def _change(before: bool, after: bool) -> ChangeKind | None:
    if after:
        return ChangeKind.UPDATE if before else ChangeKind.INSERT
    return ChangeKind.DELETE if before else None
