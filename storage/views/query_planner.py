"""Planning of queries: a job of a worker, whose result is waited for."""

from hashlib import sha256

import attrs
import msgspec

from storage.concurrency.bounded_cache import BoundedCache
from storage.domain.errors import ValidationFailed
from storage.domain.views.plan import PlanResult, SqlRefusal, ViewPlan
from storage.domain.views.view import ViewQuery
from storage.views.worker_results import WorkerResults

_PLANS_CACHED = 100


def _plans() -> BoundedCache[str, ViewPlan]:
    return BoundedCache(_PLANS_CACHED)


@attrs.define(eq=False, slots=False)
class ViewQueryPlanner:
    """Planner of queries, by jobs. Concurrent callers with the same query share one."""

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
