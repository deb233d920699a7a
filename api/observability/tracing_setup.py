"""Configuration of tracing: whether this process's spans are exported, and where to."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from api.config.settings import Settings
from api.observability.logging import get_logger
from api.observability.tracing import Tracing

_log = get_logger("api.tracing")


def open_tracing(settings: Settings) -> Tracing | None:
    """Return the span exporter of this process; None if tracing is disabled."""
    endpoint = settings.traces_endpoint
    if endpoint is None:
        return None
    try:
        from api.observability.otel import OtelTracing
    except ModuleNotFoundError:
        _log.warning("tracing_off", reason="pip install '.[otel]' in a clone of Millstream")
        return None
    return OtelTracing(endpoint)


@asynccontextmanager
async def tracing(settings: Settings) -> AsyncGenerator[Tracing | None]:
    """Run the span exporter while the block runs, and export pending spans at its end."""
    opened = open_tracing(settings)
    try:
        yield opened
    finally:
        await close_tracing(opened)


async def close_tracing(opened: Tracing | None) -> None:
    """Export pending spans."""
    if opened is not None:
        await asyncio.to_thread(opened.close)
