"""Limits of traces."""

from storage.domain.units import SECOND_MS

# Traces
TRACE_LINKS_MAX = 128  # of one span: as the OpenTelemetry SDK keeps
TRACE_LONG_POLL_MS = (
    SECOND_MS  # a receive that took longer has waited: its span is of what followed
)
