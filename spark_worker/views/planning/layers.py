"""Structure of an analyzed query: layers over one aggregate, over records.

    Filter, Project, SubqueryAlias …     layers: evaluated on merged rows
    Aggregate                            its partial form merges
    Project, Filter, Union, Generate …   the input: each record contributes on its own
    Join                                 with a table, which is the same for all records of a batch;
                                         of two streams, each of whose pairs contributes on its own

A query of another structure is refused.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spark_worker.views.planning.plan_node import PlanNode
from spark_worker.views.planning.plans import (
    ATTRIBUTE,
    RELATION,
    RowsColumn,
    children,
    class_name,
    expression_id,
    items,
    walk,
)

_LAYERS = frozenset({"Project", "Filter", "SubqueryAlias"})
_PER_RECORD = frozenset(
    {
        *("Project", "Filter", "SubqueryAlias", "View", RELATION),
        *("Expand", "Generate", "Union", "Repartition"),
    }
)
"""Nodes whose result for several records is the union of their results for each."""
_KEEPS_LEFT = frozenset({"INNER", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI"})
_KEEPS_RIGHT = frozenset({"INNER", "RIGHT OUTER"})
"""Joins that keep no row of the other side, by the side that reads the records."""
_JOINS_OF_STREAMS = frozenset({"INNER", "CROSS", "LEFT OUTER", "RIGHT OUTER"})
_TIME_WINDOW, _SESSION = "spark.timeWindow", "spark.sessionWindow"
"""Marks of the analyzer, in the metadata of attributes."""
_NOUNS = {
    "Aggregate": "a second group by",
    "Distinct": "select distinct",
    "Deduplicate": "select distinct",
    "Except": "except",
    "GlobalLimit": "limit",
    "Intersect": "intersect",
    "LocalLimit": "limit",
    "OneRowRelation": "a select without from",
    "Sort": "order by",
    "Window": "a window function",
}


class NotIncremental(Exception):
    """The query's result cannot be kept up to date record by record; the text names why."""


@dataclass(frozen=True)
class Layers:
    """Parts of a query. `above` are its layers from the aggregate upwards."""

    above: tuple[Any, ...]
    groupings: tuple[Any, ...]
    named: tuple[Any, ...]
    input: PlanNode

    @cached_property
    def record_columns(self) -> Mapping[str, Any]:
        """Attributes of the input that are columns of records, by the names of these.

        The input may have other names for them; a column of a subquery that only has the name is not one. Those of streams that are
        joined have the names of `stream_column`.
        """
        pairs = [
            (self.input.columns.get(expression_id(one), ""), one)
            for one in items(self.input.plan.output())
        ]
        return {name: one for name, one in reversed(pairs) if name and not _is_of_table(name)}

    @cached_property
    def window(self) -> Any | None:
        """Attribute of the time window or the session that the query groups by, or None."""
        for grouping in self.groupings:
            for node in walk(grouping):
                if _is_window(node):
                    return node
        return None


def _is_window(node: Any) -> bool:
    return _has_mark(node, _TIME_WINDOW) or _has_mark(node, _SESSION)


def _has_mark(node: Any, mark: str) -> bool:
    return class_name(node) == ATTRIBUTE and bool(node.metadata().contains(mark))


def uses_window(grouping: Any) -> bool:
    """Return whether a grouping expression is the window, its start or its end."""
    return any(map(_is_window, walk(grouping)))


def read_layers(plan: Any, joined: Collection[str] = ()) -> Layers:
    """Return the layers of an analyzed query; `joined` are the streams that it must join.

    Raises NotIncremental.
    """
    above: list[Any] = []
    while class_name(plan) in _LAYERS:
        above.append(plan)
        [plan] = children(plan)
    if class_name(plan) != "Aggregate":
        raise NotIncremental(_reason(class_name(plan)))
    below = PlanNode.of(children(plan)[0])
    if not below.reads_records:
        raise NotIncremental("a query that does not read the stream")
    if joined:
        _check_joined(below, joined)
    else:
        _check_input(below)
    groupings = items(plan.groupingExpressions())
    _check_sessions(groupings)
    return Layers(
        tuple(reversed(above)),
        tuple(groupings),
        tuple(items(plan.aggregateExpressions())),
        below,
    )


def _check_sessions(groupings: Sequence[Any]) -> None:
    """Raise NotIncremental for a group by a part of a session: each record would be its own."""
    for grouping in groupings:
        if not _has_mark(grouping, _SESSION) and any(
            _has_mark(node, _SESSION) for node in walk(grouping)
        ):
            raise NotIncremental("a group by a part of a session")


def _is_of_table(column: str) -> bool:
    of_rows = RowsColumn.of(column)
    return of_rows is not None and not of_rows.is_stream


def _check_input(node: PlanNode) -> None:
    """Raise NotIncremental unless each record contributes on its own."""
    if not node.reads_records:
        return  # a table is computed for each batch
    if node.kind == "Join":
        _check_join(node)
    elif node.kind not in _PER_RECORD:
        raise NotIncremental(_reason(node.kind))
    elif not all(child.reads_records for child in node.children):
        raise NotIncremental("a union with a table")
    for child in node.children:
        _check_input(child)


def _check_joined(node: PlanNode, joined: Collection[str]) -> None:
    """Raise NotIncremental unless each pair of records of two streams contributes on its own."""
    if node.streams != set(joined):
        raise NotIncremental("a query of two streams that does not join them")
    if node.joins_streams:
        left, right = node.children
        kind = node.join_type
        if left.streams & right.streams:
            raise NotIncremental("a join of more than two streams")
        if kind not in _JOINS_OF_STREAMS:
            raise NotIncremental(f"a {kind.lower()} join of streams")
        if node.preserved_side is not None and node.reads_tables:
            raise NotIncremental(f"a {kind.lower()} join of streams that are joined with a table")
        for child in node.children:
            _check_input(child)
        return
    if node.kind == "Join":
        _check_join(node)
    elif node.kind not in _PER_RECORD:
        raise NotIncremental(_reason(node.kind))
    elif len(node.children) > 1:
        raise NotIncremental("a union of joins")
    for child in node.children:
        if child.reads_records:
            _check_joined(child, joined)


def _check_join(node: PlanNode) -> None:
    """Raise NotIncremental for a join that depends on several records, or on none."""
    left, right = node.children
    if left.reads_records and right.reads_records:
        raise NotIncremental("a join of the stream with itself")
    kind, condition = node.join_type, node.plan.condition()
    if kind not in (_KEEPS_LEFT if left.reads_records else _KEEPS_RIGHT):
        raise NotIncremental(f"a {kind.lower()} join in which rows of a table are kept")
    if not condition.isDefined() or not _has_equality(condition.get()):
        raise NotIncremental("a join without an equality in `on`")


def _has_equality(condition: Any) -> bool:
    """Return whether some part of a conjunction is an equality."""
    if class_name(condition) == "And":
        return any(map(_has_equality, children(condition)))
    return class_name(condition) in ("EqualTo", "EqualNullSafe")


def _reason(kind: str) -> str:
    if kind in _PER_RECORD or kind == "Join":
        return "a query without group by"
    return _NOUNS.get(kind, f"a query with {kind}")
