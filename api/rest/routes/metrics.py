"""Prometheus metrics at /metrics."""

from collections.abc import Callable
from itertools import chain
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from api.native.dependencies import Prefix, PrincipalDep, StorageDep, may, may_all
from api.observability.metric_buffers import MetricBuffers
from api.observability.metric_definitions import collect_counted, render
from api.observability.resource_metrics import ResourceKind, object_families
from api.observability.store_metrics import StateMetrics
from storage.domain.access.permissions import Action
from storage.domain.clock import SystemClock

METRICS = Depends(may_all(Action.METRICS_READ))
SOME_METRICS = Depends(may(Action.METRICS_READ))


def metrics_router(counts: MetricBuffers, state: Callable[[], StateMetrics]) -> APIRouter:
    """Return the metrics routes.

    They are not in the OpenAPI document: the responses are not JSON and are meant for Prometheus.
    """
    router = APIRouter(include_in_schema=False)

    @router.get("/metrics", dependencies=[METRICS])
    async def show_metrics(request: Request) -> Response:
        """Return the counters and gauges of the deployment."""
        counts.flush()
        families = chain(collect_counted(), await state().families())
        return _rendered(*render(families, request.headers.get("accept", "")))

    @router.get("/metrics/per-object", dependencies=[SOME_METRICS])
    async def show_metrics_per_object(
        request: Request,
        storage: StorageDep,
        principal: PrincipalDep,
        prefix: Prefix = "",
        kind: Annotated[list[ResourceKind] | None, Query()] = None,
    ) -> Response:
        """Return the gauges of each resource in the caller's namespace."""
        families = await object_families(
            storage, principal, kind or tuple(ResourceKind), prefix, SystemClock().now_ms()
        )
        return _rendered(*render(families, request.headers.get("accept", "")))

    return router


def _rendered(body: bytes, content_type: str) -> Response:
    return Response(body, headers={"content-type": content_type, "vary": "accept"})
