"""Structure of an analyzed query: layers over one aggregate, over records.

    Filter, Project, SubqueryAlias …     layers: evaluated on merged rows
    Aggregate                            its partial form merges
    Project, Filter, Union, Generate …   the input: each record contributes on its own
    Join                                 with a table, which is the same for all records of a batch;
                                         of two streams, each of whose pairs contributes on its own

A query of another structure is refused.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from spark_worker.views.planning.plans import (
    ATTRIBUTE,
    RELATION,
    RowsColumn,
    children,
    class_name,
    expression_id,
    is_table,
    items,
    rows_of,
    walk,
    without_alias,
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
    input: Any

    @property
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
        raise NotIncremental(_reason(plan))
    [below] = children(plan)
    if not reads_records(below):
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


def record_columns(plan: Any) -> dict[str, Any]:
    """Return the columns of an input that are columns of records, by their names there.

    The input may have other names for them; a column of a subquery that only has the name is not one. Those of streams that
    are joined have the names of `stream_column`.
    """
    names = [(column_below(plan, expression_id(one)), one) for one in items(plan.output())]
    return {name: one for name, one in reversed(names) if name and not _is_of_table(name)}


def _is_of_table(column: str) -> bool:
    of_rows = RowsColumn.of(column)
    return of_rows is not None and not of_rows.is_stream


def column_below(plan: Any, attribute_id: int) -> str:
    """Return the name of the relation's column that an attribute is; empty if it is none."""
    if class_name(plan) == RELATION:
        names = {expression_id(one): str(one.name()) for one in items(plan.output())}
        return names.get(attribute_id, "")
    if class_name(plan) == "Project":
        named = {expression_id(one): one for one in items(plan.projectList())}
        expression = without_alias(named[attribute_id])
        if class_name(expression) != ATTRIBUTE:
            return ""
        return column_below(children(plan)[0], expression_id(expression))
    if class_name(plan) == "Union":
        place = [expression_id(one) for one in items(plan.output())].index(attribute_id)
        parts = [(part, items(part.output())[place]) for part in children(plan)]
        of_parts = {column_below(part, expression_id(one)) for part, one in parts}
        return of_parts.pop() if len(of_parts) == 1 else ""
    for part in children(plan):
        if attribute_id in map(expression_id, items(part.output())):
            return column_below(part, attribute_id)
    return ""


def reads_records(node: Any) -> bool:
    """Return whether a plan reads the records of a batch, and not tables alone."""
    return not all(map(is_table, _relations(node)))


def streams_of(node: Any) -> set[str]:
    """Return the joined streams that a plan reads."""
    return {rows_of(one) for one in _relations(node) if not is_table(one)}


def _relations(node: Any) -> list[Any]:
    return [one for one in walk(node) if class_name(one) == RELATION]


def is_join_of_streams(node: Any) -> bool:
    """Return whether a node joins records with records."""
    return class_name(node) == "Join" and all(map(reads_records, children(node)))


def preserved_side(join: Any) -> int | None:
    """Return the number of the child whose records are in the rows without a match, or None."""
    return {"LEFT OUTER": 0, "RIGHT OUTER": 1}.get(str(join.joinType().sql()))


def _check_input(node: Any) -> None:
    """Raise NotIncremental unless each record contributes on its own."""
    if not reads_records(node):
        return  # a table is computed for each batch
    parts = children(node)
    if class_name(node) == "Join":
        _check_join(node, *parts)
    elif class_name(node) not in _PER_RECORD:
        raise NotIncremental(_reason(node))
    elif not all(map(reads_records, parts)):
        raise NotIncremental("a union with a table")
    for part in parts:
        _check_input(part)


def _check_joined(node: Any, joined: Collection[str]) -> None:
    """Raise NotIncremental unless each pair of records of two streams contributes on its own."""
    if streams_of(node) != set(joined):
        raise NotIncremental("a query of two streams that does not join them")
    parts = children(node)
    if is_join_of_streams(node):
        left, right = map(streams_of, parts)
        kind = str(node.joinType().sql())
        if left & right:
            raise NotIncremental("a join of more than two streams")
        if kind not in _JOINS_OF_STREAMS:
            raise NotIncremental(f"a {kind.lower()} join of streams")
        if preserved_side(node) is not None and any(map(is_table, _relations(node))):
            raise NotIncremental(f"a {kind.lower()} join of streams that are joined with a table")
        for part in parts:
            _check_input(part)
        return
    if class_name(node) == "Join":
        _check_join(node, *parts)
    elif class_name(node) not in _PER_RECORD:
        raise NotIncremental(_reason(node))
    elif len(parts) > 1:
        raise NotIncremental("a union of joins")
    for part in parts:
        if reads_records(part):
            _check_joined(part, joined)


def _check_join(node: Any, left: Any, right: Any) -> None:
    """Raise NotIncremental for a join that depends on several records, or on none."""
    if reads_records(left) and reads_records(right):
        raise NotIncremental("a join of the stream with itself")
    kind = str(node.joinType().sql())
    if kind not in (_KEEPS_LEFT if reads_records(left) else _KEEPS_RIGHT):
        raise NotIncremental(f"a {kind.lower()} join in which rows of a table are kept")
    if not node.condition().isDefined() or not _has_equality(node.condition().get()):
        raise NotIncremental("a join without an equality in `on`")


def _has_equality(condition: Any) -> bool:
    """Return whether some part of a conjunction is an equality."""
    if class_name(condition) == "And":
        return any(map(_has_equality, children(condition)))
    return class_name(condition) in ("EqualTo", "EqualNullSafe")


def _reason(node: Any) -> str:
    name = class_name(node)
    if name in _PER_RECORD or name == "Join":
        return "a query without group by"
    return _NOUNS.get(name, f"a query with {name}")
