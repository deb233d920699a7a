"""Messages of requests: their copies and their time to live."""

import msgspec
import pytest

from api.rest.schemas.request import QueueRequest, TopicRequest
from consumers.routing.copies import copies_of
from storage.domain.queues.queue import QueueType
from storage.domain.requests.token import REPLY_TO, RequestId, RequestToken
from storage.domain.streams.stream import LogRecord
from storage.domain.topics.route import TopicRoute
from tests.unit.topics.messages import MESSAGE_ID, ROUTE, spec

NOW_MS = 1_769_860_800_000
TERMS = RequestToken(NOW_MS + 20_000, 1, 60_000, bytes(12))
REQUEST = RequestId(TERMS.sign("default", b"secret"))


def test_message_of_queue_expires_at_deadline():
    request = msgspec.json.decode(b'{"body": {"n": 1}, "timeout_seconds": 2.5}', type=QueueRequest)

    message = request.message(REQUEST, "")

    assert (message.body, message.content_type) == (b'{"n":1}', "application/json")
    assert message.system == ((REPLY_TO, "", REQUEST.name.encode()),)
    assert message.ttl_ms == 2_500


@pytest.mark.parametrize(
    ("route", "ttl_ms"),
    [
        ({}, 15_000),
        ({"ttl_ms": 1_000}, 1_000),
        ({"ttl_ms": 60_000}, 15_000),
        ({"delay_ms": 10_000}, 5_000),
        ({"delay_ms": 30_000}, 1),
    ],
    ids=str,
)
def test_copy_carries_token_and_expires_at_deadline(route, ttl_ms):
    request = msgspec.json.decode(b'{"body": "a", "subject": "s"}', type=TopicRequest)
    record = request.publication(REQUEST, "").record([1])
    topic_route = TopicRoute(
        name=ROUTE,
        stream_id=MESSAGE_ID.stream_id,
        number=1,
        spec=spec(**route),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )

    [copy] = copies_of(0, LogRecord(7, NOW_MS + 5_000, record), [topic_route])
    message = copy.as_message(QueueType.STANDARD, NOW_MS + 5_000)

    assert (REPLY_TO, "", REQUEST.name.encode()) in message.system
    assert message.ttl_ms == ttl_ms
