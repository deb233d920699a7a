"""Creating, replacing and pausing are three things, and mean the same for every noun."""

import json
from typing import Any, NamedTuple

import pytest

from storage.domain.definitions import HIDDEN_VALUE, OTHER_HIDDEN_VALUE


class Noun(NamedTuple):
    """A noun that is put: its path, a configuration, and a field with another value."""

    path: str
    config: dict[str, Any]
    field: str
    other: Any


NOUNS = {
    "queue": Noun("queues", {"attempts_max": 3, "tags": {"team": "shop"}}, "attempts_max", 7),
    "stream": Noun("streams", {"retention_seconds": 3600}, "retention_seconds", 7200),
    "topic": Noun(
        "topics", {"unmatched": "refuse", "retention_seconds": 3600}, "retention_seconds", 7200
    ),
    "group": Noun(
        "groups", {"stream": "SOURCE", "session_timeout_seconds": 10}, "session_timeout_seconds", 20
    ),
    "webhook": Noun(
        "webhooks",
        {"source": "queue:SOURCE", "url": "https://example.com/hook", "timeout_seconds": 5},
        "timeout_seconds",
        9,
    ),
    "view": Noun(
        "views",
        {
            "sql": "select page, count(*) as clicks from c group by page",
            "from": {"c": {"stream": "SOURCE"}},
            "keep_seconds": 3600,
        },
        "keep_seconds",
        7200,
    ),
    "source": Noun(
        "sources",
        {
            "webhook": {"provider": "github", "secrets": ["It's a Secret"]},
            "into": {"queue": "SOURCE"},
            "dedup_seconds": 3600,
        },
        "dedup_seconds",
        7200,
    ),
    "mirror": Noun(
        "mirrors",
        {"from": {"url": "https://example.com", "key": "k"}, "streams": ["us.*"]},
        "streams",
        ["eu.*"],
    ),
    "namespace": Noun("namespaces", {"queues_max": 3}, "queues_max", 4),
}
PAUSED = ("queue", "group", "view", "webhook", "source", "mirror")
CREATE = {"If-None-Match": "*"}


@pytest.fixture
def put(client, name, view_worker):
    """PUT a noun, whose source exists, with fields beside its configuration."""
    client.put(f"/v1/streams/{name}-source", json={}).raise_for_status()
    client.put(f"/v1/queues/{name}-source", json={}).raise_for_status()

    def call(noun, *, headers=None, dry_run=False, **fields):
        path, text = NOUNS[noun].path, json.dumps(NOUNS[noun].config)
        config = json.loads(text.replace("SOURCE", f"{name}-source"))
        query = {"dry_run": "true"} if dry_run else {}
        return client.put(
            f"/v1/{path}/{name}", json=config | fields, headers=headers or {}, params=query
        )

    return call


@pytest.fixture
def get(client, name):
    return lambda noun: client.get(f"/v1/{NOUNS[noun].path}/{name}")


@pytest.mark.parametrize("noun", NOUNS)
def test_dry_run_of_new_object_stores_nothing(put, get, noun):
    answer = put(noun, dry_run=True)

    assert answer.status_code == 200, answer.text
    outcome = [answer.json()[key] for key in ("created", "dry_run", "changes")]
    assert outcome == [True, True, []]
    assert answer.json().get("secret") is None
    assert get(noun).status_code == 404


@pytest.mark.parametrize("noun", NOUNS)
def test_dry_run_names_fields_that_would_change(put, get, noun):
    _, _, field, other = NOUNS[noun]
    put(noun).raise_for_status()
    before = get(noun)

    answer = put(noun, dry_run=True, **{field: other})

    change = {"pointer": f"/{field}", "before": NOUNS[noun].config[field], "after": other}
    assert (answer.json()["changes"], answer.json()["dry_run"]) == ([change], True)
    assert (get(noun).json(), get(noun).headers["etag"]) == (before.json(), before.headers["etag"])


@pytest.mark.parametrize("noun", NOUNS)
def test_dry_run_rejects_what_put_rejects(put, noun):
    field = NOUNS[noun].field

    assert put(noun, dry_run=True, **{field: -1}).status_code == 422
    assert put(noun, dry_run=True, headers={"If-Match": '"v9"'}).status_code == 412


@pytest.mark.parametrize("noun", NOUNS)
def test_if_match_any_requires_existing_object(client, name, put, noun):
    path, anything = f"/v1/{NOUNS[noun].path}/{name}", {"If-Match": "*"}

    missing = [put(noun, headers=anything), client.delete(path, headers=anything)]
    put(noun).raise_for_status()
    existing = [put(noun, headers=anything), client.delete(path, headers=anything)]

    assert [answer.status_code for answer in missing] == [412, 412]
    assert [answer.status_code for answer in existing] == [200, 204]


