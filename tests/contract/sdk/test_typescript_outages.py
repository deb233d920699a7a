"""The TypeScript SDK at ports that are closed, open late, or another service's.

`outages.mjs` beside the SDK has the steps.
"""

from pathlib import Path

import pytest

from tests.javascript import compile_typescript, steps_of

SDK = Path(__file__).parents[3] / "openapi" / "sdk" / "typescript"
HINT = "Is the service running? Start one with `millstream up`."


@pytest.fixture(scope="module")
def steps():
    """The output of each step of the script, by name."""
    compile_typescript(SDK)
    return steps_of(SDK, "node", "--experimental-websocket", "--no-warnings", "outages.mjs")


def test_closed_port_is_an_error_with_what_to_do(steps):
    """Thrown objects had no stack, and nothing was logged for a minute."""
    closed = steps["closed"]
    cannot = f"Cannot reach {closed['url']}: "

    assert (closed["name"], closed["isMillstreamError"], closed["hasStack"]) == (
        "NeverConnected",
        True,
        True,
    )
    assert closed["message"] == f"{cannot}ECONNREFUSED. {HINT}"
    assert closed["lines"] == [f"{cannot}ECONNREFUSED; retrying for up to 0.3 s"]


def test_subscription_to_closed_port_fails(steps):
    """Subscriptions reconnected without end, and without a log line."""
    subscription = steps["closed"]["subscription"]

    assert subscription["name"] == "NeverConnected"
    assert subscription["message"].endswith(HINT)


def test_worker_at_closed_port_fails(steps):
    work = steps["closed"]["work"]

    assert work["name"] == "NeverConnected"
    assert work["message"].endswith(HINT)


def test_default_client_fails_within_five_seconds(steps):
    assert 4 < steps["default"]["seconds"] < 6


def test_call_succeeds_when_port_opens_late(steps):
    assert steps["late"] == {"items": [], "lines": 1}


def test_foreign_answer_is_named(steps):
    foreign = [
        f"http://here answers, but it is not Millstream (HTTP {told})"
        for told in (
            "200, text/html",
            "200, no content type",
            "200, text/plain",
            "404, text/html",
            "403, text/html",
        )
    ]

    assert [answer["message"] for answer in steps["foreign"]["answers"]] == [
        *foreign,
        "Not Found (http_404)",
        "The answer was 500. (http_500)",
        *["http://here answers, but it is not Millstream (HTTP 200, application/json)"] * 3,
    ]
    assert {answer["name"] for answer in steps["foreign"]["answers"]} == {
        "NotMillstream",
        "NotFound",
        "ServerFailed",
    }


def test_lost_response_is_repeated_where_that_is_harmless(steps):
    """Each row: the outcome, the attempts, their idempotency keys, and whether it is unknown."""
    assert steps["lost"]["outcomes"] == {
        "send is repeated with its key": ["done", 3, 1, False],
        "half a body is no response": ["done", 2, 1, False],
        "silence ends": ["done", 2, 1, False],
        "move is not repeated": ["OutcomeUnknown", 1, 1, True],
        "delete that happened": ["done", 2, 1, False],
        "rejection after a loss": ["OutcomeUnknown", 2, 1, True],
        "rejection": ["NotFound", 1, 1, False],
        "no time left": ["Unavailable", 1, 1, False],
        "no retries of what is wrong": ["BadRequest", 1, 1, False],
    }
    assert steps["lost"]["requestId"] == "r1"


def test_unknown_ca_names_setting_of_node(steps):
    cannot = "ConnectionFailed: Cannot reach https://mill.example: "

    assert steps["certificate"]["messages"] == [
        f"{cannot}SELF_SIGNED_CERT_IN_CHAIN. Set NODE_EXTRA_CA_CERTS to the file of the CA that"
        " signed its certificate",
        f"{cannot}CERT_HAS_EXPIRED",
    ]


def test_aborted_call_throws_reason_of_signal(steps):
    assert steps["aborted"] == {"name": "TimeoutError", "requests": 1}


def test_batch_with_busy_record_is_sent_again(steps):
    assert steps["batch"] == {"offsets": [0, 1], "requests": 2, "keys": 1}


def test_hooks_and_options_apply_to_each_attempt(steps):
    path = "/v1/queues/orders/dead-letters/reasons"

    assert steps["hooks"]["rows"] == [["GET", path, 1, True, ""], ["GET", path, 2, 200, "r2"]]
    assert steps["hooks"]["tenants"] == ["acme"] * 4
    assert (steps["hooks"]["limited"], steps["hooks"]["silent"]) == ("Limited", "OutcomeUnknown")


def test_settings_come_from_environment_but_in_browsers(steps):
    assert steps["settings"]["rows"] == [
        ["Bearer of-the-environment", "acme", "millstream-client-js"],
        ["Bearer of-a-function", "", "millstream-client-js"],
        ["", "", "node"],
    ]
    assert steps["settings"]["url"] == "http://127.0.0.1:8080"
    assert "must begin with http://" in steps["settings"]["invalid"]


def test_sending_needs_no_secure_context(steps):
    """Pages that are served by http have no `crypto.randomUUID`."""
    assert steps["insecure"] == {"keys": ["07" * 16]}


def test_create_with_lost_response_returns_object(steps):
    """The repeat met the stream that the first attempt had created: OutcomeUnknown."""
    assert steps["repeats"]["stream"] == {
        "shards": 2,
        "created": False,
        "dry_run": False,
        "changes": [],
    }


def test_following_from_latest_is_placed_before_it_waits(steps):
    """A record that arrived during the first call was skipped if its response was lost."""
    assert steps["repeats"]["text"] == "x"
    assert steps["repeats"]["urls"] == [
        "from=latest&limit=1",
        "from=latest&limit=1",
        "cursor=c1&wait_seconds=20&limit=1000",
    ]
