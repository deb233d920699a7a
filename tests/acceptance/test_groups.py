"""The session of docs/how-to/groups.md, run as shown."""

import re
from pathlib import Path

import httpx
import pytest

from tests.acceptance.deployment import deployed
from tests.acceptance.test_up import README_URL, curl_session, shell

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "groups.md"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A deployment with two API processes, so that calls of one member meet both."""
    log = tmp_path_factory.mktemp("groups") / "log"
    without_spark = {"MILLSTREAM_SPARK": "off"}
    with deployed(log, "--ephemeral", "--workers", "2", environment=without_spark) as deployment:
        yield deployment.url


def test_session_of_page_runs(url):
    output = shell(curl_session(PAGE.read_text()).replace(README_URL, url))

    lines = [line for line in output.splitlines() if line.strip()]
    appended = [line for line in lines if '"duplicate"' in line]
    assert ['"duplicate":true' in line for line in appended] == [False, True]
    polls = [line for line in lines if '"token"' in line]
    assert polls[0] != polls[1]  # a new instance of the member; the records are the same
    for poll in polls[:2]:
        texts = re.findall(r'"data":"([^"]*)"', poll)
        assert texts in (["12.50", "7.00"], ["7.00", "12.50"])
    shares = [re.search(r'"shards":(\[[0-9,]*\])', line) for line in polls]
    assert [share[1] for share in shares if share][2:5] == ["[]", "[0,1]", "[2,3]"]
    assert '"dry_run":true' in output
    assert '"data":"12.50"' in polls[-1]


def test_waiting_member_expires_when_client_disconnects(url):
    """The server sends heartbeats for a member only while a client waits."""
    httpx.put(f"{url}/v1/streams/quiet", json={"shards": 2}).raise_for_status()
    group = f"{url}/v1/groups/quiet"
    httpx.put(group, json={"stream": "quiet", "session_timeout_seconds": 1}).raise_for_status()

    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{group}/records", params={"member": "gone", "wait_seconds": 20}, timeout=0.5)
    heir = httpx.get(f"{group}/records", params={"member": "heir", "wait_seconds": 4}, timeout=30)

    assert heir.json()["shards"] == [0, 1]
