"""Sockets of the TypeScript SDK: publishing, requests and replies, compiled and run in Node.

`sockets.mjs` beside the SDK has the steps.
"""

import time
from pathlib import Path

import pytest

from tests.contract.sdk.lossy_proxy import running_lossy_proxy
from tests.javascript import compile_typescript, steps_of

SDK = Path(__file__).parents[3] / "openapi" / "sdk" / "typescript"
ANSWERS_LOST = 9


@pytest.fixture(scope="module")
def steps(service_url):
    """The output of each step of the script, by name; the last is behind a broken network."""
    compile_typescript(SDK)
    with running_lossy_proxy(service_url) as proxy:
        proxy.lose_every = ANSWERS_LOST
        script = ["sockets.mjs", service_url, f"tw{time.time_ns()}", proxy.url]
        return steps_of(SDK, "node", "--experimental-websocket", "--no-warnings", *script)


def test_socket_publishes_to_topic(steps):
    assert steps["publish"] == {
        "routes": [1, 1, 0],
        "stored": [{"id": 1}, "order.created", "/w==", "c7", 60],
        "once": [True, True, None],
        "inOrder": True,
        "large": 5,
    }


def test_socket_throws_refusals(steps):
    assert steps["refused"] == {
        "unroutable": "unroutable",
        "partly": "PartlyRefused",
        "missing": "topic_not_found",
        "large": "RangeError",
        "kind": "TypeError",
        "subject": "TypeError",
        "noSocket": "TypeError",
        "after": 1,
    }


def test_request_over_socket_gets_reply(steps):
    assert steps["request"] == {
        "reply": [{"n": 2}, "application/json", {"c": "d"}],
        "request": {"a": "b"},
        "late": "reply_taken",
        "nothing": [],
        "aborted": 23,  # the code of a TimeoutError
    }


def test_closed_socket_ends_its_calls(steps):
    assert steps["closed"] == {"waiting": "OutcomeUnknown", "after": "Lost"}


def test_each_publication_is_added_once_in_broken_network(steps):
    assert steps["broken"] == {"inOrder": True, "number": 100}
    assert "done" in steps
