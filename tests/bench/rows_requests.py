"""Requests: from a request to its reply, against the wake-up of a receive by a send."""

import json
from time import monotonic, sleep

from tests.bench.plan import REQUEST_REPLY, Plan
from tests.bench.ratios import Measured, Round
from tests.bench.rows_idle import percentile_99
from tests.bench.rows_topics import receive_after
from tests.bench.servers import House
from tests.bench.wire import HttpConnection, call

PAUSE_S = 0.005
_QUEUE = "/v1/queues/bench-requests"
_REQUEST = json.dumps({"body": "m" * 256}).encode()


def measure_request_reply(house: House, plan: Plan) -> list[Measured]:
    """Ask a worker that is waiting, in turn with sends to it."""
    port = house.api.port
    call(port, "PUT", _QUEUE, {})
    with HttpConnection(port) as sender, HttpConnection(port) as worker:
        _ask(sender, worker)
        sends, requests = [], []
        for _ in range(plan.latency_samples):
            sends.append(receive_after(sender, worker, f"{_QUEUE}/messages", _QUEUE))
            requests.append(_ask(sender, worker))
    request, send = (1e3 * percentile_99(samples) for samples in (requests, sends))
    medians = [1e3 * sorted(samples)[len(samples) // 2] for samples in (sends, requests)]
    note = f"medians: a send {medians[0]:.2f}, a request and its reply {medians[1]:.2f} ms"
    return [Measured(row=REQUEST_REPLY, rounds=[Round(request, send)], notes=[note])]


def _ask(sender: HttpConnection, worker: HttpConnection) -> float:
    """Return the seconds from a request to the response with its reply."""
    worker.send("POST", f"{_QUEUE}/receive", b'{"wait_seconds": 20}')
    sleep(PAUSE_S)
    begun = monotonic()
    sender.send("POST", f"{_QUEUE}/requests", _REQUEST)
    message = json.loads(worker.read().body)["messages"][0]
    reply = {"request": message["reply_to"], "body": "r" * 256}
    ack = {"receipt_handle": message["receipt_handle"], "action": "ack", "reply": reply}
    worker.send("POST", f"{_QUEUE}/settle", json.dumps({"settlements": [ack]}).encode())
    answer = json.loads(sender.read().body)
    elapsed = monotonic() - begun
    assert answer["complete"], answer
    worker.read()
    return elapsed
