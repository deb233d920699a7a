"""Bounds of a join of two streams: how long a record waits for those that match it.

    b.event_time between a.event_time and a.event_time + interval 10 minutes
        a waits 10 minutes for b:  b.event_time - a.event_time <= 10 minutes
        b waits 0 minutes for a:   a.event_time - b.event_time <= 0

The condition is read in Spark's optimized plan, where it is in one place wherever the query has it, and its literals are evaluated.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from spark_worker.sql.refusal import SqlRefused
from spark_worker.views.planning.plan_node import PlanNode
from spark_worker.views.planning.plans import (
    ATTRIBUTE,
    RowsColumn,
    children,
    class_name,
    expression_id,
    items,
    walk,
)
from storage.domain.limits import DAY_MS, VIEW_JOIN_MS_MAX
from storage.parquet.record_schema import US_PER_MS

_PLUS_INTERVAL, _INTERVAL = "TimestampAddInterval", "DayTimeIntervalType"
_AT_MOST = frozenset({"LessThan", "LessThanOrEqual"})
_AT_LEAST = frozenset({"GreaterThan", "GreaterThanOrEqual"})


class _Time(NamedTuple):
    """Event time of a stream, plus microseconds."""

    stream: str
    plus_us: int


class JoinBounds(NamedTuple):
    """For how long in event time the records of each stream wait for others.

    `preserved`: the stream whose records without a match are in the rows, empty for none.
    """

    waits_ms: Mapping[str, int]
    preserved: str = ""


def join_bounds(plan: PlanNode, times: Mapping[str, int]) -> JoinBounds:
    """Return the bounds of a join of streams.

    `plan`: optimized plan of the join, which is an inner one if a condition excludes rows without a match. `times`: number of the event
    time among the columns of each stream. Raises SqlRefused for a join without an equality, or without bounds on both sides.
    """
    join = next((node for node in plan.walk() if node.joins_streams), None)
    if join is None:
        raise SqlRefused(
            "a query without rows is not supported in a view", "Correct its condition."
        )
    condition = join.plan.condition()
    conditions = [*_conjuncts(condition.get())] if condition.isDefined() else []
    sides = [set(map(expression_id, items(child.plan.output()))) for child in join.children]
    if not any(_is_equality(condition, sides) for condition in conditions):
        raise SqlRefused(
            "a join of streams without an equality is not supported",
            "Compare a column of each, such as `on a.id = b.id and …`.",
        )
    first, second = sorted(times)
    waits_us: dict[str, int] = {}
    for condition in conditions:
        for earlier, later in _ordered(condition, join, times):
            bound_us = later.plus_us - earlier.plus_us
            waits_us[later.stream] = min(bound_us, waits_us.get(later.stream, bound_us))
    if waits_us.keys() != times.keys():
        raise SqlRefused(
            "a join of streams without bounds of their event times is not supported",
            f"Add such as `and {second}.event_time between {first}.event_time and {first}.event_time + interval 10 minutes`, with a literal on both sides.",
        )
    waits_ms = {stream: -(-max(0, us) // US_PER_MS) for stream, us in waits_us.items()}
    if max(waits_ms.values()) > VIEW_JOIN_MS_MAX:
        days = VIEW_JOIN_MS_MAX // DAY_MS
        raise SqlRefused(
            f"a join of streams over more than {days} days is not supported",
            "Use closer bounds of the event times.",
        )
    side = join.preserved_side
    preserved = "" if side is None else "".join(join.children[side].streams)
    return JoinBounds(waits_ms, preserved)


def _conjuncts(condition: Any) -> Iterator[Any]:
    """Yield the parts of a conjunction."""
    if class_name(condition) == "And":
        for part in children(condition):
            yield from _conjuncts(part)
    else:
        yield condition


def _is_equality(condition: Any, sides: Sequence[Set[int]]) -> bool:
    """Return whether a condition compares attributes of both sides of a join by equality."""
    if class_name(condition) not in ("EqualTo", "EqualNullSafe"):
        return False
    used = [_attributes(part) for part in children(condition)]
    return any(
        used[0] and used[1] and used[0] <= sides[nth] and used[1] <= sides[1 - nth]
        for nth in (0, 1)
    )


def _attributes(expression: Any) -> set[int]:
    return {expression_id(one) for one in walk(expression) if class_name(one) == ATTRIBUTE}


def _ordered(
    condition: Any, join: PlanNode, times: Mapping[str, int]
) -> Iterator[tuple[_Time, _Time]]:
    """Yield the pairs of event times of which a condition says that the first is not later."""
    kind = class_name(condition)
    if kind not in _AT_MOST | _AT_LEAST | {"EqualTo"}:
        return
    left, right = (_time_of(part, join, times) for part in children(condition))
    if left is None or right is None or left.stream == right.stream:
        return
    if kind not in _AT_LEAST:
        yield left, right
    if kind not in _AT_MOST:
        yield right, left


def _time_of(expression: Any, join: PlanNode, times: Mapping[str, int]) -> _Time | None:
    """Return the event time that an expression is, with what is added to it; None for another."""
    plus_us = 0
    while class_name(expression) == _PLUS_INTERVAL:
        expression, interval = children(expression)
        if class_name(interval.dataType()) != _INTERVAL or class_name(interval) != "Literal":
            return None
        plus_us += int(interval.value())
    if class_name(expression) != ATTRIBUTE:
        return None
    column = RowsColumn.of(join.columns.get(expression_id(expression), ""))
    if column is None or times.get(column.name) != column.number:
        return None
    return _Time(column.name, plus_us)
