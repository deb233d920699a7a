"""Time series of queues, streams, groups and the namespace."""

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Query

from api.native.audited_route import AuditedRoute
from api.native.dependencies import (
    GroupPath,
    PrincipalDep,
    QueuePath,
    StorageDep,
    StreamPath,
    may,
    may_all,
)
from api.native.examples import AT, Example
from api.rest.schemas.timeseries import SeriesOut
from storage.domain import limits
from storage.domain.access.permissions import Action

router = APIRouter(prefix="/v1", route_class=AuditedRoute)

WindowSeconds = Annotated[
    int,
    Query(
        ge=limits.SERIES_STEP_MS // limits.SECOND_MS,
        le=limits.SERIES_QUARTER_RETENTION_MS // limits.SECOND_MS,
        description="Period before now, up to two weeks.",
    ),
]
Columns = Annotated[
    str,
    Query(
        max_length=limits.SERIES_COLUMNS_CHARACTERS_MAX,
        description="Comma-separated columns to return; default: all.",
    ),
]
_HOUR_SECONDS = limits.HOUR_MS // limits.SECOND_MS


class _View(NamedTuple):
    """Range and columns of a time series."""

    window_ms: int
    columns: str


def _view(window_seconds: WindowSeconds = _HOUR_SECONDS, columns: Columns = "") -> _View:
    return _View(window_seconds * limits.SECOND_MS, columns)


ViewDep = Annotated[_View, Depends(_view)]


@router.get(
    "/queues/{queue}/series", dependencies=[Depends(may(Action.QUEUE_LIST))], tags=["queues"]
)
async def get_queue_series(queue: QueuePath, storage: StorageDep, view: ViewDep) -> SeriesOut:
    """Return the counts and rates of a queue over time."""
    return SeriesOut.from_domain(
        await storage.time_series.of_queue(queue, view.window_ms), view.columns
    )


@router.get(
    "/streams/{stream}/series", dependencies=[Depends(may(Action.STREAM_LIST))], tags=["streams"]
)
async def get_stream_series(stream: StreamPath, storage: StorageDep, view: ViewDep) -> SeriesOut:
    """Return the size, rates and lag of a stream over time."""
    return SeriesOut.from_domain(
        await storage.time_series.of_stream(stream, view.window_ms), view.columns
    )


@router.get(
    "/groups/{group}/series", dependencies=[Depends(may(Action.GROUP_LIST))], tags=["groups"]
)
async def get_group_series(group: GroupPath, storage: StorageDep, view: ViewDep) -> SeriesOut:
    """Return the lag and commits of a group over time."""
    return SeriesOut.from_domain(
        await storage.time_series.of_group(group, view.window_ms), view.columns
    )


@router.get("/series", dependencies=[Depends(may_all(Action.METRICS_READ))], tags=["namespaces"])
async def get_namespace_series(
    storage: StorageDep,
    principal: PrincipalDep,
    view: ViewDep,
) -> SeriesOut:
    """Return the totals of the namespace over time."""
    return SeriesOut.from_domain(
        await storage.time_series.of_namespace(principal.namespace, view.window_ms), view.columns
    )


# Examples of the OpenAPI document


def _series(**columns: list[float | None]) -> dict[str, Any]:
    return {"start_at": AT, "step_seconds": 10, "columns": columns}


EXAMPLES = {
    "get_queue_series": Example(
        "/v1/queues/orders/series?window_seconds=20",
        answer=_series(
            ready=[3, 4],
            ready_max=[3, 4],
            oldest_age_seconds=[12.5, 22.5],
            sent_per_second=[0, 0.1],
            acknowledge_p95_seconds=[None, 1.8],
            failure_ratio=[None, 0.05],
        ),
    ),
    "get_namespace_series": Example(
        "/v1/series?window_seconds=20",
        answer=_series(queues=[2, 2], ready=[7, 9], messages_in_per_second=[1.5, 2.1]),
    ),
    "get_stream_series": Example(
        "/v1/streams/clicks/series?window_seconds=20",
        answer=_series(records=[90, 100], records_in_per_second=[0.5, 1], lag_records=[None, None]),
    ),
    "get_group_series": Example(
        "/v1/groups/readers/series?window_seconds=20",
        answer=_series(lag_records=[None, 12], lag_seconds=[None, 0.8], members=[None, 1]),
    ),
}
