"""The publishing side of the WebSocket protocol, without a socket.

Frames are those of `api/websocket/frames.py`.
"""

from typing import Any

import msgspec
import pytest

from api.websocket import frames as server
from api.websocket.frames import ClientFrame
from millstream_client.conversing import Refusal
from millstream_client.errors import NotFound
from millstream_client.frames import Ok, Reply, encode_frame
from millstream_client.publisher import Publisher, reply_frame, request_frame

PUBLISH = {"type": "publish", "to": "topic:prices", "items": [{"body": b"1"}]}
PUBLISH |= {"idempotency_key": "k"}
MISSING = {"status": 404, "code": "topic_not_found", "detail": "No such topic."}


def packed(frame: Any) -> bytes:
    return msgspec.msgpack.encode(frame)


def welcome(**limits: int) -> bytes:
    return packed(server.Welcome("one", False, 25, 8, 30, server.PushLimits(**limits)))


@pytest.fixture
def publisher() -> Publisher:
    """A publisher with an open connection."""
    publisher = Publisher()
    assert [frame["type"] for frame in publisher.connected()] == ["hello"]
    assert publisher.hear(welcome()) == []
    return publisher


@pytest.mark.parametrize(
    "frame",
    [
        PUBLISH,
        request_frame("queue:quotes", {"body": b"1"}, "k"),
        reply_frame("token", {"body": b"1", "headers": {}, "content_type": ""}, "k"),
    ],
)
def test_frames_are_those_of_the_service(publisher, frame):
    _, [said] = publisher.send(frame)

    assert msgspec.msgpack.decode(encode_frame(said), type=ClientFrame).id == "p1"


def test_answers_are_returned_by_id(publisher):
    ids = [publisher.send(PUBLISH)[0] for _ in range(3)]

    publisher.hear(packed(server.ServerOk(ids[0], [{"id": "m"}], 0)))
    publisher.hear(packed(server.ServerError(MISSING, id=ids[1])))
    publisher.hear(packed(server.ServerReply(ids[2], "token", [], True, True)))
    answers = publisher.take_answers()

    assert isinstance(answers[ids[0]], Ok)
    assert isinstance(answers[ids[1]], NotFound)
    assert isinstance(answers[ids[2]], Reply)
    assert publisher.take_answers() == {}


def test_unanswered_frames_are_sent_again_in_order(publisher):
    ids = [publisher.send(PUBLISH)[0] for _ in range(4)]
    publisher.hear(packed(server.ServerOk(ids[1])))
    publisher.drop(ids[2])

    publisher.connected()
    late, nothing = publisher.send(PUBLISH)
    again = publisher.hear(welcome())

    assert nothing == []
    assert [frame["id"] for frame in again] == [ids[0], ids[3], late]


def test_second_answer_of_a_frame_is_ignored(publisher):
    id_, _ = publisher.send(PUBLISH)

    publisher.hear(packed(server.ServerOk(id_)))
    publisher.take_answers()
    publisher.hear(packed(server.ServerOk(id_)))

    assert publisher.take_answers() == {}


def test_frame_larger_than_limit_is_refused():
    publisher = Publisher()
    publisher.connected()
    publisher.hear(welcome(frame_bytes_max=2**20))

    with pytest.raises(ValueError, match="at most 1 MiB"):
        publisher.send({**PUBLISH, "items": [{"body": bytes(2**20)}]})


def test_ping_is_answered_and_bye_remembered(publisher):
    assert publisher.hear(packed(server.ServerPing())) == [{"type": "pong"}]

    publisher.hear(packed(server.Bye(4001, "draining", True, 2.5)))

    assert publisher.bye is not None
    assert (publisher.bye.code, publisher.bye.after_seconds) == (4001, 2.5)


def test_error_of_connection_ends_publisher(publisher):
    with pytest.raises(Refusal):
        publisher.hear(packed(server.ServerError(MISSING)))
