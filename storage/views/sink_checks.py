"""Checks of the sinks of a view: they fit its rows, exist, and do not lead back to it."""

from collections.abc import Collection, Mapping

from storage.catalog.catalog import Catalog
from storage.domain.errors import QueueNotFound, StreamNotFound, ValidationFailed
from storage.domain.names import QueueName, StreamName, ViewName
from storage.domain.streams.stream import EventTimes
from storage.domain.views.plan import ViewPlan
from storage.domain.views.sink import Emit
from storage.domain.views.view import View, ViewSpec


async def check_sinks(catalog: Catalog, name: ViewName, spec: ViewSpec, plan: ViewPlan) -> None:
    """Raise ValidationFailed for sinks that do not fit the rows, or do not exist."""
    check_rows_of_sinks(spec, plan)
    for nth, sink in enumerate(spec.into):
        target = sink.name_in(name.namespace)
        await _check_target(catalog, target, f"/into/{nth}/{sink.target.kind}")


def check_rows_of_sinks(spec: ViewSpec, plan: ViewPlan) -> None:
    """Raise ValidationFailed for sinks that do not fit the rows."""
    columns = {column.name for column in plan.columns}
    for nth, sink in enumerate(spec.into):
        if sink.emit is Emit.FINAL and not plan.has_windows:
            detail = "Only the rows of windows become final, and the query has none"
            raise ValidationFailed.at(f"/into/{nth}/emit", detail, "conflict")
        if unknown := sorted(sink.columns - columns):
            detail = f"The rows have no column '{unknown[0]}'"
            raise ValidationFailed.at(f"/into/{nth}/when", detail, "not_found")


def check_cycle(view: View, targets: Mapping[str, Collection[str]]) -> None:
    """Raise ValidationFailed if views would append to each other's streams without end.

    `targets`: the streams that the views of the namespace append to, by the stream that they read.
    """
    pending = [sink.stream for sink in view.spec.into if sink.stream]
    sources = {one.stream for one in view.spec.query.inputs.values()}
    reached = set[str]()
    while pending:
        if (current := pending.pop()) in sources:
            detail = f"A view of {current!r} would change {current!r} again through its sinks"
            raise ValidationFailed.at("/into", detail, "conflict")
        if current not in reached:
            reached.add(current)
            pending += targets.get(current, ())


async def _check_target(catalog: Catalog, target: QueueName | StreamName, pointer: str) -> None:
    try:
        if isinstance(target, QueueName):
            await catalog.fresh_queue(target)
            return
        stream = await catalog.fresh_stream(target)
    except (QueueNotFound, StreamNotFound) as error:
        raise ValidationFailed.at(pointer, error.detail, "not_found") from None
    if stream.is_view:
        detail = "It is the stream view of a queue; specify the queue"
        raise ValidationFailed.at(pointer, detail, "not_allowed")
    if stream.spec.event_times is EventTimes.CLIENT_REQUIRE:
        detail = "The stream requires event times, which changes of rows do not have"
        raise ValidationFailed.at(pointer, detail, "conflict")
