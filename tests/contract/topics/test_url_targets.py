"""Routes to URLs over REST: configuration, deliveries, changes and refusals."""

import asyncio
import json
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import httpx
import pytest
import standardwebhooks

from consumers.routing.router import Router
from consumers.webhooks.deliverer import Deliverer
from storage.bootstrap import open_storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.webhooks import AttemptOutcome, SourceKind
from storage.settings import StorageSettings
from tests.conditions import eventually
from tests.contract.topics.test_topics import publish, receive
from tests.webhook_receiver import (
    Connections,
    ReceivedRequest,
    Receiver,
    reset,
    respond_with,
    running_listener,
    running_receiver,
)

URL = "https://shop.example/hooks"
NONE = {"ready": 0, "in_flight": 0, "delayed": 0}


class _NoMetrics:
    def attempted(self, _: SourceKind, __: AttemptOutcome) -> None: ...

    def disabled(self, _: int) -> None: ...


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver on this machine, which the deployment allows."""
    async with running_receiver() as receiver:
        yield receiver


@pytest.fixture
async def deliverer(service: tuple[str, StorageSettings]) -> AsyncIterator[None]:
    """Route the topics of the service, and serve its webhooks."""
    async with open_storage(service[1]) as storage:
        webhooks = Deliverer(storage, ("127.0.0.1",), _NoMetrics(), chance=lambda: 0.5)
        tasks = [asyncio.create_task(Router(storage).run()), asyncio.create_task(webhooks.run())]
        try:
            yield
        finally:
            await end(*tasks)


async def put(api: httpx.AsyncClient, topic: str, url: str = URL, **config: Any) -> Any:
    """Put the route `crm` to a URL; return the answer."""
    target = {"url": url, **config.pop("settings", {})}
    response = await api.put(f"{topic}/routes/crm", json={"target": target, **config})
    assert response.is_success, response.text
    return response.json()


def endpoint(name: str) -> str:
    """Return the name of the queue and webhook of the route `crm`."""
    return f"route:{name}.crm"


async def counts(api: httpx.AsyncClient, name: str) -> dict[str, int]:
    """Return the messages that wait in the route's queue."""
    stats = (await api.get(f"/v1/queues/{endpoint(name)}/stats")).json()
    return {state: stats[state] for state in NONE}


def oauth(token_url: str, **changes: Any) -> dict[str, Any]:
    """Return the setting of an OAuth client."""
    client = {"token_url": token_url, "client_id": "shop", "client_secret": "opensesame"}
    return {"credentials": {"oauth": {**client, **changes}}}


# ── Configuration ──


async def test_route_brings_queue_and_webhook(api, topic, name):
    settings = {"headers": {"authorization": "Bearer opensesame"}, "timeout_seconds": 2}

    made = await put(api, topic, settings=settings)
    again = await put(api, topic, settings=settings)

    assert made["secret"].startswith("whsec_")
    assert (made["created"], made["in_force"]) == (True, True)
    assert (again["created"], again["secret"], again["version"]) == (False, None, made["version"])
    shown = (await api.get(f"{topic}/routes/crm")).json()["target"]
    assert (shown["url"], shown["timeout_seconds"]) == (URL, 2)
    assert shown["headers"] == {"authorization": "(secret)"}
    webhook = (await api.get(f"/v1/webhooks/{endpoint(name)}")).json()
    assert (webhook["source"], webhook["url"]) == (f"queue:{endpoint(name)}", URL)
    assert webhook["header_names"] == ["authorization"]
    assert (await api.get(f"/v1/queues/{endpoint(name)}")).status_code == 200


async def test_other_target_shows_no_settings_of_url(api, topic, name):
    await api.put(f"{topic}/routes/a", json={"target": {"queue": f"{name}-a"}})

    target = (await api.get(f"{topic}/routes/a")).json()["target"]

    assert target == {"queue": f"{name}-a", "stream": None, "topic": None, "url": None}


