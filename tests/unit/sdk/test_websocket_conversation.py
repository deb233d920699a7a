"""The subscriber side of the WebSocket protocol, without a socket.

Frames are those of `api/websocket/frames.py`.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from api.native.messages import ReceivedMessageOut
from api.native.records import RecordOut
from api.websocket import frames as server
from millstream_client.conversing import Ask, Conversation, Refusal
from millstream_client.errors import Conflict, ItemRefused
from millstream_client.frames import ServerFrame, decode_frames
from millstream_client.messages import Settlement, Verdict

AT = "2026-01-31T12:00:00.000Z"


def packed(*said: Any) -> bytes:
    return msgspec.msgpack.encode(said[0] if len(said) == 1 else list(said))


def welcome(session: str = "one", resumed: bool = False) -> server.Welcome:
    return server.Welcome(session, resumed, 25, 8, 30, server.PushLimits())


def message(number: int, body: bytes = b"hello") -> ReceivedMessageOut:
    return ReceivedMessageOut(
        id=f"m{number}",
        body=body,
        receipt_handle=f"h{number}",
        offset=number,
        sent_at=AT,
        first_received_at=AT,
        visible_at=AT,
        receive_count=1,
        receives=1,
        failures=0,
        crash_count=0,
        crashes=0,
    )


def messages(seq: int, *numbers: int) -> server.Messages:
    return server.Messages("s", seq, [message(number) for number in numbers])


def records(seq: int, shard: int, first: int, *data: bytes) -> server.Records:
    found = [
        RecordOut(offset=first + nth, data=one, arrival_time=AT) for nth, one in enumerate(data)
    ]
    return server.Records("s", seq, shard, first + len(data), first + len(data), found)


def opened(ask: Ask) -> Any:
    """A conversation with an active subscription."""
    talk = Conversation(ask)
    talk.connected()
    talk.hear(packed(welcome()))
    talk.hear(packed(server.ServerOk("subscribe")))
    return talk


WORK = Ask("queue:orders", messages=4, bytes=1_000, extra={"mode": "work"})
READ = Ask("stream:clicks", messages=4, bytes=1_000, extra={"start": {"from": "earliest"}})
GROUP = Ask("stream:clicks", "readers", messages=4, bytes=1_000)


def test_conversation_says_hello_and_subscribes():
    talk = Conversation(WORK, token="secret")

    [hello] = talk.connected()
    [subscribe] = talk.hear(packed(welcome()))

    assert hello == {"type": "hello", "client": "python", "token": "secret"}
    assert subscribe["credit"] == {"messages": 4, "bytes": 1_000}
    assert (subscribe["source"], subscribe["mode"]) == ("queue:orders", "work")
    assert not talk.is_on
    talk.hear(packed(server.ServerOk("subscribe")))
    assert talk.is_on


def test_every_client_frame_is_accepted_by_the_service():
    """Each frame decodes as a frame type of the service."""
    understood = msgspec.msgpack.Decoder(server.ClientFrame)
    talk = Conversation(Ask("stream:clicks", "readers", extra={}), token="t")
    said = [*talk.connected(), *talk.hear(packed(welcome()))]
    said += talk.hear(packed(server.ServerOk("subscribe")))
    for settlement in (
        Settlement("h", Verdict.ACK),
        Settlement("h", Verdict.NACK, delay_seconds=1),
        Settlement("h", Verdict.RELEASE),
        Settlement("h", Verdict.EXTEND, visibility_timeout_seconds=5),
        Settlement("h", Verdict.REJECT, reason="no"),
    ):
        said += talk.settle(settlement)[1]
    said += talk.commit(0, 5)[1]
    said += talk.hear(packed(server.ServerPing()))
    said += talk.hear(packed(server.Revoking("s", [0], 5)))

    types = [type(understood.decode(packed(frame))).__name__ for frame in said]

    assert types == [
        "Hello",
        "Subscribe",
        *("Ack", "Nack", "Release", "Extend", "Reject", "Ack"),
        "ClientPong",
        "GiveUp",
    ]


def test_every_server_frame_is_known_to_the_client():
    returned_tags = {kind.__struct_config__.tag for kind in server.ServerFrameBase.__subclasses__()}
    tags = {kind.__struct_config__.tag for kind in ServerFrame.__args__}

    assert tags == returned_tags


def test_unknown_frame_is_ignored():
    assert len(decode_frames(packed({"type": "weather", "sun": True}, {"type": "ping"}))) == 1
    assert decode_frames(packed({"type": "weather"})) == []


def test_credit_is_granted_when_half_is_used_and_then_pinged():
    talk = opened(WORK)
    talk.hear(packed(messages(1, 1, 2, 3, 4)))

    first, nothing = talk.take()
    _, output = talk.take()

    assert first.body == b"hello"
    assert nothing == []
    credit, ping = output
    assert (credit["messages"], credit["bytes"], credit["seq"]) == (2, 10, 1)
    assert ping == {"type": "ping"}


def test_large_message_uses_half_of_byte_credit():
    talk = opened(WORK)
    talk.hear(packed(server.Messages("s", 1, [message(1, b"x" * 600)])))

    _, output = talk.take()

    assert (output[0]["messages"], output[0]["bytes"]) == (1, 600)


def test_resumed_session_repeats_unconfirmed_frames():
    """Credit without a pong and verdicts without an answer are repeated; others are not."""
    talk = opened(WORK)
    talk.hear(packed(messages(1, 1, 2, 3, 4)))
    talk.take()
    talk.take()
    _, [ack] = talk.settle(Settlement("h1", Verdict.ACK))
    talk.settle(Settlement("h2", Verdict.ACK))
    talk.hear(packed(server.ServerOk(ack["id"], [{"status": "ok"}], 0)))

    [hello] = talk.connected()
    frames = talk.hear(packed(welcome(resumed=True)))

    assert hello["resume"] == {"session": "one", "seq": 1}
    assert [frame["type"] for frame in frames] == ["credit", "ping", "ack"]
    assert frames[0]["messages"] == 2
    assert frames[2]["receipt_handles"] == ["h2"]


def test_confirmed_credit_is_not_repeated():
    talk = opened(WORK)
    talk.hear(packed(messages(1, 1, 2)))
    talk.take()
    talk.take()
    talk.hear(packed(server.ServerPong()))

    talk.connected()

    assert talk.hear(packed(welcome(resumed=True))) == []


def test_new_session_resumes_after_last_record():
    """Closed shards keep their end as position; the service continues with their children."""
    talk = opened(READ)
    talk.hear(packed(records(1, 0, 5, b"a", b"b"), records(2, 1, 0, b"c")))
    talk.hear(packed(server.ShardEnded("s", 3, 1, [2, 3])))
    talk.take()

    talk.connected()
    [subscribe] = talk.hear(packed(welcome("two")))

    assert subscribe["start"] == {"offsets": {0: 7, 1: 1}}
    assert subscribe["credit"] == {"messages": 2, "bytes": 998}
    assert [record.item.data for record in talk.arrived] == [b"b", b"c"]


def test_welcome_of_other_session_is_not_a_resumption():
    talk = opened(READ)

    talk.connected()
    frames = talk.hear(packed(welcome("two", resumed=True)))

    assert [frame["type"] for frame in frames] == ["subscribe"]


def test_gap_is_delivered_in_order():
    talk = opened(READ)

    talk.hear(packed(server.Gap("s", 1, 0, 0, 10, "expired"), records(2, 0, 10, b"a")))
    gap, _ = talk.take()
    record, _ = talk.take()

    assert (gap.first, gap.next, gap.reason) == (0, 10, "expired")
    assert (record.shard, record.offset) == (0, 10)
    assert record.arrival_time == datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_rejected_verdict_is_an_error_unless_it_was_repeated():
    talk = opened(WORK)
    refused = {"code": "receipt_handle_expired", "detail": "gone", "retryable": False}
    answer = [{"status": "error", "error": refused}]
    once, _ = talk.settle(Settlement("h1", Verdict.NACK))
    talk.hear(packed(server.ServerOk(once, answer, 1)))
    twice, _ = talk.settle(Settlement("h2", Verdict.NACK))
    talk.connected()
    talk.hear(packed(welcome(resumed=True)))
    talk.hear(packed(server.ServerOk(twice, answer, 1)))

    with pytest.raises(ItemRefused):
        talk.result(once)
    talk.result(twice)


def problem(status: int, code: str) -> dict[str, Any]:
    return {"status": status, "code": code, "detail": "", "retryable": False}


def test_rejected_commit_raises_conflict():
    talk = opened(GROUP)
    id_, [ack] = talk.commit(0, 5)

    talk.hear(packed(server.ServerError(problem(409, "stale_generation"), id_, "s")))

    assert (ack["shard"], ack["up_to"]) == (0, 5)
    with pytest.raises(Conflict):
        talk.result(id_)


def test_rejected_or_ended_subscription_raises_refusal():
    talk = Conversation(WORK)
    talk.connected()
    talk.hear(packed(welcome()))

    for id_ in ("subscribe", msgspec.UNSET):
        with pytest.raises(Refusal):
            talk.hear(packed(server.ServerError(problem(404, "queue_not_found"), id_, "s")))


def test_expired_deliveries_do_not_end_the_subscription():
    talk = opened(WORK)
    expired = problem(409, "receipt_handle_expired")

    assert talk.hear(packed(server.ServerError(expired, sub="s", receipt_handles=["h1"]))) == []


def test_revoked_shard_is_given_up_once_its_records_are_done():
    talk = opened(GROUP)
    talk.hear(packed(records(1, 0, 0, b"a"), records(2, 1, 0, b"b")))

    assert talk.hear(packed(server.Revoking("s", [0], 5))) == []
    talk.take()
    still_at_work = talk.hear(packed(server.ServerPing()))
    done = talk.done()

    assert [frame["type"] for frame in still_at_work] == ["pong"]
    assert done == [{"type": "give_up", "sub": "s", "shards": [0]}]
    assert talk.done() == []


def test_records_of_lost_shard_are_discarded():
    talk = opened(GROUP)
    talk.hear(packed(records(1, 0, 0, b"a"), records(2, 1, 0, b"b")))

    talk.hear(packed(server.Revoked("s", [0])))

    assert [record.item.data for record in talk.arrived] == [b"b"]


def test_group_subscription_restarts_in_new_session():
    talk = opened(GROUP)
    talk.hear(packed(records(1, 0, 0, b"a")))

    talk.connected()
    [subscribe] = talk.hear(packed(welcome("two")))

    assert not talk.arrived
    assert (subscribe["mode"], subscribe["group"]) == ("group", "readers")
    assert "start" not in subscribe


def test_goodbye_is_stored_until_next_connection():
    talk = opened(WORK)

    talk.hear(packed(server.Bye(4001, "draining", True, 2.5)))

    assert talk.bye is not None
    assert (talk.bye.code, talk.bye.after_seconds) == (4001, 2.5)
    talk.connected()
    assert talk.bye is None
