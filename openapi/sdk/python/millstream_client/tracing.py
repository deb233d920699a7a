"""Trace context, if the program uses OpenTelemetry."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

propagate: Any = None
with suppress(ImportError):
    from opentelemetry import propagate as _propagate

    propagate = _propagate


def trace_headers() -> dict[str, str]:
    """Return the headers that identify the span of a call.

    `traceparent`, and others that the program propagates. The service puts the context into what the call sends.
    """
    headers: dict[str, str] = {}
    if propagate is not None:
        propagate.inject(headers)
    return headers


def context_of(headers: Mapping[str, str]) -> Any:
    """Return the context in `headers` of a message or record, for a span's parent or links.

    None without OpenTelemetry.
    """
    return None if propagate is None else propagate.extract(headers)
