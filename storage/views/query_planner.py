"""Planning of queries, by jobs of workers, whose results are waited for."""

from hashlib import sha256

import attrs
import msgspec
from msgspec.structs import replace

from storage.concurrency.bounded_cache import BoundedCache
from storage.domain.errors import ValidationFailed
from storage.domain.names import ViewName
from storage.domain.views.plan import PlanResult, SqlRefusal, ViewPlan, columns_as_ddl
from storage.domain.views.progress import RevisionState
from storage.domain.views.view import View, ViewQuery, ViewSpec, ViewTable
from storage.postgres.repositories.views import ViewRows
from storage.views.worker_results import WorkerResults

_PLANS_CACHED = 100


def _plans() -> BoundedCache[str, ViewPlan]:
    return BoundedCache(_PLANS_CACHED)


@attrs.define(eq=False, slots=False)
class ViewQueryPlanner:
    """Planner of queries, by jobs. Concurrent callers with the same query share one."""

    _rows: ViewRows
    _results: WorkerResults
    _plans: BoundedCache[str, ViewPlan] = attrs.field(factory=_plans, init=False)

    async def plan(self, namespace: str, query: ViewQuery) -> ViewPlan:
        """Return the plan of a query.

        Raises ValidationFailed if it is refused, ViewPlanPending if no worker has planned it within VIEW_RESULT_WAIT_MS.
        """
        subject = _digest(query)
        if (plan := self._plans.get(subject)) is not None:
            return plan
        spec = {"query": msgspec.to_builtins(query)}
        plan = _plan_of(await self._results.get(namespace, subject, spec))
        self._plans[subject] = plan
        return plan

    async def with_columns(self, name: ViewName, spec: ViewSpec, before: View | None) -> ViewSpec:
        """Return a configuration with the present columns of the views that its query reads.

        Those of a view that was deleted stay as they were in `before`. Raises ValidationFailed for one that does not exist.
        """
        tables = dict(spec.query.tables)
        for relation, table in tables.items():
            if table.view:
                columns = await self._columns_of(name, relation, table, before)
                tables[relation] = replace(table, columns=columns)
        return replace(spec, query=replace(spec.query, tables=tables))

    async def _columns_of(
        self, name: ViewName, relation: str, table: ViewTable, before: View | None
    ) -> str:
        pointer = f"/from/{relation}/view"
        if table.view == name.name:
            raise ValidationFailed.at(pointer, "A view cannot read its own rows", "conflict")
        for _, revision in await self._rows.with_revisions(ViewName(table.view, name.namespace)):
            if revision.state is RevisionState.ACTIVE:
                return columns_as_ddl(revision.plan.columns)
        former = before and before.spec.query.tables.get(relation)
        if former and former.view == table.view:
            return former.columns
        raise ValidationFailed.at(pointer, f"View '{table.view}' does not exist", "not_found")


def _digest(query: ViewQuery) -> str:
    return sha256(msgspec.json.encode(query, order="deterministic")).hexdigest()


def _plan_of(stored: object) -> ViewPlan:
    """Return the plan that a worker stored. Raises ValidationFailed for a refusal."""
    result = msgspec.convert(stored, PlanResult)
    if result.plan is not None:
        return result.plan
    assert result.refusal is not None
    raise ValidationFailed.at("/sql", _described(result.refusal), "sql_refused")


def _described(refusal: SqlRefusal) -> str:
    place = f"Line {refusal.line}, column {refusal.column}"
    return f"{place}: {refusal.problem}. {refusal.instead}".strip()
