"""Executor of batches: two Spark jobs, for the partial aggregates and for their merge."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
import pyarrow as pa

from spark_worker.runtime.time_limit import time_limit
from spark_worker.views.planning.plans import Plans, Source, Template, analyzed
from spark_worker.views.planning.prepared import (
    STATES,
    PreparedView,
    ResultKind,
    RowsParser,
)
from storage.domain import limits
from storage.domain.views.sources import SourceRange, Sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


NO_TABLES: Mapping[Any, Any] = {}


class ShardStats(msgspec.Struct, frozen=True):
    """Records of a shard in a batch; `newest_ms` is their greatest event time."""

    records: int
    late: int
    bad: int
    newest_ms: int


class State(NamedTuple):
    """State of a key: stored, or of a batch. The key is JSON."""

    key: str
    state: str
    window_end_ms: int | None = None


class MergedRow(NamedTuple):
    """State of a key after a merge, with its row as JSON; None if `having` excludes it."""

    key: str
    state: str
    window_end_ms: int | None
    row: str | None


class Partials(NamedTuple):
    """Result of a batch for one view. `sources`: those of its records, by key, if tracked."""

    states: list[State]
    stats: dict[int, ShardStats]
    sources: dict[str, dict[int, SourceRange]]


class JoinSide(NamedTuple):
    """Parsed records of one stream of a join: the buffered ones, those of a batch, and both."""

    buffered: pa.Table
    new: pa.Table
    all_records: pa.Table

    @classmethod
    def of(cls, buffered: pa.Table, new: pa.Table) -> Self:
        """Return the side, whose records are copied once."""
        return cls(buffered, new, pa.concat_tables([buffered, new]).combine_chunks())


class MergeInput(NamedTuple):
    """States to merge, of a batch and stored.

    `keys`: encoded keys of the merged rows, by their JSON. By these: the sources of the rows, and the keys of the stored rows that
    they replace.
    """

    states: list[State]
    keys: Mapping[str, bytes] = {}
    sources: Mapping[bytes, Sources] = {}
    replaced: Mapping[bytes, tuple[bytes, ...]] = {}


class Computed(NamedTuple):
    """Result of a batch for one view: its rows, and what they were merged of.

    `stats`: of each stream that it follows. `joined`: the records of a join. `gaps`: those of it that are gone. `expiry_ms`: the
    watermark at which the next record of an outer join ceases to wait, if one waits.
    """

    stats: Sequence[Mapping[int, ShardStats]]
    rows: Sequence[MergedRow]
    merged: MergeInput
    joined: Mapping[str, JoinSide] = {}
    gaps: int = 0
    expiry_ms: int | None = None


class Contributor(NamedTuple):
    """Record that contributes to the row of a key, which is JSON."""

    key: str
    shard: int
    offset: int


_stats = msgspec.json.Decoder(ShardStats)
_range = msgspec.json.Decoder(tuple[int, int, int, int])


class Executor:
    """Executor of one session's prepared views, which are known by their numbers."""

    def __init__(self, spark: "SparkSession", plans: Plans) -> None:
        self._spark = spark
        self._plans = plans
        self._generates_code: bool | None = None

    def partials(
        self,
        views: Mapping[int, PreparedView],
        records: Mapping[int, pa.Table],
        tables: Mapping[int, Mapping[str, Any]] = NO_TABLES,
    ) -> dict[int, Partials]:
        """Return the partial aggregates of a batch: of raw records, joined with tables."""
        self._choose_codegen(max(map(len, records.values())))
        groups: dict[int, Any] = {
            number: (view.counted, id(records[number])) for number, view in views.items()
        }
        plans, counting = [], dict[Any, int]()
        with self._sources(views, records, groups) as sources:
            for number, view in views.items():
                source = sources[number]
                plans.append(self._plans.over(view.partial, source, tables.get(number, {})))
                if view.sources is not None:
                    plans.append(self._plans.over(view.sources, source, tables.get(number, {})))
                if counting.setdefault(groups[number], number) == number:
                    assert view.stats is not None  # that of a join has none, and is not here
                    plans.append(self._plans.over(view.stats, source))
            rows = self._collect(plans)
        results = {number: Partials([], {}, {}) for number in views}
        for kind, number, key, state, window_end_ms in rows:
            result = results[int(number)]
            if kind == ResultKind.STATE:
                result.states.append(State(key, state, window_end_ms))
            elif kind == ResultKind.STATS:
                result.stats[int(key)] = _stats.decode(state)
            else:
                shard, *of_shard = _range.decode(state)
                result.sources.setdefault(key, {})[shard] = SourceRange(*of_shard)
        return {
            number: results[number]._replace(stats=results[counting[groups[number]]].stats)
            for number in views
        }

    def join(
        self,
        view: PreparedView,
        sides: Mapping[str, JoinSide],
        expired: Mapping[str, pa.Table] = NO_TABLES,
        tables: Mapping[str, Any] = NO_TABLES,
    ) -> Partials:
        """Return the partial aggregates of the pairs that the new records of a join are in.

        Each pair is counted in the batch of the later one: a new record of the first stream with all of the second, and a buffered one
        with the new ones of the second. `expired`: records of the stream that an outer join preserves; those without a match are counted.
        """
        (first, left), (second, right) = sides.items()
        parts = [
            (view.partial, {first: left.new, second: right.all_records}),
            (view.partial, {first: left.buffered, second: right.new}),
        ]
        parts = [(plan, rows) for plan, rows in parts if all(map(len, rows.values()))]
        if any(map(len, expired.values())):
            assert view.unmatched is not None
            preserved = {name: side.all_records for name, side in sides.items()}
            parts.append((view.unmatched, {**preserved, **expired}))
        if not parts:
            return Partials([], {}, {})
        self._choose_codegen(left.all_records.num_rows + right.all_records.num_rows)
        every = {id(table): (name, table) for _, part in parts for name, table in part.items()}
        rows = {
            key: self._rows(table, view.joined[name].schema) for key, (name, table) in every.items()
        }
        plans = [
            self._plans.over(
                plan, None, {**tables, **{name: rows[id(table)] for name, table in part.items()}}
            )
            for plan, part in parts
        ]
        return Partials([State(*state) for _, _, *state in self._collect(plans)], {}, {})

    def parsed(self, parser: RowsParser, records: pa.Table) -> pa.Table:
        """Return raw records of a joined stream as its query sees them, with the column `_bad`."""
        self._choose_codegen(records.num_rows)
        plan = self._plans.over(parser.template, self._relation(records))
        with self._limited():
            return self._plans.frame(plan).toArrow()

    def contributors(
        self, view: PreparedView, records: pa.Table, tables: Mapping[str, Any] = NO_TABLES
    ) -> Iterator[Contributor]:
        """Yield the records that contribute to rows of a view that tracks their sources.

        Its plans are over raw records.
        """
        assert view.contributors is not None
        assert view.parse is None
        self._choose_codegen(records.num_rows)
        source = self._relation(records)
        plans = [self._plans.over(view.contributors, source, tables)]
        return (Contributor(*row) for row in self._collect(plans))

    def merge(
        self, views: Mapping[int, PreparedView], states: Mapping[int, Sequence[State]]
    ) -> dict[int, list[MergedRow]]:
        """Merge the states of each view by key: those of a batch with the stored ones."""
        rows = [(str(number), *state) for number, each in states.items() for state in each]
        columns = [*zip(*rows, strict=True)] or [()] * len(STATES)
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, STATES, strict=True)
        ]
        relation = self._relation(pa.Table.from_arrays(arrays, schema=STATES))
        plans = [self._plans.over(view.merge, relation) for view in views.values()]
        merged: dict[int, list[MergedRow]] = {number: [] for number in views}
        for number, *row in self._collect(plans):
            merged[int(number)].append(MergedRow(*row))
        return merged

    def _choose_codegen(self, records: int) -> None:
        generates = records >= limits.VIEW_CODEGEN_RECORDS
        if generates is not self._generates_code:
            self._spark.conf.set("spark.sql.codegen.wholeStage", str(generates).lower())
            mode = "FALLBACK" if generates else "NO_CODEGEN"
            self._spark.conf.set("spark.sql.codegen.factoryMode", mode)
            self._generates_code = generates

    def _rows(self, table: pa.Table, schema: "StructType") -> Source:
        """Return the source of parsed records."""
        return self._plans.arrow(table.select(schema.names).combine_chunks(), schema)

    def _relation(self, table: pa.Table) -> Source:
        """Return the source of a table's rows, which are a part of the plan."""
        return self._plans.rows(analyzed(self._spark.createDataFrame(table)).data())

    @contextmanager
    def _sources(
        self,
        views: Mapping[int, PreparedView],
        records: Mapping[int, pa.Table],
        groups: Mapping[int, Any],
    ) -> Iterator[Mapping[int, Source]]:
        """Yield the source of each view's records, in Spark's cache if they are parsed once."""
        needed: dict[Any, set[str]] = {}
        for number, view in views.items():
            needed.setdefault(groups[number], set()).update(view.needed)
        raw: dict[int, Source] = {}
        parsed: dict[Any, DataFrame] = {}
        try:
            for number, view in views.items():
                table, group = records[number], groups[number]
                if view.parse is None and id(table) not in raw:
                    raw[id(table)] = self._relation(table)
                elif view.parse is not None and group not in parsed:
                    parsed[group] = self._parsed(view.parse, table, needed[group]).persist()
            cached = {
                group: self._plans.of_frame(frame, needed[group]) for group, frame in parsed.items()
            }
            yield {
                number: cached[groups[number]] if view.parse else raw[id(records[number])]
                for number, view in views.items()
            }
        finally:
            for frame in parsed.values():
                frame.unpersist()

    def _parsed(self, parse: Template, table: pa.Table, needed: Collection[str]) -> "DataFrame":
        """Return parsed records without the columns that are not needed."""
        raw = self._plans.of_frame(self._plans.arrow_frame(table))
        frame = self._plans.frame(self._plans.over(parse, raw))
        return frame.select(*(name for name in frame.columns if name in needed))

    def _collect(self, plans: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        with self._limited():
            table = self._plans.union(plans).toArrow()
        return zip(*(column.to_pylist() for column in table.columns), strict=True)

    def _limited(self) -> AbstractContextManager[object]:
        """Cancel the Spark jobs of the block after VIEW_BATCH_MS_MAX."""
        context = self._spark.sparkContext
        group = context.getLocalProperty("spark.jobGroup.id") or ""
        return time_limit(limits.VIEW_BATCH_MS_MAX, partial(context.cancelJobGroup, group))
