"""Spark's plans and expressions, read and rebuilt through Py4J.

A query is analyzed and optimized once, over an empty relation. A template replaces that relation by the records of a batch, so that a
batch costs neither. Each call through Py4J takes some 0.2 ms: a template makes two for each node.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from storage.domain import limits

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

RELATION = "LogicalRDD"
"""Class of an empty relation that the optimizer does not evaluate."""
ATTRIBUTE = "AttributeReference"
JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
    "ignoreNullFields": "false",
}
"""Options that keep every value of a key or a state."""

_LOCAL_RELATION_BYTES = "spark.sql.execution.arrow.localRelationThreshold"
LOCAL_RELATION = (_LOCAL_RELATION_BYTES, str(1 << 30))
_NO_LOCAL_RELATION = (_LOCAL_RELATION_BYTES, "0")
"""Settings: an Arrow table is a part of the plan, or the tasks get it."""

_SELECTING = frozenset({"Project", "Aggregate", "Expand"})
"""Nodes that name the columns of their child which they use."""
_ROWS = re.compile(r"_([st])_(\w+)_(\d+)", re.ASCII)

Source = Callable[["Template"], Any]
"""Returns the plan that replaces a relation, whose rows are in one partition: so no query needs a shuffle."""
_NO_ROWS: Mapping[str, Source] = {}


def table_column(table: str, number: int) -> str:
    """Return the name that a column of a table has below its query."""
    return f"_t_{table}_{number}"


def stream_column(stream: str, number: int) -> str:
    """Return the name that a column of a stream has below a query that joins it."""
    return f"_s_{stream}_{number}"


class RowsColumn(NamedTuple):
    """Column of a table, or of a stream that is joined, by its number."""

    is_stream: bool
    name: str
    number: int

    @classmethod
    def of(cls, column: str) -> Self | None:
        """Return the column that has a name below a query; None for one of the records of a batch."""
        match = _ROWS.fullmatch(column)
        return cls(match[1] == "s", match[2], int(match[3])) if match else None


def rows_of(relation: Any) -> str:
    """Return the table or joined stream that a relation is; empty for the records of a batch."""
    column = RowsColumn.of(relation.output().apply(0).name())
    return column.name if column else ""


def class_name(node: Any) -> str:
    """Return the simple class name of a plan node or an expression."""
    return str(node.getClass().getSimpleName())


def items(sequence: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]


def children(node: Any) -> list[Any]:
    """Return the children of a plan node or an expression."""
    return items(node.children())


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all nodes below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def without_alias(named: Any) -> Any:
    """Return what an alias names, and any other expression as it is."""
    return children(named)[0] if class_name(named) == "Alias" else named


def expression_id(named: Any) -> int:
    """Return the identity of an attribute, or of an alias."""
    return int(named.exprId().id())


def analyzed(frame: "DataFrame") -> Any:
    """Return the analyzed plan of a data frame."""
    return frame._jdf.queryExecution().analyzed()


@dataclass(frozen=True)
class Template:
    """Node of a plan above a relation that is replaced.

    `output` has the columns of the relation itself, `columns` their names and identities, and `number` is that of the first; `rows` is
    the name of the table or joined stream that it is, empty for the records.
    """

    node: Any
    below: tuple["Template", ...] = ()
    output: Any = None
    columns: tuple[tuple[str, Any], ...] = ()
    number: int = 0
    rows: str = ""


class Plans:
    """Plans of one session."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        jvm: Any = spark._jvm
        logical = jvm.org.apache.spark.sql.catalyst.plans.logical
        self._local_relation = logical.LocalRelation
        self._repartition = logical.Repartition
        self._project = logical.Project
        self._alias = jvm.org.apache.spark.sql.catalyst.expressions.Alias
        self._join_type = jvm.org.apache.spark.sql.catalyst.plans.JoinType
        self._union = logical.Union
        self._classic = jvm.org.apache.spark.sql.classic
        self._to_seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self._cons = getattr(jvm.scala.collection.immutable, "$colon$colon")
        self._no_items = self._to_seq([]).toList()
        self._none = jvm.scala.Option.empty()
        self._relations: dict[pa.Schema, DataFrame] = {}

    def relation(self, schema: pa.Schema) -> "DataFrame":
        """Return the relation with these columns that templates replace: one for all."""
        from pyspark.sql.pandas.types import from_arrow_schema

        if schema not in self._relations:
            columns = from_arrow_schema(schema, prefer_timestamp_ntz=True)
            self._relations[schema] = self._spark.createDataFrame([], columns)
        return self._relations[schema]

    def frame(self, plan: Any) -> "DataFrame":
        """Return the data frame of a plan, which is made of parts that were analyzed."""
        from pyspark.sql import DataFrame

        plan.setAnalyzed()
        data = self._classic.Dataset.ofRows(self._spark._jsparkSession, plan)
        return DataFrame(data, self._spark)

    def column(self, expression: Any) -> "Column":
        """Return an expression as a column; its attributes are resolved already."""
        from pyspark.sql.classic.column import Column

        return Column(self._classic.ExpressionUtils.column(expression))

    def substitute(self, node: Any, replacement: Callable[[Any], Any | None]) -> Any:
        """Return an expression or a plan with parts replaced, from the outside in."""
        replaced = replacement(node)
        if replaced is not None:
            return replaced
        parts = children(node)
        if not parts:
            return node
        return self.with_children(node, [self.substitute(one, replacement) for one in parts])

    def joined(self, join: Any, kind: str, left: Any, right: Any) -> Any:
        """Return the join of two plans by the condition of another join."""
        return join.copy(left, right, self._join_type.apply(kind), join.condition(), join.hint())

    def empty(self, plan: Any) -> Any:
        """Return a plan without rows that has the columns of another one."""
        return self._local_relation(plan.output(), self._no_items, False, self._none)

    def optimized(self, frame: "DataFrame") -> Any:
        """Return the optimized plan of a data frame."""
        return frame._jdf.queryExecution().optimizedPlan()

    def template(self, frame: "DataFrame") -> Template:
        """Return the optimized plan of a data frame, whose relations are to be replaced."""
        plan = self.optimized(frame)
        return _template(plan) or Template(plan)  # without a relation if a filter is always false

    def of_frame(self, frame: "DataFrame", names: Collection[str] | None = None) -> Source:
        """Return the source of a data frame's rows.

        `names`: columns of the relation that it has, if its templates use no others; None for all.
        """
        plan, none = analyzed(frame), self._no_items
        output = items(plan.output())

        def renamed(relation: Template) -> Any:
            """Return the plan with the identities of the relation's columns."""
            columns = [one for one in relation.columns if names is None or one[0] in names]
            named = [
                self._alias(own, name, identity, none, self._none, none)
                for own, (name, identity) in zip(output, columns, strict=True)
            ]
            return self._project(self._to_seq(named), plan)

        return renamed

    def unchanged(self, relation: Template) -> Any:
        """Return a relation, as the source of one that is to be replaced later."""
        return relation.node

    def rows(self, data: Any) -> Source:
        """Return the source of rows that the JVM has."""
        plans: dict[int, Any] = {}

        def one_partition(relation: Template) -> Any:
            if relation.number not in plans:
                rows = self._local_relation(relation.output, data, False, self._none)
                plans[relation.number] = self._repartition(1, False, rows)
            return plans[relation.number]

        return one_partition

    def arrow_frame(self, table: pa.Table, schema: "StructType | None" = None) -> "DataFrame":
        """Return a data frame of an Arrow table, whose rows are not a part of the plan."""
        self._spark.conf.set(*_NO_LOCAL_RELATION)
        try:
            return self._arrow_frame(table, schema).coalesce(1)
        finally:
            self._spark.conf.set(*LOCAL_RELATION)

    def arrow(self, table: pa.Table, schema: "StructType | None" = None) -> Source:
        """Return the source of an Arrow table's rows.

        Those of a large one are read by the tasks: as rows of a relation, which is a part of the plan, they would be in the heap several times.
        """
        if table.nbytes > limits.VIEW_RELATION_BYTES_MAX:
            return self.of_frame(self.arrow_frame(table, schema))
        return self.rows(analyzed(self._arrow_frame(table, schema)).data())

    def _arrow_frame(self, table: pa.Table, schema: "StructType | None") -> "DataFrame":
        if schema is None:
            return self._spark.createDataFrame(table)
        return self._spark.createDataFrame(table, schema=schema)

    def over(
        self, template: Template, source: Source | None, rows: Mapping[str, Source] = _NO_ROWS
    ) -> Any:
        """Return the plan of a template over the records of a source, and rows by their names.

        `source`: None for a template without records of a batch.
        """
        if template.output is not None:
            if template.rows:
                return rows[template.rows](template)
            assert source is not None
            return source(template)
        if not template.below:
            return template.node
        below = [self.over(one, source, rows) for one in template.below]
        return self.with_children(template.node, below)

    def union(self, plans: Sequence[Any]) -> "DataFrame":
        """Return the rows of all plans, whose columns have the same types."""
        if len(plans) == 1:
            return self.frame(plans[0])
        return self.frame(self._union(self._to_seq([*plans]), False, False))

    def with_children(self, node: Any, parts: Sequence[Any]) -> Any:
        """Return a node over other children."""
        if len(parts) == 1:
            return node.withNewChildren(self._cons(parts[0], self._no_items))
        return node.withNewChildren(self._to_seq([*parts]))


