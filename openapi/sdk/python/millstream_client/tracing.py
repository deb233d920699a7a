"""The context of traces, where the program has OpenTelemetry; nothing at all where it has not."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

propagate: Any = None
with suppress(ImportError):
    from opentelemetry import propagate as _propagate

    propagate = _propagate


def trace_headers() -> dict[str, str]:
    """The headers of a call that say in which span it is made: `traceparent`, and what else the program propagates.

    The service puts the context into what the call sends.
    """
    headers: dict[str, str] = {}
    if propagate is not None:
        propagate.inject(headers)
    return headers


def context_of(headers: Mapping[str, str]) -> Any:
    """The context in which a message or record was made, of its `headers`, as OpenTelemetry has it: for a span's
    parent or its links. None without OpenTelemetry."""
    return None if propagate is None else propagate.extract(headers)
