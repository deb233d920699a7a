"""Sources through the Python SDK."""

import hashlib
import hmac

import httpx
import pytest

from millstream_client import AlreadyExists, AsyncMillstream, BadRequest, NotFound, Queue, Source
from millstream_client.core.params import SourceWebhookParams

SECRET = "It's a Secret to Everybody"
GITHUB: SourceWebhookParams = {"provider": "github", "secrets": [SECRET]}


@pytest.fixture
def source(millstream, orders: Queue) -> Source:
    """A new source of the queue's name, into the queue."""
    made: Source = millstream.source(orders.name)
    made.create(GITHUB, {"queue": orders.name})
    return made


def post(url: str, body: bytes, secret: str = SECRET) -> int:
    """Post an event as GitHub does; return the status."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"x-hub-signature-256": f"sha256={digest}", "x-github-delivery": body.decode()}
    return httpx.post(url, content=body, headers=headers).status_code


def received(queue: Queue) -> list[str]:
    return [message.text for message in queue.receive(messages_max=10, wait_seconds=5)]


def test_event_is_received_at_the_url(source, orders):
    statuses = [post(source.url(), b"one"), post(source.url(), b"one")]

    assert statuses == [200, 200]
    assert received(orders) == ["one"]
    stats = source.stats()
    assert (stats.accepted, stats.duplicates, stats.waiting) == (1, 1, 0)


def test_create_compares_and_apply_replaces(source, orders):
    into = {"queue": orders.name}

    again = source.create(GITHUB, into)
    with pytest.raises(AlreadyExists) as conflict:
        source.create({**GITHUB, "tolerance_seconds": 60}, into)
    planned = source.apply({"provider": "github"}, into, dry_run=True, dedup_seconds=60)
    applied = source.apply({"provider": "github"}, into, dedup_seconds=60)

    assert (again.created, again.path) == (False, None)
    assert [change.pointer for change in conflict.value.changes] == ["/webhook/tolerance_seconds"]
    assert source.url().endswith(str(applied.path))
    changes = [(change.pointer, change.before, change.after) for change in applied.changes]
    assert changes == [("/dedup_seconds", 259_200, 60)]
    assert planned.path is None
    assert post(source.url(), b"two") == 200
    with pytest.raises(BadRequest):
        source.apply({"provider": "github"}, {"queue": "no-queue-of-that-name"})


def test_test_event_and_rejected_request_are_shown(source, orders):
    event = source.test()
    post(source.url(), b"forged", "another secret")

    assert event.id.startswith("test-")
    assert len(received(orders)) == 1
    assert [failure.reason for failure in source.failures()] == ["signature_mismatch"]


def test_paused_source_refuses_events(source):
    paused = source.pause()
    refused = post(source.url(), b"one")
    resumed = source.resume()

    assert (paused.paused, refused, resumed.paused) == (True, 503, False)
    assert post(source.url(), b"one") == 200


def test_url_is_rotated(source):
    before = source.url()

    after = source.rotate_url()
    both = [post(before, b"one"), post(after, b"one")]
    source.rotate_url(overlap_seconds=0)

    assert after != before
    assert both == [200, 200]
    assert (post(before, b"two"), post(source.url(), b"two")) == (404, 200)


def test_sources_are_listed_and_deleted(millstream, source):
    [listed] = millstream.sources(prefix=source.name)
    source.delete()

    assert (listed.name, listed.into.queue) == (source.name, source.name)
    assert listed.webhook.secrets == ["(secret)"]
    with pytest.raises(NotFound):
        source.config()
    assert repr(source) == f"<Source {source.name}>"


async def test_asynchronous_source_has_the_same_verbs(asynchronous: AsyncMillstream, orders: Queue):
    source = asynchronous.source(orders.name)
    await source.create(GITHUB, {"queue": orders.name})

    event = await source.test()

    assert [listed.name async for listed in asynchronous.sources(orders.name)] == [orders.name]
    assert (await source.config()).into.queue == orders.name
    assert not event.duplicate
    await source.delete()
