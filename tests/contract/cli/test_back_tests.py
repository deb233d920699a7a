"""Back-tests of topics on the command line: in a call, and in a job."""

import threading

import httpx
import pytest

from tests.cli_commands import millstream
from tests.conditions import PATIENCE_S

pytestmark = pytest.mark.usefixtures("at_the_service")


@pytest.fixture
def topic(name: str) -> str:
    """A topic with three messages."""
    assert millstream("topic", "create", name).code == 0
    assert millstream("topic", "publish", name, "x", "y", "z", "--subject", "a").code == 0
    return name


def cancel_open_job(client: httpx.Client, topic: str) -> None:
    """Wait until the topic has an open job, and cancel it."""
    jobs: list[str] = []
    while not jobs:
        page = client.get("/v1/jobs?kind=backtest&state=queued").json()
        jobs = [job["id"] for job in page["items"] if job["subject"] == topic]
    client.post(f"/v1/jobs/{jobs[0]}/cancel").raise_for_status()


def test_incomplete_result_names_the_job(topic):
    ran = millstream("topic", "backtest", topic, "--subject", "a", "--max", "2")

    assert ran.code == 0
    assert "2 were evaluated; --job evaluates all" in ran.out


def test_job_is_started_and_shown_by_its_id(topic, client):
    start = ("topic", "backtest", topic, "--subject", "a", "--job", "--no-wait")

    started = millstream(*start)
    job = millstream(*start, "-o", "json").json
    shown = millstream("topic", "backtest", topic, "--id", job["id"])
    cancel_open_job(client, topic)

    assert started.out == (
        f"Started job {job['id']}: millstream topic backtest {topic} --id {job['id']}\n"
    )
    assert "waiting for a worker" in started.err
    assert "The job is queued; 0 of 3 messages were evaluated" in shown.out


def test_command_ends_with_its_job(topic, client):
    thread = threading.Thread(target=cancel_open_job, args=(client, topic))
    thread.start()

    ran = millstream("topic", "backtest", topic, "--job", "-o", "json")
    thread.join(PATIENCE_S)

    assert (ran.code, ran.json["state"]) == (5, "cancelled")
    assert "was cancelled" in ran.err


def test_limit_is_refused_for_a_job(topic):
    ran = millstream("topic", "backtest", topic, "--job", "--max", "5")
    assert (ran.code, "--max cannot be combined with --job" in ran.err) == (2, True)
