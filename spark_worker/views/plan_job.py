"""Planning job: checks and plans the query of a view; its result is the job's progress."""

from collections.abc import Mapping
from typing import Any

import msgspec

from spark_worker.runtime.job_context import JobContext
from spark_worker.sql.refusal import SqlRefused
from spark_worker.views.planning.planner import ViewPlanner
from storage.domain.views.plan import PlanResult, SqlRefusal
from storage.domain.views.view import ViewQuery


class PlanSpec(msgspec.Struct, frozen=True):
    """Specification of a planning job."""

    query: ViewQuery


def plan(work: JobContext) -> Mapping[str, Any]:
    """Plan a query; return the plan, or why it is refused."""
    query = work.spec(PlanSpec).query
    work.require_spark()
    return {"result": msgspec.to_builtins(_result(ViewPlanner(work.spark), query))}


def _result(planner: ViewPlanner, query: ViewQuery) -> PlanResult:
    try:
        return PlanResult(plan=planner.prepare(query).plan)
    except SqlRefused as error:
        place = error.position
        return PlanResult(
            refusal=SqlRefusal(error.problem, error.instead, place.line, place.column)
        )
