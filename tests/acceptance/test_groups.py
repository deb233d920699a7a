"""Members of groups, against a deployment with two API processes."""

import httpx
import pytest

pytestmark = pytest.mark.xdist_group("documentation")


def test_waiting_member_expires_when_client_disconnects(documented):
    """The server sends heartbeats for a member only while a client waits."""
    url = documented.url
    httpx.put(f"{url}/v1/streams/quiet", json={"shards": 2}).raise_for_status()
    group = f"{url}/v1/groups/quiet"
    httpx.put(group, json={"stream": "quiet", "session_timeout_seconds": 1}).raise_for_status()

    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{group}/records", params={"member": "gone", "wait_seconds": 20}, timeout=0.5)
    heir = httpx.get(f"{group}/records", params={"member": "heir", "wait_seconds": 4}, timeout=30)

    assert heir.json()["shards"] == [0, 1]
