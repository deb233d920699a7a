"""Sink of a view: a stream or queue that gets the changes of its rows."""

from collections.abc import Collection, Sequence
from enum import StrEnum

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault
from storage.domain.filters.conditions import ConditionInvalid, Path, SqlCondition
from storage.domain.names import QueueName, StreamName
from storage.domain.topics.targets.named_target import NamedTarget


class Emit(StrEnum):
    """Changes that a sink gets.

    changes: each change of a row by a batch. final: each row of a window once, when the watermark has passed the window's end, and
    later corrections of it.
    """

    CHANGES = "changes"
    FINAL = "final"


class ViewSink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Stream or queue of the view's namespace; exactly one is given.

    The sink sees the rows for which `when` holds, a SQL condition on their columns; all without one. With `once_per_key` it gets a
    row only when the row appears among them.
    """

    stream: str | None = None
    queue: str | None = None
    emit: Emit = Emit.CHANGES
    when: str = ""
    once_per_key: bool = False

    @property
    def target(self) -> NamedTarget:
        """The stream or queue."""
        return NamedTarget(stream=self.stream, queue=self.queue)

    @property
    def label(self) -> str:
        """Kind and name of the target, such as `queue:alerts`."""
        return self.target.label

    @property
    def columns(self) -> frozenset[str]:
        """Columns that the condition names. Raises ConditionInvalid."""
        return (
            frozenset(map(column_of, SqlCondition(self.when).paths)) if self.when else frozenset()
        )

    def name_in(self, namespace: str) -> StreamName | QueueName:
        """Return the target's name in a namespace. Raises ValidationFailed for an invalid one."""
        if self.queue is not None:
            return QueueName(self.queue, namespace)
        return StreamName(self.stream or "", namespace)

    def faults(self, pointer: str) -> list[FieldFault]:
        """Return the faults of the sink at `pointer`, without those that its rows decide."""
        if (self.stream is None) == (self.queue is None):
            return [FieldFault(pointer, "Specify either `stream` or `queue`")]
        return [*self.target.name_faults(pointer), *self._condition_faults(pointer)]

    def _condition_faults(self, pointer: str) -> list[FieldFault]:
        if not self.when:
            return []
        try:
            SqlCondition(self.when)
        except ConditionInvalid as error:
            return [FieldFault(f"{pointer}/when", str(error))]
        return []


class SinkState(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a sink: those that wait, and those that it got since it was added.

    `failure`: why the last call to it failed, empty if it did not.
    """

    sink: str
    pending: int = 0
    sent: int = 0
    failure: str = ""


def sink_faults(
    sinks: Sequence[ViewSink], streams: Collection[str], pointer: str
) -> list[FieldFault]:
    """Return the faults of a view's sinks; `streams` are those that the view reads."""
    if len(sinks) > limits.VIEW_SINKS_MAX:
        return [FieldFault(pointer, f"At most {limits.VIEW_SINKS_MAX} sinks", "out_of_range")]
    faults, labels = list[FieldFault](), set[str]()
    for nth, sink in enumerate(sinks):
        faults += sink.faults(f"{pointer}/{nth}")
        if sink.label in labels:
            detail = "Another sink has the same target"
            faults.append(FieldFault(f"{pointer}/{nth}", detail, "duplicate"))
        elif sink.stream in streams:
            detail = "The view reads this stream"
            faults.append(FieldFault(f"{pointer}/{nth}/stream", detail, "not_allowed"))
        labels.add(sink.label)
    return faults


def column_of(path: Path) -> str:
    """Return the column that a name in a condition refers to."""
    return path[1] if path[0] == "headers" and len(path) > 1 else path[0]
