"""The session of docs/replay.md, as a stranger types it."""

import json
import re
from pathlib import Path

import pytest

from tests.acceptance.deployment import deployed
from tests.acceptance.test_up import README_URL, curl_session, shell

PAGE = Path(__file__).parents[2] / "docs" / "replay.md"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    log = tmp_path_factory.mktemp("replay") / "log"
    with deployed(log, "--ephemeral") as deployment:
        yield deployment.url


def test_the_session_of_the_page_runs(url):
    said = shell(curl_session(PAGE.read_text()).replace(README_URL, url))

    lines = [line for line in said.splitlines() if line.strip()]
    [plan] = [json.loads(line) for line in lines if line.startswith('{"records":{"count"')]
    assert plan["records"] == {"count": 2, "exact": True}
    begun = [json.loads(line) for line in lines if line.startswith('{"id":"paid-again"')]
    assert begun[0]["created_at"] == begun[1]["created_at"]
    assert begun[-1]["progress"]["sent"] == 2
    [found] = [line for line in lines if ":source_offset" in line]
    assert re.findall(r'"id":(\d)', found) == ["1", "3"]
    slow = [json.loads(line)["state"] for line in lines if line.startswith('{"id":"slow"')]
    assert slow[-1] in ("cancelled", "running")
    assert '"id":"slow"' in lines[-1]