def _template(node: Any) -> Template | None:
    """Return the template of a plan; None for one without a relation that is replaced."""
    if class_name(node) == RELATION:
        output = node.output()
        columns = tuple((str(one.name()), one.exprId()) for one in items(output))
        number = int(columns[0][1].id())
        return Template(node, output=output, columns=columns, number=number, rows=rows_of(node))
    below = [_template(child) or Template(child) for child in children(node)]
    if not any(one.below or one.output is not None for one in below):
        return None
    return Template(node, tuple(below))


def used_columns(template: Template, rows: str = "") -> frozenset[str]:
    """Return the names of the columns that a template uses, of its records or of other rows."""
    every = [*_templates(template)]
    names = {
        int(identity.id()): name
        for node in every
        if node.rows == rows
        for name, identity in node.columns
    }
    if any(class_name(node.node) == "Union" and _has_all_columns(node) for node in every):
        return frozenset(names.values())  # it has columns by their places
    nodes = [node.node for node in every if node.output is None]
    used = {expression_id(one) for node in nodes for one in items(node.references().toSeq())}
    return frozenset(name for one, name in names.items() if one in used)


def _templates(template: Template) -> Iterator[Template]:
    yield template
    for below in template.below:
        yield from _templates(below)


def _has_all_columns(template: Template) -> bool:
    """Return whether a plan may have columns of its relation without naming them."""
    if class_name(template.node) in _SELECTING:
        return False
    return template.output is not None or any(map(_has_all_columns, template.below))
