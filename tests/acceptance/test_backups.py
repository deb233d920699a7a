"""Backups of a running and of a stopped deployment, and starting from a restored one."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.acceptance.deployment import command, deployed

MESSAGES = "/v1/queues/orders/messages"
NO_ARCHIVE = {"MILLSTREAM_ARCHIVE_URL": "off"}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="ms-") as place:
        yield Path(place)


def run_command(*words: str | Path) -> tuple[int, str]:
    done = command(*map(str, words), environment=NO_ARCHIVE)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.chaos
def test_backups_of_running_and_stopped_deployments_restore(place):
    data, restored, log = place / "data", place / "restored", place / "log"

    with deployed(log, "--data", str(data), environment=NO_ARCHIVE) as at_first:
        with httpx.Client(base_url=at_first.url) as http:
            http.put("/v1/queues/orders", json={}).raise_for_status()
            http.post(MESSAGES, content=b"one").raise_for_status()
            running = run_command("backup", place / "running", "--data", data)
            http.post(MESSAGES, content=b"two").raise_for_status()
        in_use = run_command("restore", place / "running", "--data", data)
        at_first.end()
    stopped = run_command("backup", place / "stopped", "--data", data)
    back = run_command("restore", place / "stopped", "--data", restored)
    again = run_command("restore", place / "stopped", "--data", restored)
    with (
        deployed(log, "--data", str(restored), environment=NO_ARCHIVE) as anew,
        httpx.Client(base_url=anew.url) as http,
    ):
        http.post(MESSAGES, content=b"three").raise_for_status()
        messages = http.post("/v1/queues/orders/receive", json={"messages_max": 10}).json()

    assert (running[0], stopped[0], back[0]) == (0, 0, 0), (running, stopped, back)
    assert [message["body"] for message in messages["messages"]] == ["one", "two", "three"]
    assert (in_use[0], again[0]) == (1, 1)
    assert "a Millstream is running on" in in_use[1]
    assert "already contains Millstream data" in again[1]
