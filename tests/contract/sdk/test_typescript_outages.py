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
        "ConnectionFailed",
        True,
        True,
    )
    assert closed["message"] == f"{cannot}ECONNREFUSED. {HINT}"
    assert closed["lines"] == [f"{cannot}ECONNREFUSED; retrying for up to 0.3 s"]


def test_subscription_to_closed_port_fails(steps):
    """Subscriptions reconnected without end, and without a log line."""
    subscription = steps["closed"]["subscription"]

    assert subscription["name"] == "ConnectionFailed"
    assert subscription["message"].endswith(HINT)


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
        "Not Found",
        "The answer was 500.",
        *["http://here answers, but it is not Millstream (HTTP 200, application/json)"] * 3,
    ]
    assert {answer["name"] for answer in steps["foreign"]["answers"]} == {
        "NotMillstream",
        "MillstreamError",
    }


def test_sending_needs_no_secure_context(steps):
    """Pages that are served by http have no `crypto.randomUUID`."""
    assert steps["insecure"] == {"keys": ["07" * 16]}