@pytest.mark.parametrize("noun", ["queue", "stream"])
def test_patch_if_match_any_requires_existing_object(client, name, noun):
    path = f"/v1/{NOUNS[noun].path}/{name}"

    assert client.patch(path, json={}, headers={"If-Match": "*"}).status_code == 412
    assert client.patch(path, json={}, headers={"If-Match": '"v1"'}).status_code == 404


@pytest.mark.parametrize("noun", NOUNS)
def test_put_returns_what_it_changed(put, noun):
    field, other = NOUNS[noun].field, NOUNS[noun].other
    created = put(noun).json()

    replaced, again = put(noun, **{field: other}).json(), put(noun, **{field: other}).json()

    assert [answer["created"] for answer in (created, replaced, again)] == [True, False, False]
    assert [change["pointer"] for change in replaced["changes"]] == [f"/{field}"]
    assert again["changes"] == []
    assert again["version"] == replaced["version"]


@pytest.mark.parametrize("noun", NOUNS)
def test_create_of_existing_object_compares_given_fields(put, get, noun):
    """An application that created its queue at every start undid what an operator had set."""
    field, other = NOUNS[noun].field, NOUNS[noun].other
    put(noun).raise_for_status()
    current = get(noun).json()

    same, different = put(noun, headers=CREATE), put(noun, headers=CREATE, **{field: other})

    assert [same.status_code, different.status_code] == [412, 412]
    assert same.json()["changes"] == []
    shown = {key: same.json()["current"][key] for key in current if key in same.json()["current"]}
    assert shown == {key: current[key] for key in shown}
    change = {"pointer": f"/{field}", "before": NOUNS[noun].config[field], "after": other}
    assert different.json()["changes"] == [change]
    assert get(noun).json() == current


def test_create_ignores_fields_that_it_leaves_out(client, name):
    path = f"/v1/queues/{name}"
    tags = {"team": "shop", "owner": "ops"}
    client.put(path, json={"attempts_max": 7, "tags": tags}).raise_for_status()

    bare = client.put(path, headers=CREATE)
    tagged = client.put(path, json={"tags": {"team": "bank"}}, headers=CREATE)

    assert bare.json()["changes"] == []
    change = {"pointer": "/tags/team", "before": "shop", "after": "bank"}
    assert tagged.json()["changes"] == [change]


def test_create_completes_items_of_lists(put, name):
    """An application that created its view with a sink at every start failed from the second on."""
    sink = {"queue": f"{name}-source"}
    put("view", into=[sink]).raise_for_status()

    same = put("view", into=[sink], headers=CREATE)
    other = put("view", into=[{**sink, "when": "clicks > 1"}], headers=CREATE)

    assert same.json()["changes"] == []
    assert [change["pointer"] for change in other.json()["changes"]] == ["/into"]


def test_comparison_shows_no_header_value(client, name):
    """Values of a webhook's headers are secrets: a difference is named, not shown."""
    client.put(f"/v1/queues/{name}").raise_for_status()
    config = {"source": f"queue:{name}", "url": "https://example.com/hook"}
    path, secret = f"/v1/webhooks/{name}", {"authorization": "Bearer 1", "x-team": "shop"}
    client.put(path, json=config | {"headers": secret}).raise_for_status()

    changed = config | {"headers": secret | {"authorization": "Bearer 2"}}
    answers = [
        client.put(path, json=changed, headers=CREATE),
        client.put(path, json=changed, params={"dry_run": "true"}),
    ]

    change = {
        "pointer": "/headers/authorization",
        "before": OTHER_HIDDEN_VALUE,
        "after": HIDDEN_VALUE,
    }
    assert [answer.json()["changes"] for answer in answers] == [[change], [change]]
    assert not any("Bearer" in answer.text for answer in answers)


def test_comparison_shows_no_client_secret(client, name):
    client.put(f"/v1/queues/{name}").raise_for_status()
    path, config = f"/v1/webhooks/{name}", {"source": f"queue:{name}", "url": "https://a.example/"}
    oauth = {"token_url": "https://b.example/", "client_id": "shop", "client_secret": "opensesame"}
    client.put(path, json=config | {"credentials": {"oauth": oauth}}).raise_for_status()

    def put(secret, **options):
        other = {key: value for key, value in oauth.items() if key != "client_secret"} | secret
        return client.put(path, json=config | {"credentials": {"oauth": other}}, **options)

    secrets = [{}, {"client_secret": "opensesame"}, {"client_secret": "other"}]
    for options in ({"headers": CREATE}, {"params": {"dry_run": "true"}}):
        answers = [put(secret, **options) for secret in secrets]

        change = {
            "pointer": "/credentials/oauth/client_secret",
            "before": OTHER_HIDDEN_VALUE,
            "after": HIDDEN_VALUE,
        }
        assert [answer.json()["changes"] for answer in answers] == [[], [], [change]], options
        assert not any("opensesame" in answer.text for answer in answers)


