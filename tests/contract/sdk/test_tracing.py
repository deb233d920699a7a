"""Trace context in the Python SDK."""

from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from millstream_client import tracing

SPAN = SpanContext(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, False, TraceFlags(1))


def test_trace_context_of_span_reaches_receiver(orders):
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(SPAN)))
    try:
        orders.send("in it")
    finally:
        context.detach(token)
    orders.send("outside")

    inside, outside = orders.receive(2)

    made_in = tracing.context_of(inside.headers)
    assert trace.get_current_span(made_in).get_span_context().span_id == SPAN.span_id
    assert trace.get_current_span(made_in).get_span_context().trace_id == SPAN.trace_id
    assert outside.headers == {}


def test_no_trace_context_is_sent_without_opentelemetry(orders, monkeypatch):
    monkeypatch.setattr(tracing, "propagate", None)
    orders.send("x")

    [message] = orders.receive()

    assert message.headers == {}
    assert tracing.context_of(message.headers) is None
