"""Processor of batches: tables, plans, and two Spark jobs for all views of a batch.

    tables read to their ends ──▶ queries planned ──▶ partial aggregates ──▶ merged with the stored states

A view that fails does not stop the others: after a failed Spark job each is run alone.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from spark_worker.runtime.job_context import JobContext
from spark_worker.sql.refusal import SqlRefused
from spark_worker.views.executor import Computed, Contributor, MergeInput, Partials, State
from spark_worker.views.failure import ViewFailed
from spark_worker.views.inputs.backlog import BatchRecords
from spark_worker.views.inputs.joins import JoinBuffers
from spark_worker.views.inputs.tables import Table, new_table, table_name
from spark_worker.views.session import ViewSession
from spark_worker.views.sessions import merge_sessions, session_keys
from spark_worker.views.step import encoded_keys
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.errors import (
    MillstreamError,
    StreamNotFound,
    StreamRecreated,
    ViewNotFound,
)
from storage.domain.names import StreamName, ViewName
from storage.domain.streams.stream import LogRecord
from storage.domain.views.progress import ViewRevision
from storage.domain.views.sources import SourceMode, merge_sources

_UNCHANGED = MergeInput([])


class BatchProcessor:
    """Processor of the batches of one job, with its Spark session and its tables."""

    def __init__(self, work: JobContext, session: ViewSession | None = None) -> None:
        self._work = work
        self._session = session
        self._tables: dict[StreamName | ViewName, Table] = {}
        self._join_buffers = JoinBuffers(work)

    @property
    def session(self) -> ViewSession | None:
        """Session with the plans of the revisions that were prepared; None before that."""
        return self._session

    def keep(self, revisions: Sequence[ViewRevision]) -> None:
        """Forget the plans of all other revisions, and the tables that none of these names."""
        present = {name for one in revisions for name in self._names(one).values()}
        self._tables = {name: table for name, table in self._tables.items() if name in present}
        ids = [revision.revision_id for revision in revisions]
        self._join_buffers.keep(ids)
        if self._session is not None:
            self._session.keep(ids, self._tables)

    def prepare(self, revisions: Sequence[ViewRevision]) -> dict[str, str]:
        """Read the tables of revisions and plan them; return the reasons of failures by id."""
        failures = self._read_tables(
            {name for one in revisions for name in self._names(one).values()}
        )
        spark = self._work.spark
        if self._session is None or self._session.spark is not spark:
            self._session = ViewSession(spark)
        reasons = [(one.revision_id, self._prepare(one, failures)) for one in revisions]
        return {revision_id: reason for revision_id, reason in reasons if reason}

    def compute(
        self, revisions: Sequence[ViewRevision], records: BatchRecords
    ) -> Mapping[str, Computed | Exception]:
        """Return the results of a batch; of a revision that fails, its error."""
        if not revisions:
            return {}
        try:
            return self._compute_together(revisions, records)
        except Exception as error:
            self._work.check()
            self._work.check_spark()
            if isinstance(error, MillstreamError):
                raise
            if len(revisions) == 1:
                return {revisions[0].revision_id: error}
        results: dict[str, Computed | Exception] = {}
        for revision in revisions:
            results |= self.compute([revision], records)
        return results

    def contributors(
        self, revision: ViewRevision, records: Mapping[int, Sequence[LogRecord]]
    ) -> Iterator[Contributor]:
        """Yield the records that contribute to rows of a prepared revision, which tracks sources."""
        assert self._session is not None
        return self._session.contributors(revision, records, self._tables_of(revision))

    def table_positions(self, revision: ViewRevision) -> dict[str, Mapping[int, int]]:
        """Return the positions of a revision's tables, by their names in its query."""
        return {name: table.positions for name, table in self._tables_of(revision).items()}

    def _names(self, revision: ViewRevision) -> dict[str, StreamName | ViewName]:
        """Return the names of a revision's tables, by their names in its query."""
        namespace, tables = self._work.job.namespace, revision.query.tables
        return {name: table_name(table, namespace) for name, table in tables.items()}

    def _tables_of(self, revision: ViewRevision) -> dict[str, Table]:
        """Return the tables of a revision, by their names in its query."""
        return {relation: self._tables[name] for relation, name in self._names(revision).items()}

    def _read_tables(
        self, names: Collection[StreamName | ViewName]
    ) -> Mapping[StreamName | ViewName, str]:
        """Read tables; return why that failed, by name."""
        failures: dict[StreamName | ViewName, str] = {}
        for name in names:
            table = self._tables.setdefault(name, new_table(name))
            try:
                self._work.call(table.read(self._work.storage))
            except (StreamNotFound, StreamRecreated):
                failures[name] = f"The stream {name.name!r} of a table was deleted."
            except ViewNotFound:
                failures[name] = f"The view {name.name!r} of a table was deleted."
            except ViewFailed as error:
                failures[name] = str(error)
        return failures

    def _prepare(
        self, revision: ViewRevision, failures: Mapping[StreamName | ViewName, str]
    ) -> str:
        """Plan a revision; return why it cannot be, empty if it can."""
        for name in self._names(revision).values():
            if name in failures:
                return failures[name]
        assert self._session is not None
        try:
            self._session.prepare(revision)
        except SqlRefused as error:
            return str(error)
        return self._session.changed_columns(revision, self._tables_of(revision))

    def _compute_together(
        self, revisions: Sequence[ViewRevision], records: BatchRecords
    ) -> Mapping[str, Computed]:
        assert self._session is not None
        if revisions[0].query.is_join:
            [revision] = revisions
            parse = partial(self._session.parsed, revision)
            batch = self._join_buffers.batch(parse, revision, records)
            of_batch = self._session.join(revision, batch, self._tables_of(revision))
            [computed] = self._merged(revisions, {revision.revision_id: of_batch}).values()
            return {
                revision.revision_id: computed._replace(
                    stats=batch.stats,
                    joined=batch.sides,
                    gaps=batch.gaps,
                    expiry_ms=batch.expiry_ms,
                )
            }
        tables = {one.revision_id: self._tables_of(one) for one in revisions}
        return self._merged(revisions, self._session.partials(revisions, records, tables))

    def _merged(
        self, revisions: Sequence[ViewRevision], partials: Mapping[str, Partials]
    ) -> dict[str, Computed]:
        """Merge the partial aggregates of a batch with the stored states."""
        assert self._session is not None
        changed = [entry for entry in revisions if partials[entry.revision_id].states]
        read_stored = partial(self._with_stored, partials)
        at_once = limits.VIEW_TRANSACTIONS_AT_ONCE
        inputs = dict(self._work.call(in_batches(changed, read_stored, at_once)))
        states = {revision_id: one.states for revision_id, one in inputs.items()}
        merged = self._session.merge(changed, states) if changed else {}
        return {
            entry.revision_id: Computed(
                [partials[entry.revision_id].stats],
                merged.get(entry.revision_id, ()),
                inputs.get(entry.revision_id, _UNCHANGED),
            )
            for entry in revisions
        }

    async def _with_stored(
        self, partials: Mapping[str, Partials], revision: ViewRevision
    ) -> tuple[str, MergeInput]:
        """Return what a batch changes with what is stored of the same keys, and the revision."""
        revision_id, of_batch = revision.revision_id, partials[revision.revision_id]
        scans, columns = self._work.storage.view_scans, revision.plan.key
        if revision.plan.session_gap_ms is not None:
            own = session_keys(of_batch, columns)
            overlapping = await scans.sessions(revision_id, own)
            return revision_id, merge_sessions(of_batch, own, overlapping, columns)
        keys = encoded_keys(of_batch.states, columns)
        stored = await scans.states(revision_id, [*keys])
        states = [State(keys[key].key, one.state) for key, one in stored.items()]
        sources = {}
        if revision.query.sources is SourceMode.RANGE:
            before = {key: one.sources for key, one in stored.items()}
            sources = {
                key: merge_sources([before.get(key, {}), of_batch.sources.get(state.key, {})])
                for key, state in keys.items()
            }
        json_keys = {state.key: key for key, state in keys.items()}
        return revision_id, MergeInput([*of_batch.states, *states], json_keys, sources)
