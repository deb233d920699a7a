"""An OTLP/HTTP collector of spans, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class SpanCollector:
    """Collected spans and resources."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Any] = []
        self.resources: list[dict[str, Any]] = []

    def add(self, body: bytes) -> None:
        for resource_span in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(attributes_of(resource_span.resource))
            for scope in resource_span.scope_spans:
                self.spans += scope.spans

    def spans_named(self, name: str) -> list[Any]:
        """Spans of this name, by start time."""
        collector = [span for span in self.spans if span.name == name]
        return sorted(collector, key=lambda span: span.start_time_unix_nano)


def attributes_of(span: Any) -> dict[str, Any]:
    """Return the attributes of a span."""
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
        for attribute in span.attributes
    }


@contextmanager
def running_collector() -> Iterator[SpanCollector]:
    """Run a collector on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.add(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = SpanCollector(f"http://127.0.0.1:{server.server_port}")
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
