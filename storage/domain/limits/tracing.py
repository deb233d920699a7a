"""Limits of traces."""

from storage.domain.limits._shared import SECOND_MS

# Traces
TRACE_LINKS_MAX = 128  # per span, as in the OpenTelemetry SDK
TRACE_LONG_POLL_MS = (
    SECOND_MS  # a receive that took longer has waited: its span covers only the work after the wait
)