async def test_settings_change_webhook_and_keep_revision(api, topic, name):
    made = await put(api, topic, settings={"headers": {"authorization": "a"}})

    changed = await put(api, topic, "https://other.example/", settings={"rate": 5})
    patched = await api.patch(f"{topic}/routes/crm", json={"tags": {"team": "crm"}})
    settings = {"url": URL, "headers": {"authorization": "b"}}
    renewed = await api.put(f"{topic}/routes/crm", json={"target": settings})

    numbers = [changed["number"], patched.json()["number"], renewed.json()["number"]]
    assert numbers == [made["number"]] * 3
    assert patched.json()["target"]["rate"] == 5
    assert patched.json()["target"]["headers"] == {"authorization": "(secret)"}
    changes = {one["pointer"]: one["after"] for one in renewed.json()["changes"]}
    assert changes["/target/headers/authorization"] == "(secret)"
    webhook = (await api.get(f"/v1/webhooks/{endpoint(name)}")).json()
    assert (webhook["url"], webhook["rate"]) == (URL, None)


async def test_shown_header_is_kept_and_unknown_refused(api, topic):
    await put(api, topic, settings={"headers": {"a": "1"}})

    same = await put(api, topic, settings={"headers": {"a": "(secret)"}})
    target = {"url": URL, "headers": {"b": "(secret)"}}
    refused = await api.put(f"{topic}/routes/crm", json={"target": target})

    assert same["changes"] == []
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/target/headers/b"


async def test_client_secret_stays_with_webhook(api, topic, name):
    made = await put(api, topic, settings=oauth(URL))
    patched = await api.patch(f"{topic}/routes/crm", json={"tags": {"team": "crm"}})
    same = await put(api, topic, settings=oauth(URL, client_secret=None))
    changed = await put(api, topic, settings=oauth(URL, client_secret="other"))
    moved = {"url": URL, **oauth(f"{URL}/token", client_secret=None)}
    refused = await api.put(f"{topic}/routes/crm", json={"target": moved})

    shown = made["target"]["credentials"]["oauth"]
    assert (shown["client_id"], shown["client_secret"]) == ("shop", "(secret)")
    assert patched.json()["target"] == made["target"] == same["target"]
    assert same["changes"] == [{"pointer": "/tags/team", "before": "crm", "after": None}]
    [change] = changed["changes"]
    assert change["pointer"] == "/target/credentials/oauth/client_secret"
    assert changed["number"] == made["number"]
    pointer = "/target/credentials/oauth/client_secret"
    assert refused.json()["errors"][0]["pointer"] == pointer
    webhook = await api.get(f"/v1/webhooks/{endpoint(name)}")
    assert webhook.json()["credentials"] == {"oauth": shown}
    texts = [repr(one) for one in (made, same, changed)] + [webhook.text, refused.text]
    assert not any("opensesame" in text for text in texts)


async def test_order_of_url_is_immutable_while_its_queue_exists(api, topic, name):
    made = await put(api, topic, settings={"ordered": True})
    rated = await put(api, topic, settings={"ordered": True, "rate": 5})
    changed = [
        await api.put(f"{topic}/routes/crm", json={"target": {"url": URL, "ordered": False}}),
        await api.put(f"{topic}/routes/crm", json={"target": {"queue": f"{name}-a"}}),
        await api.put(f"{topic}/routes/crm", json={"target": {"url": URL}}),
    ]
    (await api.delete(f"{topic}/routes/crm")).raise_for_status()
    again = await put(api, topic)

    assert (made["target"]["ordered"], again["target"]["ordered"]) == (True, False)
    assert made["number"] == rated["number"]
    assert [one.status_code for one in changed] == [422, 200, 422]
    for refused in (changed[0], changed[2]):
        [fault] = refused.json()["errors"]
        assert (fault["pointer"], fault["code"]) == ("/target/ordered", "immutable")


async def test_dry_run_creates_nothing(api, topic, name):
    body = {"target": {"url": URL}}

    answer = await api.put(f"{topic}/routes/crm", json=body, params={"dry_run": True})

    assert (answer.json()["created"], answer.json()["secret"]) == (True, None)
    for path in (f"{topic}/routes/crm", f"/v1/queues/{endpoint(name)}"):
        assert (await api.get(path)).status_code == 404
    assert (await api.get(f"/v1/webhooks/{endpoint(name)}")).status_code == 404


