"""Time series of queues, streams, groups and the namespace."""

from typing import Annotated, NamedTuple

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
