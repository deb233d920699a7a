"""Prepared view: the plans that its batches run, over relations that each batch fills.

    records ──▶ partial   kind, view, key, state, window end      one row for each key of the batch
            ──▶ unmatched     the same, of records without a match   only in an outer join
            ──▶ stats     … shard, its counts and newest event time
            ──▶ sources   … key, shard with first and last offset   only if the query tracks them
            ──▶ contributors   key, shard, offset   one row for each record that sources are made of
    keys and states (stored, and of the batch) ──▶ merge   view, key, state, window end, row

The records are those that `parse` returns, once for all plans: that is cheaper for many. `over_raw` returns plans of which each parses.

Keys, states and rows are JSON, so that the results of all views of a batch are one table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, StructType

from spark_worker.sql.refusal import SqlRefused
from spark_worker.sql.sizes import WindowCall
from spark_worker.views.planning.aggregates import PartialAggregate, Place, partial_of
from spark_worker.views.planning.join_bounds import join_bounds
from spark_worker.views.planning.layers import Layers, uses_window
from spark_worker.views.planning.outer_joins import pairs, unmatched
from spark_worker.views.planning.outputs import AGGREGATE, NotStorable, Outputs
from spark_worker.views.planning.plan_node import PlanNode
from spark_worker.views.planning.plans import (
    JSON,
    Plans,
    Template,
    class_name,
    stream_column,
    used_columns,
    walk,
)
from spark_worker.views.planning.records import ORDER, stats
from storage.domain.views.plan import ViewPlan
from storage.domain.views.view import ViewInput
from storage.parquet.record_schema import US_PER_MS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STATES = pa.schema(
    [
        pa.field("view", pa.string()),
        pa.field("key", pa.string()),
        pa.field("state", pa.string()),
        pa.field("window_end_ms", pa.int64()),
    ]
)
"""Rows that a merge reads: stored ones, and those of the partial plans.

