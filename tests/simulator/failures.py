"""Failures that no fault explains: exceptions that the product logs, drops or raises unexpectedly."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from traceback import format_exception
from typing import Any

from redis.exceptions import RedisError

from storage.domain.errors import MillstreamError

_EXPECTED = (MillstreamError, RedisError, TimeoutError, OSError, asyncio.CancelledError)
"""Reports of an unreachable store, and of a call that was ended."""


class FailureRecorder(logging.Handler):
    """Collects the text of each unexpected exception."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.record(record.exc_info[1], record.getMessage())

    def handle_loop_context(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Record what an event loop reports: exceptions that nobody has retrieved."""
        error = context.get("exception")
        if error is None:
            self.failures.append(context["message"])
        else:
            self.record(error, context["message"])

    def record(self, error: BaseException, message: str = "") -> None:
        """Record an exception, unless faults explain it."""
        if not isinstance(error, _EXPECTED):
            self.failures.append("\n".join([message, *format_exception(error)]).strip())


@contextmanager
def recorded_failures() -> Iterator[FailureRecorder]:
    """Record what the product logs, instead of passing it on."""
    recorder = FailureRecorder()
    with ExitStack() as loggers:
        for name in ("storage", "consumers"):
            loggers.enter_context(_redirected(logging.getLogger(name), recorder))
        yield recorder


@contextmanager
def _redirected(logger: logging.Logger, handler: logging.Handler) -> Iterator[None]:
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
