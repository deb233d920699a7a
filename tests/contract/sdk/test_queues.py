"""Queues through the Python SDK."""

from itertools import islice

import pytest

from millstream_client import (
    AlreadyExists,
    BadRequest,
    Conflict,
    ItemRefused,
    NewMessage,
    NotFound,
)
from tests.contract.sdk.conftest import BOTH

pytestmark = BOTH


def test_message_is_sent_received_and_acknowledged(orders):
    sent = orders.send({"order": 7}, headers={"source": "web"})
    [message] = orders.receive()
    message.ack()

    assert (message.id, message.json()) == (sent.id, {"order": 7})
    assert (message.content_type, message.headers) == ("application/json", {"source": "web"})
    assert (message.receive_count, message.settled) == (1, True)
    assert orders.stats().acknowledged == 1


@pytest.mark.parametrize(
    ("body", "kept"),
    [(b"\x00\xff", b"\x00\xff"), ("blüe", "blüe".encode()), ([1, None], b"[1,null]")],
)
def test_body_round_trips_as_bytes(orders, body, kept):
    orders.send(body)

    [message] = orders.receive()

    assert message.body == kept


def test_unserializable_body_is_rejected_before_sending(orders):
    with pytest.raises(TypeError):
        orders.send(object())


def test_json_of_non_json_body_raises(orders):
    orders.send("hello")
    [message] = orders.receive()

    with pytest.raises(ValueError, match="not JSON"):
        message.json()
    assert message.text == "hello"


def test_large_send_is_split_into_calls_in_order(orders):
    sent = orders.send_many(str(number) for number in range(1_500))

    assert [message.offset for message in sent] == list(range(1_500))
    assert orders.stats().ready == 1_500


def test_messages_have_their_own_properties(millstream, name):
    queue = millstream.queue(name)
    queue.create(type="fifo")
    queue.send_many([NewMessage("one", group="a", dedup_id="1"), NewMessage("two", group="a")])

    again = queue.send("one", group="a", dedup_id="1")
    [first] = queue.receive(messages_max=1)

    assert again.duplicate
    assert (first.text, first.group) == ("one", "a")


def test_repeat_with_same_key_adds_nothing(orders):
    first = orders.send("hello", idempotency_key="once")
    again = orders.send("hello", idempotency_key="once")

    assert (again.id, again.duplicate) == (first.id, True)


def test_message_can_be_nacked_released_or_rejected(orders):
    orders.send("hello")
    orders.receive()[0].nack(delay_seconds=0)
    orders.receive()[0].release()
    [message] = orders.receive()
    message.extend(60)

    message.reject("no such customer")

    [letter] = orders.dead_letters()
    assert (message.receive_count, message.failures) == (3, 1)
    assert letter.reason == "no such customer"
    assert [reason.count for reason in orders.death_reasons()] == [1]
    assert orders.redrive().redriven == 1
    assert orders.stats().ready == 1


def test_settling_ended_delivery_is_rejected(orders):
    orders.send("hello")
    [message] = orders.receive()
    message.release()

    with pytest.raises(ItemRefused) as refused:
        message.nack()

    assert refused.value.code == "receipt_handle_expired"


def test_iteration_yields_messages_until_empty(orders):
    orders.send_many(["a", "b", "c"])

    texts = []
    for message in orders.messages(messages_max=2, wait_seconds=0, until_empty=True):
        texts.append(message.text)
        message.ack()

    assert texts == ["a", "b", "c"]


def test_unread_messages_of_iteration_are_released(orders):
    orders.send_many(["a", "b", "c"])
    messages = orders.messages(messages_max=3, wait_seconds=0)

    [first] = islice(messages, 1)
    first.ack()
    messages.close()

    assert orders.stats().in_flight == 0
    assert orders.stats().ready == 2


def test_settlements_are_answered_individually(orders):
    orders.send_many(["a", "b"])
    first, second = orders.receive(messages_max=2)
    first.release()

    results = orders.ack([second])

    assert not isinstance(results[0], ItemRefused)
    assert orders.stats().acknowledged == 1


def test_queue_is_configured(millstream, orders):
    changed = orders.change(attempts_max=3, tags={"team": "shop"})

    assert (changed.attempts_max, orders.config().attempts_max) == (3, 3)
    assert orders.config().tags.to_dict() == {"team": "shop"}
    with pytest.raises(AlreadyExists):
        orders.create(only_new=True)