Numbers of views are text: Spark has that beside its generated code, not in it, so equal queries share the code that the JVM compiles.
"""
_STORABLE = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    *("string", "binary", "date", "timestamp", "timestamp_ntz"),
)


class ResultKind(IntEnum):
    """Kind of a row that a batch returns."""

    STATE = 0
    STATS = 1
    SOURCES = 2


class RowsParser(NamedTuple):
    """Plan that parses the records of a table or a joined stream, and their columns."""

    template: Template
    schema: StructType


@dataclass(frozen=True)
class PreparedView:
    """A planned query, and its plans over empty relations.

    `counted`: views with an equal one parse the same records equally, and have equal stats of them. `parse`: None for plans over raw
    records. `needed`: columns of parsed ones that a batch uses. `sources` and `contributors`: None unless the query tracks
    the sources of its rows. `tables` parse the records of the query's tables, and `joined` those of the streams that it joins: then
    `partial` is over the rows of these, and there are no `stats`. `unmatched`: partial aggregates of records of an outer join whose wait
    has ended, if nothing matches them; None for others.
    """

    plan: ViewPlan
    partial: Template
    merge: Template
    unmatched: Template | None = None
    parse: Template | None = None
    needed: frozenset[str] = frozenset()
    stats: Template | None = None
    counted: tuple[Any, ...] = ()
    sources: Template | None = None
    contributors: Template | None = None
    tables: Mapping[str, RowsParser] = field(default_factory=dict)
    joined: Mapping[str, RowsParser] = field(default_factory=dict)


class _Aggregates:
    """Aggregates of a query, each once, and their partial columns, `p0` and so on."""

    def __init__(self, plans: Plans, layers: Layers, place: Place) -> None:
        self.expressions: list[Any] = []
        self._forms: list[PartialAggregate] = []
        for named in layers.named:
            for node in walk(named):
                if class_name(node) == AGGREGATE and self.number_of(node) is None:
                    self._forms.append(partial_of(plans, node, place))
                    self.expressions.append(node)

    def number_of(self, expression: Any) -> int | None:
        """Return the number of an aggregate, None if it is new."""
        numbers = enumerate(self.expressions)
        return next((nth for nth, one in numbers if one.semanticEquals(expression)), None)

    def partials(self) -> list["Column"]:
        """Return the partial columns over records."""
        every = [partial for form in self._forms for partial in form.partials]
        return [partial.alias(f"p{nth}") for nth, partial in enumerate(every)]

    def merged(self) -> list["Column"]:
        """Return the partial columns over the decoded states `s` of a key."""
        every = [
            column for form, fields in self._with_fields("s.p") for column in form.merge(fields)
        ]
        return [column.alias(f"p{nth}") for nth, column in enumerate(every)]

    def results(self) -> list["Column"]:
        """Return the results `v0`, `v1`, … over merged partial columns."""
        pairs = enumerate(self._with_fields("p"))
        return [form.result(fields).alias(f"v{nth}") for nth, (form, fields) in pairs]

    def _with_fields(self, prefix: str) -> "list[tuple[PartialAggregate, list[Column]]]":
        pairs, first = [], 0
        for form in self._forms:
            numbers = range(first, first := first + len(form.partials))
            pairs.append((form, [sf.col(f"{prefix}{nth}") for nth in numbers]))
        return pairs


def prepare(
    plans: Plans,
    layers: Layers,
    records: "DataFrame",
    *,
    parse: Template,
    input_: ViewInput,
    window: WindowCall | None,
    number: int,
    tracks_sources: bool = False,
) -> PreparedView:
    """Build the plans of a query, whose results have the column `view` = `number`.

    Raises NotMergeable, NotStorable, SqlRefused.
    """
    place = cache(partial(_arrival_order, plans, layers))
    prepared, key_type = _prepared(plans, layers, place, window, number)
    counted = stats(records).select(
        *_label(ResultKind.STATS, number),
        sf.col("shard").cast("string").alias("key"),
        sf.to_json(sf.struct("records", "late", "bad", "newest_ms"), JSON).alias("state"),
        sf.lit(None).cast("bigint").alias("window_end_ms"),
    )
    sources = contributors = None
    if tracks_sources:
        sources, contributors = _sources(plans, layers, key_type, number)
    templates = prepared.partial, plans.template(counted), sources
    return replace(
        prepared,
        parse=parse,
        needed=frozenset().union(*(used_columns(one) for one in templates if one)),
        stats=templates[1],
        counted=(input_.columns, input_.event_time, window),
        sources=sources,
        contributors=contributors,
    )


def over_raw(plans: Plans, view: PreparedView) -> PreparedView:
    """Return a view whose plans parse raw records themselves, as far as each needs them."""
    assert view.parse is not None
    parsed = plans.of_frame(plans.frame(view.parse.node))
    tables = dict.fromkeys(view.tables, plans.unchanged)

    def parsing(template: Template) -> Template:
        return plans.template(plans.frame(plans.over(template, parsed, tables)))

    return replace(
        view,
        parse=None,
        partial=parsing(view.partial),
        stats=view.stats and parsing(view.stats),
        sources=view.sources and parsing(view.sources),
        contributors=view.contributors and parsing(view.contributors),
    )


def prepare_join(
    plans: Plans,
    layers: Layers,
    streams: Mapping[str, StructType],
    *,
    window: WindowCall | None,
    number: int,
) -> PreparedView:
    """Build the plans of a query that joins these streams, as `prepare` does.

    The parsers of its rows are not among them.
    """
    place = cache(partial(_arrival_order_of_pairs, plans, layers, streams))
    times = {name: schema.names.index("event_time") for name, schema in streams.items()}
    optimized = plans.optimized(plans.frame(layers.input.plan))
    bounds = join_bounds(PlanNode.of(optimized), times)
    inputs = [pairs(plans, layers.input)]
    if bounds.preserved:
        inputs.append(unmatched(plans, layers.input))
    prepared, _ = _prepared(plans, layers, place, window, number, inputs=inputs)
    plan = msgspec.structs.replace(
        prepared.plan, join_waits_ms=bounds.waits_ms, join_preserved=bounds.preserved
    )
    return replace(prepared, plan=plan)


def _prepared(
    plans: Plans,
    layers: Layers,
    place: Place,
    window: WindowCall | None,
    number: int,
    *,
    inputs: Sequence[Any] = (),
) -> tuple[PreparedView, StructType]:
    """Return a view with its plan, `partial` and `merge`; and the type of its key.

    `inputs`: plans that have the rows of the input together: of `partial`, and of `unmatched`.
    """
    groupings = _groupings(layers)
    aggregates = _Aggregates(plans, layers, place)
    of_records = _partial(plans, layers.input.plan, layers.window, groupings, aggregates)
    key_type = _struct(of_records, "k")
    state_type = _struct(of_records, "p")
    merged = _merged(plans, aggregates, key_type, state_type, number)
    outputs = Outputs(plans, layers, groupings, aggregates.number_of, merged)
    plan = ViewPlan(
        columns=outputs.columns(),
        key=outputs.key(key_type),
        window_ms=_window_ms(window),
        session_gap_ms=_session_gap_ms(window),
        aggregates=tuple(one.sql() for one in aggregates.expressions),
    )
    merge = outputs.frame.select(
        sf.lit(str(number)).alias("view"),
        "key",
        _json_of("p", state_type).alias("state"),
        "window_end_ms",
        sf.when(sf.col("visible"), sf.to_json(outputs.row(), JSON)).alias("row"),
    )
    partials = [_partial(plans, one, layers.window, groupings, aggregates) for one in inputs]
    encoded = [
        one.select(
            *_label(ResultKind.STATE, number),
            _json_of("k", key_type).alias("key"),
            _json_of("p", state_type).alias("state"),
            "window_end_ms",
        )
        for one in partials or [of_records]
    ]
    first, *others = map(plans.template, encoded)
    view = PreparedView(
        plan=plan,
        partial=first,
        unmatched=others[0] if others else None,
        merge=plans.template(merge),
    )
    return view, key_type


def _groupings(layers: Layers) -> list[Any]:
    """Return the grouping expressions; the window is the last part of a key."""
    return sorted(layers.groupings, key=uses_window)


def _label(kind: ResultKind, number: int) -> list["Column"]:
    """Return the columns that say what a row is, and of which view."""
    return [sf.lit(int(kind)).alias("kind"), sf.lit(str(number)).alias("view")]


def _window_ms(window: WindowCall | None) -> tuple[int, int] | None:
    if window is None or window.is_session:
        return None
    return window.duration_us // US_PER_MS, window.slide_us // US_PER_MS


def _session_gap_ms(window: WindowCall | None) -> int | None:
    return window.duration_us // US_PER_MS if window is not None and window.is_session else None


def _arrival_order(plans: Plans, layers: Layers) -> "Column | None":
    """Return the place of a record, None where a subquery hides one of its columns."""
    columns = layers.record_columns
    if not columns.keys() >= set(ORDER):
        return None
    return sf.struct(*[plans.column(columns[name]).alias(name) for name in ORDER])


def _arrival_order_of_pairs(
    plans: Plans, layers: Layers, streams: Mapping[str, StructType]
) -> "Column | None":
    """Return the place of a pair of records, which arrives with the later of the two."""
    columns = layers.record_columns
    own = [
        [stream_column(name, schema.names.index(column)) for column in ORDER]
        for name, schema in sorted(streams.items())
    ]
    if not columns.keys() >= {name for names in own for name in names}:
        return None
    places = [[plans.column(columns[name]) for name in names] for names in own]
    arrival = sf.greatest(*[place[0] for place in places])
    columns_of_pair = [arrival, *(column for place in places for column in place)]
    return sf.struct(*[one.alias(f"o{nth}") for nth, one in enumerate(columns_of_pair)])


def _partial(
    plans: Plans,
    records: Any,
    window: Any | None,
    groupings: Sequence[Any],
    aggregates: _Aggregates,
) -> "DataFrame":
    """Return the partial aggregates of the rows of a plan: `k…`, `p…` and `window_end_ms`."""
    end = sf.lit(None).cast("timestamp")
    if window is not None:
        end = plans.column(window)["end"]
    window_end = sf.max(sf.unix_millis(end)).alias("window_end_ms")
    keys = [plans.column(one).alias(f"k{nth}") for nth, one in enumerate(groupings)]
    return plans.frame(records).groupBy(*keys).agg(*aggregates.partials(), window_end)


def _sources(
    plans: Plans, layers: Layers, key_type: StructType, number: int
) -> tuple[Template, Template]:
    """Return the plans `sources` and `contributors`. Raises SqlRefused."""
    columns = layers.record_columns
    if not {"shard", "offset"} <= columns.keys():
        raise SqlRefused(
            "the sources of a row cannot be tracked: a subquery hides the columns shard and offset",
            "Select both in each subquery, or set sources to none.",
        )
    keys = [plans.column(one).alias(f"k{nth}") for nth, one in enumerate(_groupings(layers))]
    place = [plans.column(columns[name]).alias(name) for name in ("shard", "offset")]
    frame = plans.frame(layers.input.plan).select(*keys, *place)
    key = _json_of("k", key_type).alias("key")
    contributors = frame.groupBy(*frame.columns).count().select(key, "shard", "offset")
    ranges = frame.groupBy(*key_type.names, "shard").agg(
        sf.min("offset").alias("first"),
        sf.max("offset").alias("last"),
        sf.count(sf.lit(1)).alias("records"),
    )
    sources = ranges.select(
        *_label(ResultKind.SOURCES, number),
        key,
        sf.to_json(sf.array("shard", "first", "last", "records")).alias("state"),
        sf.lit(None).cast("bigint").alias("window_end_ms"),
    )
    return plans.template(sources), plans.template(contributors)


def _struct(frame: "DataFrame", prefix: str) -> StructType:
    """Return the type of the columns `k…` or `p…`. Raises NotStorable."""
    columns = [column for column in frame.schema if column.name.rstrip("0123456789") == prefix]
    for column in columns:
        _check_storable(column.dataType)
    return StructType(columns)


def _check_storable(type_: DataType) -> None:
    if isinstance(type_, StructType):
        for field in type_:
            _check_storable(field.dataType)
    elif isinstance(type_, ArrayType):
        _check_storable(type_.elementType)
    elif not type_.simpleString().startswith(_STORABLE):
        raise NotStorable(f"a group or an aggregate of type {type_.simpleString()}")


def _json_of(prefix: str, type_: StructType) -> "Column":
    if not type_.names:
        return sf.lit("{}")
    return sf.to_json(sf.struct(*type_.names), JSON)


def _merged(
    plans: Plans,
    aggregates: _Aggregates,
    key_type: StructType,
    state_type: StructType,
    number: int,
) -> "DataFrame":
    """Return merged states: `key`, `window_end_ms`, `p…`, and from them `k…` and `v…`."""
    states = plans.relation(STATES).where(sf.col("view") == str(number))
    decoded = (
        states.withColumn("s", sf.from_json("state", state_type, JSON))
        if state_type.names
        else states
    )
    merged = decoded.groupBy("key").agg(
        sf.max("window_end_ms").alias("window_end_ms"), *aggregates.merged()
    )
    if key_type.names:
        merged = merged.withColumn("k", sf.from_json("key", key_type, JSON))
    keys = [sf.col(f"k.{name}").alias(name) for name in key_type.names]
    return merged.select("key", "window_end_ms", *state_type.names, *keys, *aggregates.results())
