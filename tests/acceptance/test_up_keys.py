"""`millstream up` beyond loopback: keys are required, and the first one is printed once."""

import re

import httpx

from tests.acceptance.deployment import Deployment, deployed
from tests.cli_commands import millstream

KEY = re.compile(r"export MILLSTREAM_API_KEY=(msk_\w+)\n")
NO_WORKER = {"MILLSTREAM_ARCHIVE_URL": "off"}


def said_key(deployment: Deployment) -> str:
    """The administrator's key, printed before the commands that use it."""
    found = KEY.search(deployment.announcement.partition("ready at")[0])
    assert found, deployment.announcement
    return found[1]


def test_first_start_prints_key_and_local_user_can_create_more(tmp_path, monkeypatch):
    beyond = ("--host", "0.0.0.0", "--data", str(tmp_path / "data"))
    monkeypatch.setenv("MILLSTREAM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with deployed(tmp_path / "log", *beyond, environment=NO_WORKER) as deployment:
        key, url = said_key(deployment), deployment.url
        with_key = {"authorization": f"Bearer {key}"}

        assert httpx.get(f"{url}/livez").status_code == 200
        assert httpx.get(f"{url}/v1/queues").status_code == 401
        assert httpx.get(f"{url}/v1/whoami", headers=with_key).json()["all_namespaces"] is True
        assert key not in (tmp_path / "log").read_text()

        logged_in = millstream("login", "--url", url, "--with-key", stdin=key.encode())
        assert logged_in.code == 0, logged_in.err
        assert millstream("key", "whoami", "-o", "json").json["all_namespaces"] is True
        assert millstream("login", "--url", url, "--api-key", "msk_no").code == 1
        assert millstream("profile", "rm", "default", "--yes").code == 0

        lost = millstream("key", "create", "root", "--role=admin", "--everywhere", "--local")
        assert lost.code == 0, lost.err
        monkeypatch.setenv("MILLSTREAM_API_KEY", lost.out.strip())
        assert millstream("key", "whoami", "-o", "json", "--url", url).json["name"] == "root"

        looked = millstream("doctor", *beyond, "--port", url.rsplit(":")[-1])
        assert "requires keys" in looked.out
        assert "2 active keys of administrators of all namespaces" in looked.out

    with deployed(tmp_path / "log", *beyond, environment=NO_WORKER) as restarted:
        assert KEY.search(restarted.announcement) is None
