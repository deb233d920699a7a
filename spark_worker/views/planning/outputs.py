"""Output columns of a view's query, over the merged states of its keys."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from spark_worker.views.planning.layers import Layers, uses_window
from spark_worker.views.planning.plans import (
    ATTRIBUTE,
    Plans,
    analyzed,
    children,
    class_name,
    expression_id,
    items,
    without_alias,
)
from storage.domain import limits
from storage.domain.views.plan import KeyColumn, ViewColumn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

AGGREGATE = "AggregateExpression"


class NotStorable(Exception):
    """The query needs what a row cannot store; the text names it."""


class Outputs:
    """Output columns of a query over merged states, layer by layer.

    `frame` has them beside `key`, `window_end_ms`, `p…` and `visible`: whether all filters above the aggregate let the row through. `number_of`
    returns the number of an aggregate.
    """

    def __init__(
        self,
        plans: Plans,
        layers: Layers,
        groupings: Sequence[Any],
        number_of: Callable[[Any], int | None],
        merged: "DataFrame",
    ) -> None:
        self._plans = plans
        self._groupings = groupings
        self._constant = [name for name in merged.columns if name[0] not in "kv" or name == "key"]
        self._parts: dict[int, int] = {}  # number of the grouping that an attribute is
        self._attributes: dict[int, Any] = {}  # of `frame`, by the ids of the query's attributes
        attributes = {one.name(): one for one in items(analyzed(merged).output())}

        def replacement(node: Any) -> Any | None:
            if class_name(node) == AGGREGATE:
                return attributes[f"v{number_of(node)}"]
            nth = self._grouping_of(node)
            return None if nth is None else attributes[f"k{nth}"]

        for named in layers.named:
            bare = without_alias(named)
            nth = self._grouping_of(bare)
            if nth is None:
                nth = self._grouping_of(_window_of_start(bare))
            if nth is not None:
                self._parts[expression_id(named)] = nth
        self.frame = merged.withColumn("visible", sf.lit(True))
        self._constant.append("visible")
        self._select(layers.named, replacement, is_filtered=False)
        is_filtered = False
        for layer in layers.above:
            if class_name(layer) == "Filter":
                condition = self._column(layer.condition(), self._attribute_of, is_filtered)
                shown = sf.col("visible") & sf.coalesce(condition, sf.lit(False))
                self.frame = self.frame.withColumn("visible", shown)
                is_filtered = True
            elif class_name(layer) == "Project":
                named = items(layer.projectList())
                self._note_parts(named)
                self._select(named, self._attribute_of, is_filtered=is_filtered)
        outputs = items(layers.above[-1].output()) if layers.above else layers.named
        self._names = [(one.name(), expression_id(one)) for one in outputs]
        self._check_names()

    def _grouping_of(self, node: Any) -> int | None:
        numbers = enumerate(self._groupings)
        return next((nth for nth, one in numbers if one.semanticEquals(node)), None)

    def _attribute_of(self, node: Any) -> Any | None:
        if class_name(node) != ATTRIBUTE:
            return None
        return self._attributes[expression_id(node)]

    def _note_parts(self, named: Sequence[Any]) -> None:
        for column in named:
            bare = _window_of_start(without_alias(column))
            if class_name(bare) == ATTRIBUTE and expression_id(bare) in self._parts:
                self._parts[expression_id(column)] = self._parts[expression_id(bare)]

    def _column(self, expression: Any, replacement: Any, is_filtered: bool) -> "Column":
        """Return an expression as a column; not evaluated for a row that is filtered out."""
        column = self._plans.column(self._plans.substitute(expression, replacement))
        return sf.when(sf.col("visible"), column) if is_filtered else column

    def _select(self, named: Sequence[Any], replacement: Any, *, is_filtered: bool) -> None:
        columns = [
            self._column(without_alias(one), replacement, is_filtered).alias(f"o{nth}")
            for nth, one in enumerate(named)
        ]
        self.frame = self.frame.select(*self._constant, *columns)
        attributes = items(analyzed(self.frame).output())[len(self._constant) :]
        pairs = zip(named, attributes, strict=True)
        self._attributes |= {expression_id(one): attribute for one, attribute in pairs}

    def _check_names(self) -> None:
        names = [name.lower() for name, _ in self._names]
        if len(names) > limits.VIEW_OUTPUT_COLUMNS_MAX:
            raise NotStorable(f"an output of {len(names)} columns")
        for name in names:
            if names.count(name) > 1:
                raise NotStorable(f"an output with two columns {name!r}")

    def row(self) -> "Column":
        """Return the output as a struct."""
        return sf.struct(
            *[sf.col(self._attributes[one].name()).alias(name) for name, one in self._names]
        )

    def columns(self) -> tuple[ViewColumn, ...]:
        """Return the output columns."""
        types = {field.name: field.dataType.simpleString() for field in self.frame.schema}
        return tuple(
            ViewColumn(name, types[self._attributes[one].name()]) for name, one in self._names
        )

    def key(self, key_type: StructType) -> tuple[KeyColumn, ...]:
        """Return the parts of the key, with the output columns that show them."""
        shown = {
            self._parts[one]: name for name, one in reversed(self._names) if one in self._parts
        }
        return tuple(
            KeyColumn(shown.get(nth, ""), field.dataType.simpleString(), uses_window(grouping))
            for nth, (field, grouping) in enumerate(zip(key_type, self._groupings, strict=True))
        )


def _window_of_start(node: Any) -> Any:
    """Return the window whose start an expression is, and any other expression as it is."""
    if class_name(node) == "GetStructField" and node.extractFieldName() == "start":
        [whole] = children(node)
        return whole if uses_window(whole) else node
    return node
