"""Planner of views: from the text of a query to the plans that batches run.

    text ──▶ fence ──▶ Spark's analyzer ──▶ layers over one aggregate ──┬─▶ partial plan   records ─▶ key, state
                                                                        └─▶ merge plan     states of a key ─▶ state, row

A query is accepted if records can be added to its result one by one (`spark_worker.views.planning.layers`), and its aggregates have a partial
form (`spark_worker.views.planning.aggregates`).
"""

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from spark_worker.sql.fence import AcceptedQuery, SqlFence
from spark_worker.sql.refusal import START, Position, SqlRefused, first_line
from spark_worker.sql.sizes import WindowCall
from spark_worker.views.planning.aggregates import MERGEABLE, NotMergeable
from spark_worker.views.planning.layers import NotIncremental, read_layers
from spark_worker.views.planning.outputs import NotStorable
from spark_worker.views.planning.plans import (
    LOCAL_RELATION,
    Plans,
    RowsColumn,
    analyzed,
    class_name,
    used_columns,
)
from spark_worker.views.planning.prepared import (
    PreparedView,
    RowsParser,
    over_raw,
    prepare,
    prepare_join,
)
from spark_worker.views.planning.records import (
    RAW,
    TABLE,
    declared_columns,
    narrowed,
    parsed_columns,
    parsed_rows,
    parsed_table,
    relation,
    stream_relation,
    table_relation,
    visible,
)
from storage.domain.views.sources import SourceMode
from storage.domain.views.view import LatePolicy, ViewQuery, ViewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONTEXT = re.compile(r"\(line (\d+), position (\d+)\)|line (\d+),? pos(?:ition)? (\d+)")
_ALTERNATIVE = (
    "Write one group by over filters and projections of a stream, or of a join, left join or right join of two, "
    "and their joins with tables, and filters and projections over its result."
)

for _logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    logging.getLogger(_logger).disabled = True  # PySpark prints each refused query to stderr