async def test_creation_is_refused_if_route_exists(api, topic):
    await put(api, topic, settings={"headers": {"a": "1"}})

    body = {"target": {"url": "https://other.example/", "headers": {"a": "2"}}}
    headers = {"if-none-match": "*"}
    refused = await api.put(f"{topic}/routes/crm", json=body, headers=headers)

    assert refused.status_code == 412
    changes = {one["pointer"] for one in refused.json()["changes"]}
    assert changes == {"/target/url", "/target/headers/a"}
    assert (await api.get(f"{topic}/routes/crm")).json()["target"]["url"] == URL


async def test_concurrent_puts_make_one_endpoint(api, topic, name):
    answers = await asyncio.gather(*(put(api, topic) for _ in range(5)))

    assert sum(one["secret"] is not None for one in answers) == 1
    assert len({one["number"] for one in answers}) == 1
    listed = await api.get("/v1/webhooks", params={"prefix": endpoint(name)})
    assert [one["name"] for one in listed.json()["items"]] == [endpoint(name)]


async def test_endpoint_is_listed_by_its_prefix_alone(api, topic, name):
    await put(api, topic)

    for path in ("/v1/queues", "/v1/webhooks"):
        shown = await api.get(path, params={"prefix": f"route:{name}"})
        hidden = await api.get(path, params={"limit": 1000})
        assert [one["name"] for one in shown.json()["items"]] == [endpoint(name)]
        assert not [one for one in hidden.json()["items"] if one["name"].startswith("route:")]


async def test_topic_with_dot_has_endpoint_of_its_own(api, name):
    for topic, route in ((f"{name}.a", "b"), (name, "a.b")):
        (await api.put(f"/v1/topics/{topic}", json={})).raise_for_status()
        body = {"target": {"url": URL}}
        (await api.put(f"/v1/topics/{topic}/routes/{route}", json=body)).raise_for_status()

    for webhook in (f"route:{name}.a:b", f"route:{name}.a.b"):
        assert (await api.get(f"/v1/webhooks/{webhook}")).status_code == 200


# ── Refusals ──


@pytest.mark.parametrize(
    ("config", "pointer", "code"),
    [
        ({"target": {"url": "http://shop.example/"}}, "/target/url", "not_allowed"),
        ({"target": {"url": "https://10.0.0.1/"}}, "/target/url", "not_allowed"),
        ({"target": {"url": URL, "queue": "q"}}, "/target", "exclusive"),
        ({"target": {"queue": "q", "rate": 1}}, "/target/rate", "not_supported"),
        ({"target": {"queue": "route:orders.crm"}}, "/target/queue", "not_allowed"),
        ({"target": {"url": URL, "rate": 0}}, "/target/rate", "out_of_range"),
        ({"target": {"queue": "q", "ordered": True}}, "/target/ordered", "not_supported"),
        (
            {"target": {"url": URL, "ordered": True}, "delay_seconds": 1},
            "/delay_seconds",
            "not_supported",
        ),
        ({"target": {"queue": "q", **oauth(URL)}}, "/target/credentials", "not_supported"),
        (
            {"target": {"url": URL, **oauth("https://10.0.0.1/")}},
            "/target/credentials/oauth/token_url",
            "not_allowed",
        ),
        (
            {"target": {"url": URL, **oauth(URL, client_secret=None)}},
            "/target/credentials/oauth/client_secret",
            "required",
        ),
        ({"target": {"url": URL, "headers": {"host": "x"}}}, "/target/headers/host", "not_allowed"),
        ({"target": {"url": URL}, "on_failure": "drop"}, "/on_failure", "not_supported"),
        (
            {"target": {"url": URL}, "dead_letter_queue": "route:orders.crm"},
            "/dead_letter_queue",
            "not_allowed",
        ),
    ],
)
async def test_invalid_url_target_is_refused(api, topic, config, pointer, code):
    refused = await api.put(f"{topic}/routes/crm", json=config)

    assert refused.status_code == 422, refused.text
    [fault] = refused.json()["errors"]
    assert (fault["pointer"], fault["code"]) == (pointer, code)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "queues/{}", {}),
        ("PATCH", "queues/{}", {"delay_seconds": 1}),
        ("DELETE", "queues/{}", None),
        ("PUT", "webhooks/{}", {"source": "queue:q", "url": URL}),
        ("DELETE", "webhooks/{}", None),
    ],
)
@pytest.mark.parametrize("exists", [True, False])
async def test_endpoint_is_changed_with_its_route(api, topic, name, method, path, body, exists):
    if exists:
        await put(api, topic)

    refused = await api.request(method, f"/v1/{path.format(endpoint(name))}", json=body)

    assert (refused.status_code, refused.json()["code"]) == (409, "route_owned")
    assert f"route 'crm' of topic '{name}'" in refused.json()["detail"]