def test_comparison_shows_no_secret_of_a_source(client, name):
    """A provider's other secret was no difference, so that its events were rejected from then on."""
    client.put(f"/v1/queues/{name}").raise_for_status()
    path, old, new = f"/v1/sources/{name}", "the old secret", "the new secret"
    config = {"webhook": {"provider": "github", "secrets": [old]}, "into": {"queue": name}}
    client.put(path, json=config).raise_for_status()

    def put(secrets, **options):
        webhook = {"provider": "github", **({} if secrets is None else {"secrets": secrets})}
        return client.put(path, json=config | {"webhook": webhook}, **options)

    answers = {
        (step, number): put(secrets, **options)
        for number, secrets in enumerate([None, [old], [new], [new, old]])
        for step, options in [
            ("create", {"headers": CREATE}),
            ("dry", {"params": {"dry_run": "true"}}),
        ]
    }
    change = {
        "pointer": "/webhook/secrets",
        "before": [OTHER_HIDDEN_VALUE],
        "after": [HIDDEN_VALUE],
    }
    both = change | {"after": [HIDDEN_VALUE, HIDDEN_VALUE]}
    for step in ("create", "dry"):
        changes = [answers[step, number].json()["changes"] for number in range(4)]
        assert changes == [[], [], [change], [both]], step
    assert not any(word in answer.text for answer in answers.values() for word in (old, new))


@pytest.mark.parametrize("noun", PAUSED)
def test_pause_outlasts_put_and_create(client, put, get, name, noun):
    """An application's start undid the pause of an operator."""
    put(noun).raise_for_status()
    pause = f"/v1/{NOUNS[noun].path}/{name}/pause"

    paused, again = client.put(pause), client.put(pause)
    replaced = put(noun, **{NOUNS[noun].field: NOUNS[noun].other})
    created = put(noun, headers=CREATE)

    assert [paused.json()["paused"], replaced.json()["paused"]] == [True, True]
    assert created.json()["current"]["paused"] is True
    assert again.headers["etag"] == paused.headers["etag"]
    assert "deprecation" not in replaced.headers
    assert [client.delete(pause).json()["paused"] for _ in range(2)] == [False, False]
    assert get(noun).json()["paused"] is False


@pytest.mark.parametrize("noun", PAUSED)
def test_pause_of_unknown_object_is_not_found(client, name, noun):
    path = f"/v1/{NOUNS[noun].path}/{name}/pause"

    assert [client.put(path).status_code, client.delete(path).status_code] == [404, 404]


def test_patch_leaves_pause_alone(client, name):
    path = f"/v1/queues/{name}"
    client.put(path).raise_for_status()
    client.put(f"{path}/pause").raise_for_status()

    patched = client.patch(path, json={"attempts_max": 5})

    assert (patched.json()["paused"], patched.json()["attempts_max"]) == (True, 5)


@pytest.mark.parametrize(
    ("noun", "member", "value", "paused"),
    [("queue", "paused", True, True), ("webhook", "enabled", False, True)],
)
def test_former_pause_member_is_applied_and_deprecated(put, get, noun, member, value, paused):
    created = put(noun, **{member: value})
    resumed = put(noun, **{member: not value})
    again = put(noun, **{member: value})

    assert [answer.headers["deprecation"] for answer in (created, resumed, again)] == [
        "@1795564800"
    ] * 3
    assert [answer.json()["paused"] for answer in (created, resumed, again)] == [
        paused,
        not paused,
        paused,
    ]
    assert get(noun).json()["paused"] is paused


def test_former_pause_member_of_patch_is_deprecated(client, name):
    path = f"/v1/queues/{name}"
    client.put(path).raise_for_status()

    answer = client.patch(path, json={"paused": True})

    assert (answer.json()["paused"], answer.headers["deprecation"]) == (True, "@1795564800")


def test_dry_run_is_marked_in_audit_log(client, name):
    path = f"/v1/queues/{name}"
    client.put(path, params={"dry_run": "true"}).raise_for_status()
    client.put(path).raise_for_status()

    query = {"resource": f"queues/{name}", "order": "oldest"}
    entries = client.get("/v1/audit", params=query).json()["items"]

    assert [entry["after"].get("dry_run") for entry in entries] == [True, None]


def test_simple_group_cannot_be_paused(client, name):
    client.put(f"/v1/streams/{name}").raise_for_status()
    config = {"stream": name, "kind": "simple"}
    client.put(f"/v1/groups/{name}", json=config).raise_for_status()

    answer = client.put(f"/v1/groups/{name}/pause")

    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/kind")
