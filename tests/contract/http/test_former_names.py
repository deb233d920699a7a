"""Former names of request and response members, which one release accepts and returns."""

import pytest

from tests.former_names import pairs_of_names


@pytest.mark.parametrize("member", ["all_namespaces", "everywhere"])
def test_key_request_accepts_either_name(client, name, member):
    made = client.post("/v1/keys", json={"name": name, "roles": ["viewer"], member: True})

    assert made.status_code == 201, made.text
    assert (made.json()["all_namespaces"], made.json()["everywhere"]) == (True, True)


def test_key_request_accepts_both_names_if_they_agree(client, name):
    request = {"name": name, "roles": ["viewer"], "all_namespaces": True, "everywhere": True}

    assert client.post("/v1/keys", json=request).status_code == 201


def test_key_request_with_contradicting_names_is_rejected(client, name):
    request = {"name": name, "roles": ["viewer"], "all_namespaces": False, "everywhere": True}

    refused = client.post("/v1/keys", json=request)

    assert (refused.status_code, refused.json()["code"]) == (422, "validation_failed")
    assert "everywhere" in refused.text


@pytest.mark.parametrize("kind", ["access_key", "pair"])
def test_key_kind_accepts_either_value(client, name, kind):
    made = client.post("/v1/keys", json={"name": name, "roles": ["viewer"], "kind": kind})

    assert made.json()["kind"] == "pair"
    assert made.json()["id"].startswith("MSAK")


def test_message_history_has_both_names(client, name):
    queue = f"/v1/queues/{name}"
    client.put(queue, json={"history": True})
    [sent] = client.post(f"{queue}/messages", json={"messages": [{"body": 1}]}).json()["messages"]

    history = client.get(f"{queue}/messages/{sent['id']}/history").json()

    assert set(pairs_of_names(history)) == {("what", True)}
    assert [event["type"] for event in history["events"]] == ["sent"]