@pytest.mark.parametrize("word", ["route:", "route:orders", "route:a.", "route:.b", "route:a:b"])
async def test_name_that_no_route_has_is_invalid(api, word):
    assert (await api.put(f"/v1/queues/{word}", json={})).status_code == 422


async def test_webhook_of_other_name_takes_no_queue_of_route(api, topic, name):
    await put(api, topic)

    body = {"source": f"queue:{endpoint(name)}", "url": URL}
    refused = await api.put(f"/v1/webhooks/{name}", json=body)

    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/source"


# ── Delivery ──


@pytest.mark.usefixtures("deliverer")
async def test_message_is_posted_signed_once_under_one_id(api, topic, name, receiver):
    receiver.behaviours = [respond_with(500), respond_with(503)]
    settings = {"retry_seconds": [0, 0, 0], "headers": {"x-key": "7"}}
    secret = (await put(api, topic, receiver.url, settings=settings, format="body"))["secret"]

    await publish(api, topic, "order.created", {"id": 7})

    requests = await receiver.until(3)
    assert len({request.event_id for request in requests}) == 1
    assert requests[-1].body == b'{"id":7}'
    assert requests[-1].headers["x-key"] == "7"
    standardwebhooks.Webhook(secret).verify(requests[-1].body, requests[-1].headers)
    await eventually(lambda: counts(api, name), NONE)

    async def report() -> tuple[list[str], int]:
        deliveries = (await api.get(f"/v1/webhooks/{endpoint(name)}/deliveries")).json()
        stats = (await api.get(f"{topic}/routes/crm/stats")).json()
        return [one["status"] for one in deliveries["items"]], stats["delivered"]

    await eventually(report, (["delivered"], 1))


