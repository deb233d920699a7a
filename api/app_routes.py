"""All routes of the service: the fast ones, and FastAPI's routers in order of precedence."""

from functools import cache
from threading import Lock
from typing import Any

import msgspec
from fastapi import APIRouter, FastAPI, Response

from api.admin import routes as dashboard
from api.http.routing import Dispatcher, Route
from api.observability.metric_buffers import MetricBuffers
from api.rest.route_modules import ROUTE_MODULES
from api.rest.routes.metrics import metrics_router
from api.spec.asyncapi import build_asyncapi
from api.spec.openapi import build_document
from api.sse import endpoint as events
from api.websocket import endpoint as websocket


def fast_routes() -> list[Route]:
    """Return the routes that are dispatched ahead of FastAPI."""
    modules = (module for module in (*ROUTE_MODULES, events) if hasattr(module, "fast_routes"))
    return [route for module in modules for route in module.fast_routes.routes]


def control_routers(
    app: FastAPI, dispatcher: Dispatcher, counts: MetricBuffers
) -> tuple[APIRouter, ...]:
    """Return FastAPI's routers."""
    return (
        *(module.router for module in ROUTE_MODULES if hasattr(module, "router")),
        metrics_router(counts, lambda: app.state.state_metrics),
        _operator_routes(app, dispatcher),
        *dashboard.ROUTERS,
    )


def _operator_routes(app: FastAPI, dispatcher: Dispatcher) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(websocket.PATH)
    async def open_socket() -> None:
        """Refuse a plain HTTP request to the WebSocket endpoint."""
        raise websocket.upgrade_required()

    @cache
    def document() -> bytes:
        return msgspec.json.encode(build_document(app, dispatcher.routes))

    building = Lock()

    @router.get("/openapi.json")
    def show_openapi() -> Response:
        """Return the OpenAPI document. Building it takes a second or more: a thread does it, once."""
        with building:
            return Response(document(), media_type="application/json")

    @router.get("/asyncapi.json")
    async def show_asyncapi() -> dict[str, Any]:
        """Return the AsyncAPI document of the WebSocket endpoint."""
        return build_asyncapi()

    return router
