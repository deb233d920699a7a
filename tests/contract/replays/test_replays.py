"""Replays over REST: submission, rejection and display."""

import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture
def source(client) -> str:
    """The name of a stream with a hundred records."""
    name = f"source-{next(_numbers)}"
    client.put(f"/v1/streams/{name}", json={"shards": 2}).raise_for_status()
    client.put(f"/v1/streams/{name}-again", json={}).raise_for_status()
    records = [{"data": {"n": n}, "key": f"k{n % 5}"} for n in range(100)]
    client.post(f"/v1/streams/{name}/records", json={"records": records}).raise_for_status()
    return name


def replay_request(source: str, **said: object) -> dict[str, object]:
    return {"stream": source, "target": {"stream": f"{source}-again"}} | said


def test_replay_is_submitted_shown_paused_and_ended(client, source):
    name = f"r-{source}"
    began = client.post("/v1/replays", json=replay_request(source, id=name))
    path = began.headers["location"]

    assert (began.status_code, path) == (202, f"/v1/replays/{name}")
    assert client.post("/v1/replays", json=replay_request(source, id=name)).json()["id"] == name
    assert client.post(f"{path}/pause").json()["state"] == "paused"
    assert client.post(f"{path}/resume").json()["state"] == "queued"
    assert client.post(f"{path}/retry").status_code == 409
    assert client.post(f"{path}/cancel").json()["state"] == "cancelled"
    assert client.post(f"{path}/resume").json()["code"] == "job_refused"
    shown = client.get(path).json()
    assert (shown["state"], shown["shards"]) == ("cancelled", [])
    assert shown["request"]["stream"] == source


def test_replay_shows_request_as_submitted(client, source):
    request = {
        "from": {"offsets": {"1": 3}},
        "to": {"time": "2026-01-31T12:00:00.000Z"},
        "filter": {"body": [{"path": "/n", "equal_to": None}], "sample": {"fraction": 0.5}},
        "order": "time",
        "shards": [1],
    }
    began = client.post("/v1/replays", json=replay_request(source, **request)).json()

    shown = client.get(f"/v1/replays/{began['id']}").json()["request"]

    assert shown["from"] == {"offsets": {"1": 3}}
    assert shown["to"] == {"time": "2026-01-31T12:00:00Z"}
    assert shown["filter"]["body"] == [{"path": "/n", "equal_to": None, "equals": None}]
    assert (shown["order"], shown["shards"]) == ("time", [1])


def test_shown_request_can_be_submitted_again(client, source):
    """The request shows its condition under both names, as the former one is read for a release."""
    condition = {"path": "/n", "equals": 7}
    began = client.post("/v1/replays", json=replay_request(source, filter={"body": [condition]}))
    shown = client.get(f"/v1/replays/{began.json()['id']}").json()["request"]

    again = client.post("/v1/replays", json=replay_request(source, filter=shown["filter"]))

    assert again.status_code == 202, again.text


def test_dry_run_counts_without_effect(client, source):
    request = {"dry_run": True, "filter": {"keys": ["k1"]}, "pacing": {"records_per_second": 4}}

    answer = client.post("/v1/replays", json=replay_request(source, **request))

    plan = answer.json()
    assert answer.status_code == 200
    assert plan["records"] == {"count": 20, "exact": True}
    assert plan["seconds"] == 5
    assert len(plan["sample"]) == 20
    assert {record["key"] for record in plan["sample"]} == {"k1"}
    assert {"shard", "offset", "data", "arrival_time"} <= plan["sample"][0].keys()


def test_replays_are_listed_in_pages(client, source):
    names = [client.post("/v1/replays", json=replay_request(source)).json()["id"] for _ in range(3)]

    first = client.get("/v1/replays?limit=2&state=queued").json()
    second = client.get(
        "/v1/replays", params={"limit": 2, "state": "queued", "cursor": first["next_cursor"]}
    ).json()

    assert [item["id"] for item in first["items"]] == names[:0:-1]
    assert second["items"][0]["id"] == names[0]


@pytest.mark.parametrize(
    ("said", "status", "pointer"),
    [
        ({"target": {}}, 422, "/target"),
        ({"target": {"stream": "x", "queue": "y"}}, 422, "/target"),
        ({"target": {"queue": "nowhere"}}, 404, None),
        ({"stream": "nowhere"}, 404, None),
        ({"from": {}}, 422, "/from"),
        ({"from": {"time": "yesterday"}}, 422, "/from/time"),
        ({"from": {"offsets": {"x": 1}}}, 422, None),
        ({"from": {"bookmark": {"group": "g", "name": "b"}}}, 404, None),
        ({"shards": [9]}, 404, None),
        ({"shards": []}, 422, "/shards"),
        ({"order": "size"}, 422, "/order"),
        ({"pacing": {"speed": 0}}, 422, "/pacing/speed"),
        ({"max_records": 0}, 422, "/max_records"),
        ({"from": {"offsets": {"0": 10**6}}}, 422, "/from/offsets/0"),
        ({"from": {"offsets": {"0": 2}}, "to": {"offsets": {"0": 1}}}, 422, "/to/offsets/0"),
        ({"filter": {"keys": []}}, 422, "/filter/keys"),
        ({"filter": {"body": [{"path": "/a"}]}}, 422, "/filter/body/0"),
        (
            {"filter": {"body": [{"path": "/a", "equal_to": 1, "equals": 2}]}},
            422,
            "/filter/body/0",
        ),
        ({"filter": {"body": [{"path": "/a~2", "exists": True}]}}, 422, "/filter/body/0/path"),
        ({"filter": {"sample": {"fraction": 2}}}, 422, "/filter/sample/fraction"),
        ({"filter": {"sql": "n > 1"}}, 422, "/filter/sql"),
        ({"id": "a b"}, 422, "/id"),
    ],
)
def test_invalid_replay_is_rejected_with_pointer(client, source, said, status, pointer):
    answer = client.post("/v1/replays", json=replay_request(source) | said)

    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    if pointer is not None:
        assert pointer in {fault["pointer"] for fault in answer.json()["errors"]}


def test_replay_onto_source_stream_requires_opt_in(client, source):
    onto = replay_request(source, target={"stream": source})

    refused = client.post("/v1/replays", json=onto)
    response = client.post("/v1/replays", json=onto | {"allow_same_stream": True})

    assert refused.json()["errors"][0]["code"] == "same_stream"
    assert response.status_code == 202


def test_id_of_another_replay_is_rejected(client, source):
    client.post("/v1/replays", json=replay_request(source, id=f"x-{source}")).raise_for_status()

    answer = client.post("/v1/replays", json=replay_request(source, id=f"x-{source}", order="none"))

    assert (answer.status_code, answer.json()["reason"]) == (409, "id_taken")


def test_unknown_replay_is_not_found(client):
    for path in ("", "/pause", "/cancel"):
        call = client.post if path else client.get
        assert call(f"/v1/replays/none{path}").json()["code"] == "job_not_found"
