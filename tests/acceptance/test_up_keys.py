"""`millstream up` where other machines can reach it: nobody calls without a key, and the first one is said once."""

import os
import re
import time

import httpx

from tests.acceptance.deployment import Deployment, deployed
from tests.commands import millstream

KEY = re.compile(r"export MILLSTREAM_API_KEY=(msk_\w+)\n")
NO_WORKER = {"MILLSTREAM_ARCHIVE_URL": "off"}
SAID_S = 20.0


def said_key(deployment: Deployment) -> str:
    """The administrator's key, which comes after the announcement."""
    assert deployment.process.stdout is not None
    said, deadline = deployment.announcement, time.monotonic() + SAID_S
    while (found := KEY.search(said)) is None:
        assert time.monotonic() < deadline, said
        said += os.read(deployment.process.stdout.fileno(), 4_096).decode()
    return found[1]


def test_the_first_start_says_a_key_and_whoever_has_the_machine_makes_another(
    tmp_path, monkeypatch
):
    beyond = ("--host", "0.0.0.0", "--data", str(tmp_path / "data"))
    monkeypatch.setenv("MILLSTREAM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with deployed(tmp_path / "log", *beyond, environment=NO_WORKER) as deployment:
        key, url = said_key(deployment), deployment.url
        with_key = {"authorization": f"Bearer {key}"}

        assert httpx.get(f"{url}/livez").status_code == 200
        assert httpx.get(f"{url}/v1/queues").status_code == 401
        assert httpx.get(f"{url}/v1/whoami", headers=with_key).json()["everywhere"] is True
        assert key not in (tmp_path / "log").read_text()
        assert millstream("first-key").out == ""

        lost = millstream("key", "create", "root", "--role=admin", "--everywhere", "--local")
        assert lost.code == 0, lost.err
        monkeypatch.setenv("MILLSTREAM_API_KEY", lost.out.strip())
        assert millstream("key", "whoami", "-o", "json", "--url", url).json["name"] == "root"

        looked = millstream("doctor", *beyond, "--port", url.rsplit(":")[-1])
        assert "asks everyone for a key" in looked.out
        assert "2 of administrators everywhere are live" in looked.out