class ViewPlanner:
    """Planner of queries in a session of its own, which has no other relations."""

    def __init__(self, spark: "SparkSession") -> None:
        self.spark = spark.newSession()
        self.plans = Plans(self.spark)
        self._fence = SqlFence(self.spark)
        for name, value in _SETTINGS.items():
            self.spark.conf.set(name, value)

    def prepare(self, query: ViewQuery, number: int = 0) -> PreparedView:
        """Plan a query; `number` identifies its results among those of a batch.

        Raises SqlRefused.
        """
        relations = [*query.inputs, *query.tables]
        accepted = self._fence.check(query.sql, relations)
        window = _window_of(accepted)
        try:
            parsers = {name: self._declare(name, table) for name, table in query.tables.items()}
            if query.is_join:
                prepared = self._prepare_join(query, accepted, window, number)
            else:
                prepared = self._prepare(query, accepted, window, number)
            return replace(prepared, tables=parsers)
        except (NotIncremental, NotStorable) as error:
            raise SqlRefused(f"{error} is not supported in a view", _ALTERNATIVE) from None
        except NotMergeable as error:
            allowed = ", ".join(sorted(MERGEABLE))
            raise SqlRefused(
                f"the aggregate {error} is not supported in a view", f"Use one of: {allowed}."
            ) from None
        finally:
            for name in relations:
                self.spark.catalog.dropTempView(name)

    def over_raw(self, view: PreparedView) -> PreparedView:
        """Return a prepared view of one stream whose plans are over raw records."""
        return over_raw(self.plans, view)

    def _prepare(
        self,
        query: ViewQuery,
        accepted: AcceptedQuery,
        window: WindowCall | None,
        number: int,
    ) -> PreparedView:
        columns = declared_columns(query.input)
        parsed = relation(self.plans.relation(RAW), query.input, columns, window)
        records = self.spark.createDataFrame([], parsed.schema)
        shown = visible(records, query.input, drops_late=query.late is LatePolicy.DROP)
        shown.createOrReplaceTempView(query.relation)
        return prepare(
            self.plans,
            read_layers(self._inlined(self._analyze(accepted.text))),
            records,
            parse=self.plans.template(parsed),
            input_=query.input,
            window=window,
            number=number,
            tracks_sources=query.sources is SourceMode.RANGE,
        )

    def _prepare_join(
        self, query: ViewQuery, accepted: AcceptedQuery, window: WindowCall | None, number: int
    ) -> PreparedView:
        """Plan a query of two streams, over rows that are parsed before they are joined."""
        parsed = {
            name: relation(self.plans.relation(RAW), one, declared_columns(one), None)
            for name, one in query.inputs.items()
        }
        schemas = {name: frame.drop("_bad", "_late").schema for name, frame in parsed.items()}
        for name, schema in schemas.items():
            stream_relation(self.spark, name, schema).createOrReplaceTempView(name)
        layers = read_layers(self._inlined(self._analyze(accepted.text)), query.inputs)
        view = prepare_join(self.plans, layers, schemas, window=window, number=number)
        joined = {}
        for name, frame in parsed.items():
            used = {
                schemas[name].names[column.number]
                for template in (view.partial, view.unmatched)
                if template is not None
                for column in map(RowsColumn.of, used_columns(template, name))
                if column is not None
            }
            needed = {*used, "event_time", "shard", "offset", "_bad"}
            template = self.plans.template(narrowed(frame.drop("_late"), needed))
            joined[name] = RowsParser(template, schemas[name])
        return replace(view, joined=joined)

    def _declare(self, name: str, table: ViewTable) -> RowsParser:
        """Declare an empty table; return the parser of its records."""
        raw = self.plans.relation(TABLE)
        if table.view:
            parsed = parsed_rows(raw, table.columns)
        else:
            parsed = parsed_table(raw, parsed_columns(table.columns))
        table_relation(self.spark, name, parsed.schema).createOrReplaceTempView(name)
        return RowsParser(self.plans.template(parsed), parsed.schema)

    def _analyze(self, text: str) -> Any:
        try:
            return analyzed(self.spark.sql(text))
        except PySparkException as error:
            raise refusal_of(error) from None

    def _inlined(self, plan: Any) -> Any:
        """Return a plan with its common table expressions in their places."""
        if class_name(plan) != "WithCTE":
            return plan
        rule = self.spark._jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE  # type: ignore[union-attr]
        return rule(True, False, False).apply(plan)


FENCED_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.session.timeZone": "UTC",
    LOCAL_RELATION[0]: LOCAL_RELATION[1],  # a batch is one relation
}
"""Settings of a session that runs queries of users."""

_SETTINGS = {
    **FENCED_SETTINGS,
    "spark.sql.adaptive.enabled": "false",  # a batch has one partition: nothing to adapt
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",  # parsed records are read once or twice
}


def _window_of(accepted: AcceptedQuery) -> WindowCall | None:
    """Return the only window of a query. Raises SqlRefused."""
    if len(accepted.windows) > 1:
        raise SqlRefused("a query with several windows is not supported", "Use one window.")
    window = next(iter(accepted.windows), None)
    if window is not None and window.time_column != "event_time":
        raise SqlRefused(
            "a window over another expression than event_time is not supported",
            "Write window(event_time, …) or session_window(event_time, …), and name a declared column as event_time of the stream.",
        )
    return window


def refusal_of(error: PySparkException) -> SqlRefused:
    """Return the refusal of a query that Spark's analyzer rejects."""
    match = _CONTEXT.search(str(error))
    position = START
    if match is not None and match[1]:
        position = Position(int(match[1]), int(match[2]))
    elif match is not None:
        position = Position(int(match[3]), int(match[4]) + 1)  # that form counts from 0
    return SqlRefused(first_line(str(error)), "Correct the query.", position)