def test_create_returns_same_queue_or_names_differences(millstream, orders):
    """An application that created its queue at its start undid what an operator had set."""
    orders.apply(attempts_max=7, tags={"team": "shop"})
    orders.pause()

    same = orders.create(attempts_max=7)
    with pytest.raises(AlreadyExists) as refused:
        orders.create(attempts_max=3)

    assert (same.created, same.attempts_max, same.paused) == (False, 7, True)
    [change] = refused.value.changes
    assert (change.pointer, change.before, change.after) == ("/attempts_max", 7, 3)
    assert "attempts_max is 7, not 3 (already_exists)" in str(refused.value)
    assert isinstance(refused.value, Conflict)
    assert orders.config().tags.to_dict() == {"team": "shop"}


def test_apply_returns_changes_and_dry_run_stores_nothing(millstream, orders):
    orders.change(tags={"team": "shop"})
    planned = orders.apply(attempts_max=5, tags={"team": "web", "tier": "1"}, dry_run=True)
    before = orders.config().attempts_max
    applied = orders.apply(attempts_max=5)

    assert [planned.dry_run, applied.dry_run] == [True, False]
    assert [(change.pointer, change.before, change.after) for change in planned.changes] == [
        ("/attempts_max", 10, 5),
        ("/tags/team", "shop", "web"),
        ("/tags/tier", None, "1"),
    ]
    assert (before, orders.config().attempts_max) == (10, 5)


def test_paused_queue_delivers_nothing_until_resumed(millstream, orders):
    orders.pause()
    orders.send("one")

    paused = orders.receive()
    orders.resume()

    assert paused == []
    assert [message.text for message in orders.receive()] == ["one"]


def test_unknown_field_is_rejected_with_pointer(orders):
    with pytest.raises(BadRequest) as refused:
        orders.change(atempts_max=3)

    assert refused.value.code == "validation_failed"
    assert [fault.pointer for fault in refused.value.errors] == ["/atempts_max"]
    assert refused.value.request_id


def test_unknown_queue_is_not_found(millstream, name):
    with pytest.raises(NotFound) as missing:
        millstream.queue(name).stats()

    assert (missing.value.code, missing.value.status) == ("queue_not_found", 404)
    assert not missing.value.retryable


def test_queues_are_listed_across_pages(millstream, name, monkeypatch):
    monkeypatch.setattr("millstream_client.sync.client.PAGE", 2)
    for number in range(5):
        millstream.queue(f"{name}-{number}").create()

    assert [queue.name for queue in millstream.queues(f"{name}-")] == [
        f"{name}-{number}" for number in range(5)
    ]


def test_queue_is_browsed_purged_and_deleted(millstream, orders):
    sent = orders.send_many(["a", "b", "c"])
    orders.delete_message(sent[0].id)

    assert [message.body for message in orders.browse("ready")] == ["b", "c"]
    assert orders.message(sent[1].id).offset == 1
    assert orders.purge() == 2
    orders.delete()
    assert orders.name not in [queue.name for queue in millstream.queues(orders.name)]


def test_message_of_dead_letter_queue_shows_why(millstream, name):
    source, dead = millstream.queue(f"{name}-source"), millstream.queue(f"{name}-dead")
    dead.create()
    source.create(dead_letters={"queue": dead.name, "receives_max": 1})
    source.send("hello")
    source.receive()[0].nack(delay_seconds=0, reason="no such customer")
    source.receive()

    [message] = dead.receive()

    assert message.dead_letter is not None
    assert message.dead_letter.reason == "no such customer"
    assert (message.dead_letter.source, message.dead_letter.failures) == (f"queue:{source.name}", 1)


async def test_async_client_behaves_like_sync_client(asynchronous, name):
    queue = asynchronous.queue(name)
    await queue.create()
    await queue.send_many(["a", "b"])

    texts = []
    async for message in queue.messages(wait_seconds=0, until_empty=True):
        texts.append(message.text)
        await message.ack()

    assert texts == ["a", "b"]
    assert [actual_queue.name async for actual_queue in asynchronous.queues(name)] == [name]