class FlakyReceiver(Connections):
    """Receiver that accepts or refuses each request by chance, after a moment."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.posts: list[tuple[str, int, bool]] = []
        self._chance = chance
        self._busy: set[str] = set()
        self.overlapping: set[str] = set()

    @property
    def url(self) -> str:
        """The URL of the receiver."""
        return f"http://127.0.0.1:{self.port}/hooks"

    async def respond_to(self, request: ReceivedRequest, writer: asyncio.StreamWriter) -> None:
        message = json.loads(request.body)
        key, number = message["key"], message["number"]
        assert request.headers["millstream-group"] == key
        if key in self._busy:
            self.overlapping.add(key)
        self._busy.add(key)
        await asyncio.sleep(self._chance.random() / 100)
        self._busy.discard(key)
        is_accepted = self._chance.random() < 0.7
        self.posts.append((key, number, is_accepted))
        await respond_with(204 if is_accepted else 500)(writer)

    def accepted(self, key: str) -> list[int]:
        """Return the numbers of accepted messages of a key, in order."""
        return [number for one, number, accepted in self.posts if one == key and accepted]

    def posted(self, key: str) -> list[int]:
        """Return the numbers of all messages of a key, in the order of their posts."""
        return [number for one, number, _ in self.posts if one == key]


@pytest.mark.usefixtures("deliverer")
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_ordered_url_gets_messages_of_key_in_order(api, topic, seed):
    receiver = FlakyReceiver(Random(seed))
    keys, count = ("a", "b", "c"), 12
    async with running_listener(receiver):
        settings = {"ordered": True, "retry_seconds": [0] * 50, "disable_after_seconds": 3600}
        await put(api, topic, receiver.url, settings=settings)
        messages = [
            {"key": key, "body": {"key": key, "number": number}}
            for number in range(count)
            for key in keys
        ]
        (await api.post(f"{topic}/messages", json={"messages": messages})).raise_for_status()

        async def accepted() -> list[list[int]]:
            return [receiver.accepted(key) for key in keys]

        await eventually(accepted, [list(range(count))] * len(keys))

    for key in keys:
        assert receiver.posted(key) == sorted(receiver.posted(key))
    assert receiver.overlapping == set()


@pytest.mark.usefixtures("deliverer")
async def test_failing_message_holds_back_its_key_alone(api, topic, name, receiver):
    settings = {"ordered": True, "retry_seconds": [3600], "in_flight_max": 1}
    receiver.behaviours = [respond_with(500)]
    await put(api, topic, receiver.url, settings=settings)

    for key, number in (("a", 1), ("a", 2), ("b", 3)):
        await api.post(f"{topic}/messages", json={"key": key, "body": number})
    await receiver.until(2)
    await eventually(lambda: counts(api, name), {"ready": 1, "in_flight": 0, "delayed": 1})

    assert receiver.bodies == [b"1", b"3"]


@pytest.mark.usefixtures("deliverer")
async def test_dead_letter_of_ordered_url_lets_key_continue(api, topic, name, receiver):
    receiver.behaviours = [respond_with(500)]
    await put(api, topic, receiver.url, settings={"ordered": True, "retry_seconds": []})

    for number in (1, 2):
        await api.post(f"{topic}/messages", json={"key": "a", "body": number})
    await receiver.until(2)

    assert receiver.bodies == [b"1", b"2"]

    async def letters() -> list[Any]:
        answer = await api.get(f"/v1/queues/{endpoint(name)}/dead-letters")
        return [one["body"] for one in answer.json()["items"]]

    await eventually(letters, [1])


@pytest.mark.usefixtures("deliverer")
async def test_message_without_key_is_dead_lettered_by_route(api, topic, name, receiver):
    await api.put(f"/v1/queues/{name}-a", json={})
    config = {"dead_letter_queue": f"{name}-a", "settings": {"ordered": True}}
    await put(api, topic, receiver.url, **config)

    await api.post(f"{topic}/messages", json={"body": 1})

    [letter] = await receive(api, f"{name}-a", 1)
    assert letter["body"] == 1
    assert receiver.requests == []


@pytest.mark.usefixtures("deliverer")
async def test_message_is_posted_with_access_token(api, topic, receiver):
    async with running_receiver() as tokens:
        body = b'{"access_token": "t1", "token_type": "Bearer", "expires_in": 60}'
        tokens.behaviours = [respond_with(503)]
        tokens.default_behaviour = respond_with(200, body)
        settings = {"retry_seconds": [0, 0], **oauth(tokens.url)}
        await put(api, topic, receiver.url, settings=settings)

        await publish(api, topic, "order.created", {"id": 7})

        [request] = await receiver.until(1)
        assert request.headers["authorization"] == "Bearer t1"
        assert len(tokens.requests) == 2


@pytest.mark.usefixtures("deliverer")
async def test_failed_message_is_dead_lettered_and_redriven(api, topic, name, receiver):
    receiver.behaviours = [respond_with(500), respond_with(500)]
    await put(api, topic, receiver.url, settings={"retry_seconds": [0]})
    queue = f"/v1/queues/{endpoint(name)}"

    async def letters() -> list[Any]:
        return [one["body"] for one in (await api.get(f"{queue}/dead-letters")).json()["items"]]

    await publish(api, topic, "order.created", {"id": 7})
    await eventually(letters, [{"id": 7}])
    redriven = await api.post(f"{queue}/redrives", json={})

    assert redriven.is_success, redriven.text
    assert len({request.event_id for request in await receiver.until(3)}) == 1


@pytest.mark.usefixtures("deliverer")
async def test_breaker_spares_receiver_that_is_down(api, topic, name, receiver, monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOK_BREAKER_MS_MIN", 3 * limits.SECOND_MS)
    receiver.default_behaviour = reset
    settings = {"retry_seconds": [0] * 50, "in_flight_max": 2}
    await put(api, topic, receiver.url, settings=settings)
    messages = [{"subject": "a", "body": number} for number in range(3)]
    await api.post(f"{topic}/messages", json={"messages": messages})

    async def state() -> str:
        return str((await api.get(f"/v1/webhooks/{endpoint(name)}")).json()["health"]["state"])

    await receiver.until(limits.WEBHOOK_BREAKER_FAILURES)
    await eventually(state, "failing")
    attempts = len(receiver.requests)
    receiver.default_behaviour = respond_with()
    await eventually(lambda: counts(api, name), NONE)

    assert attempts <= limits.WEBHOOK_BREAKER_FAILURES + 2
    assert len({request.event_id for request in receiver.requests}) == 3


@pytest.mark.usefixtures("deliverer")
async def test_rotated_secret_signs_posts_of_route(api, topic, name, receiver):
    first = (await put(api, topic, receiver.url))["secret"]

    rotated = await api.post(f"/v1/webhooks/{endpoint(name)}/secret", json={"overlap_seconds": 60})
    await publish(api, topic, "a", {"id": 1})

    [request] = await receiver.until(1)
    for secret in (first, rotated.json()["secret"]):
        standardwebhooks.Webhook(secret).verify(request.body, request.headers)


@pytest.mark.usefixtures("deliverer")
async def test_url_changes_for_messages_that_wait(api, topic, receiver):
    async with running_receiver() as former:
        former.default_behaviour = respond_with(500)
        await put(api, topic, former.url, settings={"retry_seconds": [0.1] * 50})
        await publish(api, topic, "a", {"id": 1})
        await former.until(1)

        await put(api, topic, receiver.url)

        [request, *_] = await receiver.until(1)
        assert request.event_id == former.requests[0].event_id


@pytest.mark.usefixtures("deliverer")
async def test_paused_route_posts_nothing_until_resumed(api, topic, receiver):
    await put(api, topic, receiver.url)

    await api.put(f"{topic}/routes/crm/pause")
    await publish(api, topic, "a", {"id": 1})
    assert receiver.requests == []
    await api.delete(f"{topic}/routes/crm/pause")

    assert len(await receiver.until(1)) == 1


@pytest.mark.usefixtures("deliverer")
async def test_change_of_target_delivers_what_url_had_taken(api, topic, name, receiver):
    await put(api, topic, receiver.url)
    await api.put(f"/v1/webhooks/{endpoint(name)}/pause")
    await publish(api, topic, "a", {"id": 1})

    changed = await api.put(f"{topic}/routes/crm", json={"target": {"queue": f"{name}-a"}})
    await publish(api, topic, "a", {"id": 2})
    [copy] = await receive(api, f"{name}-a", 1)
    await eventually(lambda: counts(api, name), {**NONE, "ready": 1})
    await api.delete(f"/v1/webhooks/{endpoint(name)}/pause")

    assert changed.is_success, changed.text
    assert copy["body"] == {"id": 2}
    assert [request.body for request in await receiver.until(1)] == [b'{"id":1}']


@pytest.mark.usefixtures("deliverer")
@pytest.mark.parametrize("deleted", ["route", "topic"])
async def test_delete_ends_queue_and_webhook(api, topic, name, receiver, deleted):
    await put(api, topic, receiver.url)
    await api.put(f"/v1/webhooks/{endpoint(name)}/pause")
    await publish(api, topic, "a", {"id": 1})
    await eventually(lambda: counts(api, name), {**NONE, "ready": 1})

    path = topic if deleted == "topic" else f"{topic}/routes/crm"
    assert (await api.delete(path)).status_code == 204

    assert (await api.get(f"/v1/queues/{endpoint(name)}")).status_code == 404
    assert (await api.get(f"/v1/webhooks/{endpoint(name)}")).status_code == 404
    if deleted == "topic":
        (await api.put(topic, json={})).raise_for_status()
    again = await put(api, topic, receiver.url)
    assert again["secret"] is not None
    await publish(api, topic, "a", {"id": 2})
    assert [request.body for request in await receiver.until(1)] == [b'{"id":2}']
