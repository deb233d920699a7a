"""Structure of an analyzed query: layers over one aggregate, over records.

    Filter, Project, SubqueryAlias …     layers: evaluated on merged rows
    Aggregate                            its partial form merges
    Project, Filter, Union, Generate …   the input: each record contributes on its own
    Join                                 with a table, which is the same for all records of a batch

A query of another structure is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spark_worker.views.planning.plans import (
    ATTRIBUTE,
    RELATION,
    children,
    class_name,
    expression_id,
    items,
    table_of,
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


def read_layers(plan: Any) -> Layers:
    """Return the layers of an analyzed query.

    Raises NotIncremental.
    """
    above: list[Any] = []
    while class_name(plan) in _LAYERS:
        above.append(plan)
        [plan] = children(plan)
    if class_name(plan) != "Aggregate":
        raise NotIncremental(_reason(plan))
    [below] = children(plan)
    if not _reads_records(below):
        raise NotIncremental("a query that does not read the stream")
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
    """Return the columns of an input that are columns of the records, by their names there.

    The input may have other names for them; a column of a subquery that only has the name is not one.
    """
    names = [(_record_column(plan, expression_id(one)), one) for one in items(plan.output())]
    return {name: attribute for name, attribute in reversed(names) if name}


def _record_column(plan: Any, attribute_id: int) -> str:
    """Return the name of the record's column that an attribute is; empty if it is none."""
    if class_name(plan) == RELATION:
        names = {expression_id(one): str(one.name()) for one in items(plan.output())}
        return "" if table_of(plan) else names.get(attribute_id, "")
    if class_name(plan) == "Project":
        named = {expression_id(one): one for one in items(plan.projectList())}
        expression = without_alias(named[attribute_id])
        if class_name(expression) != ATTRIBUTE:
            return ""
        return _record_column(children(plan)[0], expression_id(expression))
    if class_name(plan) == "Union":
        place = [expression_id(one) for one in items(plan.output())].index(attribute_id)
        parts = [(part, items(part.output())[place]) for part in children(plan)]
        of_parts = {_record_column(part, expression_id(one)) for part, one in parts}
        return of_parts.pop() if len(of_parts) == 1 else ""
    for part in children(plan):
        if attribute_id in map(expression_id, items(part.output())):
            return _record_column(part, attribute_id)
    return ""


def _reads_records(node: Any) -> bool:
    """Return whether a plan reads the records of a batch, and not tables alone."""
    return any(class_name(one) == RELATION and not table_of(one) for one in walk(node))


def _check_input(node: Any) -> None:
    """Raise NotIncremental unless each record contributes on its own."""
    if not _reads_records(node):
        return  # a table is computed for each batch
    parts = children(node)
    if class_name(node) == "Join":
        _check_join(node, *parts)
    elif class_name(node) not in _PER_RECORD:
        raise NotIncremental(_reason(node))
    elif not all(map(_reads_records, parts)):
        raise NotIncremental("a union with a table")
    for part in parts:
        _check_input(part)


def _check_join(node: Any, left: Any, right: Any) -> None:
    """Raise NotIncremental for a join that depends on several records, or on none."""
    if _reads_records(left) and _reads_records(right):
        raise NotIncremental("a join of the stream with itself")
    kind = str(node.joinType().sql())
    if kind not in (_KEEPS_LEFT if _reads_records(left) else _KEEPS_RIGHT):
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
    if name in _PER_RECORD:
        return "a query without group by"
    return _NOUNS.get(name, f"a query with {name}")
