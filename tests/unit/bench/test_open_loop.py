"""Open-loop load against a server that stalls once."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep

import pytest

from tests.bench.open_loop import OpenLoop, OpenLoopResult
from tests.bench.ratios import Unmeasurable

STALL_S = 0.2
STALLED_CALL = 40


class StallingHandler(BaseHTTPRequestHandler):
    """Returns what it is sent; one call makes all others wait."""

    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    calls: Iterator[int]

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            if next(self.calls) == STALLED_CALL:
                sleep(STALL_S)
        self.send_response(200 if body else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class StallingServer(ThreadingHTTPServer):
    """Accepts all connections at once, and ignores those that break."""

    request_queue_size = 128

    def handle_error(self, *_):
        pass


@pytest.fixture
def port():
    StallingHandler.calls = iter(range(10**6))
    with StallingServer(("127.0.0.1", 0), StallingHandler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_stall_delays_every_message_that_was_due(port):
    """Measured from the actual start, only the calls in flight would be slow."""
    with OpenLoop(port, "/queue", echo=True) as client:
        result = client.paced(rate=200, seconds=0.5)

    assert len(result.latencies) == 100
    assert result.longest_stall_ms >= 0.9e3 * STALL_S
    assert sum(latency > STALL_S / 4 for latency in result.latencies) >= 0.7 * STALL_S * 200
    assert max(result.latencies) >= 0.9 * STALL_S


def test_highest_rate_sends_without_a_schedule(port):
    with OpenLoop(port, "/queue", echo=True) as client:
        result = client.highest(seconds=2 * STALL_S)

    assert result.rate > STALLED_CALL / (2 * STALL_S)
    assert max(result.latencies) >= 0.9 * STALL_S


def test_refused_call_ends_the_run(port):
    with OpenLoop(port, "/queue", echo=True) as client:
        client._senders[0].send("POST", "/queue", b"")
        with pytest.raises(Unmeasurable, match="answered 500"):
            client.paced(rate=100, seconds=0.2)


def test_percentiles_and_stall_of_known_times():
    result = OpenLoopResult(
        seconds=2,
        latencies=[number / 1e3 for number in range(1_000)],
        answers=[0.0, 0.1, 0.5, 0.6],
    )

    assert result.rate == 500
    assert result.percentile_ms(50) == 500
    assert result.percentile_ms(99.9) == 999
    assert result.longest_stall_ms == pytest.approx(400)
