"""Routes of documents."""

import asyncio
import threading
from typing import Any

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from api import app_routes
from api.http.routing import Dispatcher
from api.observability.metric_buffers import MetricBuffers


async def test_openapi_document_is_built_once_by_a_thread(monkeypatch):
    """Each call built it for a second or more, in which the process answered no other call."""
    builders = list[threading.Thread]()

    def build(*_: Any) -> dict[str, str]:
        builders.append(threading.current_thread())
        return {"openapi": "3.1.0"}

    monkeypatch.setattr(app_routes, "build_document", build)
    app = FastAPI(openapi_url=None)
    app.include_router(app_routes._operator_routes(app, Dispatcher([], MetricBuffers(), "always")))
    async with AsyncClient(transport=ASGITransport(app), base_url="http://api") as client:
        answers = await asyncio.gather(*(client.get("/openapi.json") for _ in range(3)))

    assert [answer.json() for answer in answers] == [{"openapi": "3.1.0"}] * 3
    assert len(builders) == 1
    assert builders[0] is not threading.current_thread()
