"""Nodes of a plan, which are read once.

The checks of a plan look at each many times, and a call through Py4J takes 0.1 ms.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from spark_worker.views.planning.plans import (
    ATTRIBUTE,
    RELATION,
    RowsColumn,
    children,
    class_name,
    expression_id,
    items,
    without_alias,
)


@dataclass(frozen=True, eq=False)
class PlanNode:
    """Node of a plan; `kind` is its class.

    `relation`: of a relation, its columns by the ids of their attributes; None for any other node.
    """

    plan: Any
    kind: str
    children: tuple["PlanNode", ...]
    relation: Mapping[int, str] | None = None

    @classmethod
    def of(cls, plan: Any) -> Self:
        """Read a plan with all nodes below."""
        kind = class_name(plan)
        relation = None
        if kind == RELATION:
            relation = {expression_id(one): str(one.name()) for one in items(plan.output())}
        return cls(plan, kind, tuple(map(cls.of, children(plan))), relation)

    def walk(self) -> Iterator["PlanNode"]:
        """Yield the node and all nodes below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    @cached_property
    def reads_records(self) -> bool:
        """Return whether it reads records: of a batch, or of a stream that is joined."""
        return any(not (rows and not rows.is_stream) for rows in self._rows)

    @cached_property
    def reads_tables(self) -> bool:
        """Return whether it reads a table."""
        return any(rows and not rows.is_stream for rows in self._rows)

    @cached_property
    def streams(self) -> frozenset[str]:
        """Return the joined streams that it reads; the records of a batch have no name."""
        return frozenset(
            rows.name if rows else "" for rows in self._rows if rows is None or rows.is_stream
        )

    @property
    def joins_streams(self) -> bool:
        """Return whether it joins records with records."""
        return self.kind == "Join" and all(child.reads_records for child in self.children)

    @property
    def join_type(self) -> str:
        """Return the kind of a join, such as `LEFT OUTER`."""
        return str(self.plan.joinType().sql())

    @property
    def preserved_side(self) -> int | None:
        """Return the child whose records are in the rows without a match, by its number."""
        return {"LEFT OUTER": 0, "RIGHT OUTER": 1}.get(self.join_type)

    @cached_property
    def columns(self) -> Mapping[int, str]:
        """Return the columns of relations that its attributes are, by the ids of these."""
        if self.relation is not None:
            return self.relation
        below = {one: name for child in self.children for one, name in child.columns.items()}
        if self.kind == "Project":
            columns = items(self.plan.projectList())
            named = [(expression_id(one), without_alias(one)) for one in columns]
            pairs = [(one, expression_id(bare)) for one, bare in named if _is_attribute(bare)]
            return {one: below[bare] for one, bare in pairs if bare in below}
        if self.kind == "Union":
            return self._columns_of_union()
        return below

    def _columns_of_union(self) -> Mapping[int, str]:
        """Return the columns that are the same in all parts, at the same places."""
        parts = [
            [child.columns.get(expression_id(one)) for one in items(child.plan.output())]
            for child in self.children
        ]
        own = map(expression_id, items(self.plan.output()))
        places = zip(own, zip(*parts, strict=True), strict=True)
        return {one: names[0] for one, names in places if names[0] and len({*names}) == 1}

    @cached_property
    def _rows(self) -> tuple[RowsColumn | None, ...]:
        """Return the tables and joined streams below; None for the records of a batch."""
        if self.relation is not None:
            return (RowsColumn.of(next(iter(self.relation.values()))),)
        return tuple(rows for child in self.children for rows in child._rows)


def _is_attribute(expression: Any) -> bool:
    return class_name(expression) == ATTRIBUTE
