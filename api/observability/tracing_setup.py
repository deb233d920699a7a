"""Whether somebody collects this process's spans, and how they get there."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from api.config.settings import Settings
from api.observability.logging import get_logger
from api.observability.tracing import Tracing

_log = get_logger("api.tracing")


def open_tracing(settings: Settings) -> Tracing | None:
    """What collects this process's spans; None where nobody wants them."""
    endpoint = settings.traces_endpoint
    if endpoint is None:
        return None
    try:
        from api.observability.otel import Spans
    except ModuleNotFoundError:
        _log.warning("tracing_off", reason="pip install '.[otel]' in a clone of Millstream")
        return None
    return Spans(endpoint)


@asynccontextmanager
async def tracing(settings: Settings) -> AsyncGenerator[Tracing | None]:
    """The same while the block runs, and what is left is handed on at its end."""
    opened = open_tracing(settings)
    try:
        yield opened
    finally:
        await close_tracing(opened)


async def close_tracing(opened: Tracing | None) -> None:
    """Hand on what is left."""
    if opened is not None:
        await asyncio.to_thread(opened.close)
